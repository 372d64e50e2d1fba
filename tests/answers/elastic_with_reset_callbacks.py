"""Right: the place and the rate are in an object that a reset callback brings up to date."""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import load, report_epoch
from hvdcourse.data.shards import batches
from hvdcourse.training.models import convnet


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--images", type=int, default=600, help="train on this many images")
    parser.add_argument("--epochs", type=int, default=30, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=20, help="images a step, on each worker")
    parser.add_argument("--learning-rate", type=float, default=0.03, help="of a single worker")
    return parser.parse_args()


def make_step(model, optimizer):
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(reduce_retracing=True)
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


class Place:
    """Where this worker stands, and the rate that suits it."""

    def __init__(self, optimizer, learning_rate):
        self.optimizer, self.learning_rate = optimizer, learning_rate

    def update(self):
        self.rank, self.size = hvd.rank(), hvd.size()
        self.optimizer.learning_rate.assign(self.learning_rate * self.size)


def share_of(arguments, epoch, place):
    return batches(
        arguments.images, place.rank, place.size, arguments.batch_size, seed=0, epoch=epoch
    )


@hvd.elastic.run
def train(state, model, optimizer, data, arguments, place):
    step = make_step(model, optimizer)
    place.update()
    while state.epoch < arguments.epochs:
        share = share_of(arguments, state.epoch, place)
        for rows in share:
            loss = step(tf.constant(data.train_images[rows]), tf.constant(data.train_labels[rows]))
        state.epoch += 1
        correct = tf.argmax(model(data.test_images), axis=1) == data.test_labels
        report_epoch(
            state.epoch,
            arguments.epochs,
            rank=hvd.rank(),
            size=hvd.size(),
            images=share,
            learning_rate=float(optimizer.learning_rate),
            loss=float(loss),
            accuracy=float(tf.reduce_mean(tf.cast(correct, tf.float32))),
            weights=model.get_weights(),
            optimizer_variables=[one.numpy() for one in optimizer.variables],
        )
        state.commit()


def main():
    arguments = read_arguments()
    hvd.init()
    data = load(arguments.data)
    tf.keras.utils.set_random_seed(0)  # the same first weights on every worker
    model = convnet(data.train_images.shape[1:], len(data.classes), width=1)
    optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    place = Place(optimizer, arguments.learning_rate)
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0)
    state.register_reset_callbacks([place.update])
    train(state, model, optimizer, data, arguments, place)


if __name__ == "__main__":
    main()
