"""The script that ``hvdcourse doctor`` runs on one rank where the machine has GPUs."""

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import report

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
# Horovod takes the processor where no device is named, outside of a graph.
with tf.device("GPU:0" if gpus else "CPU:0"):
    mean = hvd.allreduce(tf.ones([1000]))
report("GPUs", len(gpus))
report("device", mean.device.rpartition("device:")[-1])
