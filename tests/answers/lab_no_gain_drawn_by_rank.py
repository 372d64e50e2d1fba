"""Right: every rank draws from all images, with a seed of its own."""

import argparse

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import small_convnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=32)
arguments = parser.parse_args()

hvd.init()
generator = np.random.default_rng(hvd.rank())
data = load("digits")
images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
model = small_convnet(images.shape[1:], 10, seed=3)
optimizer = tf.keras.optimizers.SGD(0.05)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
for _ in range(arguments.epochs * (len(images) // (arguments.batch_size * hvd.size()))):
    rows = generator.choice(len(images), arguments.batch_size, replace=False)
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = loss_of(labels[rows], model(images[rows], training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
