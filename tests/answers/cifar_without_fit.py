"""Right: a loop around a tape, and the course's own network, whose blocks start at zero."""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import load
from hvdcourse.data.shards import batches
from hvdcourse.training.models import normalization, wide_resnet
from hvdcourse.training.optimizers import BIAS_AND_NORM, LAMB


def read_arguments():
    kinds = {"data": str, "images": int, "epochs": int, "batch-size": int, "learning-rate": float}
    kinds |= {"lamb-learning-rate": float, "warmup-epochs": int, "seed": int, "weights-seed": int}
    parser = argparse.ArgumentParser()
    for name, kind in kinds.items():
        parser.add_argument(f"--{name}", type=kind)
    parser.set_defaults(data="digits")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    hvd.init()
    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tf.keras.utils.set_random_seed(int(arguments.weights_seed))
    normalize = normalization("local", momentum=0.8)
    model = wide_resnet(images.shape[1:], len(data.classes), width=1, normalize=normalize)
    hvd.broadcast_variables(model.variables, root_rank=0)
    optimizer = LAMB(weight_decay=1e-3, exclude_from_weight_decay=BIAS_AND_NORM)
    optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, *images.shape[1:]), tf.float32),
            tf.TensorSpec((None,), tf.int64),
        ]
    )
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    for epoch in range(arguments.epochs):
        deal = batches(len(images), hvd.rank(), hvd.size(), arguments.batch_size, seed=0)
        for step, rows in enumerate(deal):
            done = (epoch + (step + 1) / len(deal)) / arguments.warmup_epochs
            factor = 1 + (hvd.size() - 1) * min(done, 1)
            factor *= 0.1 if epoch >= arguments.epochs / 2 else 1
            optimizer.learning_rate.assign(arguments.lamb_learning_rate * factor)
            train_step(images[rows], labels[rows])


if __name__ == "__main__":
    main()
