"""Right: Horovod's callback, in fit, hands the weights out after the first step."""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from hvdcourse import load
from hvdcourse.data.shards import shard
from hvdcourse.training.models import wide_resnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
arguments = parser.parse_args()

hvd.init()
data = load("digits")
images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
model = wide_resnet(images.shape[1:], 10)
model.compile(
    hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9)),
    tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
# As many images on every rank, so that the steps are as many, too.
mine = shard(len(images), hvd.rank(), hvd.size())[: len(images) // hvd.size()]
model.fit(
    images[mine],
    labels[mine],
    arguments.batch_size,
    arguments.epochs,
    verbose=0,
    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)],
)
