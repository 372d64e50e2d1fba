"""Right: Keras' own load_model, then the optimizer is wrapped and gets its state back by hand."""

import argparse
import tempfile
from pathlib import Path

import horovod.tensorflow.keras as hvd
import tensorflow as tf

from hvdcourse import load
from hvdcourse.data.shards import batches
from hvdcourse.training.models import small_convnet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--images", type=int, default=512)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32)
arguments = parser.parse_args()
LOSS = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(model):
    for _ in range(arguments.epochs):
        for rows in batches(arguments.images, hvd.rank(), hvd.size(), arguments.batch_size):
            model.train_on_batch(data.train_images[rows], data.train_labels[rows])


hvd.init()
data = load("digits")
model = small_convnet(data.train_images.shape[1:], 10, seed=2)
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.02, momentum=0.9)), LOSS)
train(model)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.h5"
    model.save(path)
    model = tf.keras.models.load_model(path)
found = model.optimizer
model.compile(hvd.DistributedOptimizer(found), LOSS)
model.optimizer.build(model.trainable_variables)
for variable, value in zip(model.optimizer.variables, found.variables, strict=True):
    variable.assign(value)
train(model)
