"""A training that goes on when a worker dies or a new one comes: Elastic Horovod.

Run it:    horovodrun -np 2 python elastic.py --epochs 10
Check it:  hvdcourse check elastic

As it stands, the loss of one worker ends the whole job. Five steps make it elastic. The check then
kills a worker in the middle of the training, and lets a new one join.
"""

import argparse

import horovod.tensorflow as hvd
import tensorflow as tf

from hvdcourse import load
from hvdcourse import report_epoch
from hvdcourse.training.models import convnet
from hvdcourse.data.shards import batches


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--images", type=int, default=600, help="train on this many images")
    parser.add_argument("--epochs", type=int, default=30, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=20, help="images a step, on each worker")
    parser.add_argument("--learning-rate", type=float, default=0.03, help="of a single worker")
    return parser.parse_args()


def make_step(model, optimizer):
    """Return a function that trains on a batch, and returns the loss."""
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


def share_of(arguments, epoch, place):
    """Return this worker's batches of an epoch: the numbers of their images."""
    # TODO: Step 5: In every epoch the current workers, together, train on each image once.
    rank, size = place
    return batches(arguments.images, rank, size, arguments.batch_size, seed=0, epoch=epoch)


# Step 1: Horovod calls this function again whenever workers are lost or join. Before it does, it
# gives all of them the state of rank 0.
@hvd.elastic.run
def train(state, model, optimizer, data, arguments, place):
    """Train from the state's epoch on to the last one."""
    step = make_step(model, optimizer)
    # TODO: Step 4: The learning rate is that of one worker times the current number of workers.
    optimizer.learning_rate.assign(arguments.learning_rate * place[1])
    while state.epoch < arguments.epochs:
        share = share_of(arguments, state.epoch, place)
        losses = [
            step(tf.constant(data.train_images[rows]), tf.constant(data.train_labels[rows]))
            for rows in share
        ]
        state.epoch += 1
        correct = tf.argmax(model(data.test_images), axis=1) == data.test_labels
        report_epoch(
            state.epoch,
            arguments.epochs,
            rank=hvd.rank(),
            size=hvd.size(),
            images=share,
            learning_rate=float(optimizer.learning_rate),
            loss=float(tf.reduce_mean(losses)),
            accuracy=float(tf.reduce_mean(tf.cast(correct, tf.float32))),
            weights=model.get_weights(),
            optimizer_variables=[one.numpy() for one in optimizer.variables],
        )
        # TODO: Step 2: At the end of every epoch, what was reached is kept, and new workers are let
        # in.


def main():
    arguments = read_arguments()
    hvd.init()
    # On a machine with GPUs each rank has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    data = load(arguments.data)
    tf.keras.utils.set_random_seed(0)  # the same first weights on every worker
    model = convnet(data.train_images.shape[1:], len(data.classes), width=1)
    optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    # A new worker must have the optimizer's variables before it is sent their values.
    optimizer.build(model.trainable_variables)
    place = hvd.rank(), hvd.size()
    # TODO: Step 3: The state holds all that a worker needs to go on: the epoch, the model's weights
    # and the optimizer's variables. hvd.elastic has a class for Keras models: TensorFlowKerasState.
    # This model is not compiled, so the optimizer is named, too.
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=0)
    train(state, model, optimizer, data, arguments, place)


if __name__ == "__main__":
    main()
