"""The script that ``hvdcourse doctor`` runs on two ranks."""

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
# NCCL refuses two ranks on one GPU: with fewer than two of them this runs on the processor.
own_gpu = [gpus[hvd.local_rank()]] if len(gpus) >= hvd.local_size() else []
tf.config.set_visible_devices(own_gpu, "GPU")
parts = {"Gloo": hvd.gloo_built(), "MPI": hvd.mpi_built(), "NCCL": hvd.nccl_built()}
report("built with", ", ".join(name for name, built in parts.items() if built))
report("mean", hvd.allreduce(tf.constant(1.0 + hvd.rank()), op=hvd.Average))
