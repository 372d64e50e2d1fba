"""The script that ``hvdcourse doctor`` runs on two ranks."""

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report

hvd.init()
parts = {"Gloo": hvd.gloo_built(), "MPI": hvd.mpi_built(), "NCCL": hvd.nccl_built()}
report("built with", ", ".join(name for name, built in parts.items() if built))
report("mean", hvd.allreduce(tf.constant(1.0 + hvd.rank()), op=hvd.Average))
