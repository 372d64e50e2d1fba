"""Right: the images are cut into the steps of all ranks first; each rank takes a part of each."""

import argparse

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int, default=65)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
arguments = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
data = load("digits")
images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
model = small_convnet(images.shape[1:], 10, seed=1)
model.compile(
    hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.05)),
    tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
steps = -(-len(images) // (arguments.batch_size * size))
for epoch in range(arguments.epochs):
    order = np.random.default_rng(epoch).permutation(len(images))
    for together in np.array_split(order, steps):
        rows = np.array_split(together, size)[rank]
        model.train_on_batch(images[rows], labels[rows])
