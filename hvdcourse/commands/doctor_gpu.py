"""The script that ``hvdcourse doctor`` runs on one rank where the machine has GPUs."""

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report

hvd.init()
# Without a device named, TensorFlow takes a GPU if it finds one, and Horovod follows.
report("device", hvd.allreduce(tf.ones([1000])).device.rpartition("device:")[-1])
