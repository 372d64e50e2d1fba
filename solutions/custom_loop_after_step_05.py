"""The same training without fit: with your own loop around tf.GradientTape.

Run it:    horovodrun -np 2 python custom_loop.py
Check it:  hvdcourse check custom_loop

Here you see what Keras' fit does for you: the gradient, the update, the mean loss.
"""

import argparse

# Step 1: Import Horovod for a loop of your own, the module horovod.tensorflow, under the name hvd.
import horovod.tensorflow as hvd

import numpy as np
import tensorflow as tf

from hvdcourse import load
from hvdcourse.training.models import wide_resnet
from hvdcourse import record
from hvdcourse.data.shards import batches


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--epochs", type=int, default=3, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of SGD with momentum")
    parser.add_argument("--weights-seed", type=int, help="of the first weights; random without it")
    return parser.parse_args()


def rows_of_epoch(count, batch_size, epoch):
    """Return an epoch's batches as a list of arrays: the numbers of the images of each batch."""
    # Step 4: In each epoch the ranks, together, see each image once, in the same number of
    # steps. Each epoch has a new order.
    # The seed is the same on all ranks: they deal out one order, and not each an order of its own.
    return batches(count, hvd.rank(), hvd.size(), batch_size, seed=0, epoch=epoch)


def make_train_step(model, optimizer, image_shape):
    """Return a function that makes one step with a batch, and returns the batch's mean loss."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Batches differ in length by one image. With None, one graph serves them all.
    images_like = tf.TensorSpec((None, *image_shape), tf.float32)
    labels_like = tf.TensorSpec((None,), tf.int64)

    @tf.function(input_signature=[images_like, labels_like])
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        # Step 2: The gradients are the mean of all ranks' gradients.
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


def main():
    arguments = read_arguments()
    # Step 1: This process is one of many and knows its place. Where the machine has GPUs, it sees
    # a single one, that of its local rank, and no two processes of a machine share one.
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
    model = wide_resnet(images.shape[1:], len(data.classes))
    optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    train_step = make_train_step(model, optimizer, images.shape[1:])

    losses = []
    for epoch in range(arguments.epochs):
        sum_of_losses, seen = 0.0, 0
        for rows in rows_of_epoch(len(images), arguments.batch_size, epoch):
            loss = train_step(images[rows], labels[rows])
            sum_of_losses, seen = sum_of_losses + float(loss) * len(rows), seen + len(rows)
            # Step 3: From the second step on, all ranks have the weights of rank 0. Send its
            # optimizer's state, too: here it is equal already, in a script that resumes it is not.
            if optimizer.iterations == 1:
                # Not earlier: the first update makes the optimizer's variables.
                hvd.broadcast_variables(model.variables, root_rank=0)
                hvd.broadcast_variables(optimizer.variables, root_rank=0)
        loss = sum_of_losses / seen
        # Step 5: On every rank `loss` is the mean of all ranks' losses.
        loss = float(hvd.allreduce(np.float64(loss), op=hvd.Average, name="loss"))
        losses.append(loss)
        print(f"epoch {epoch + 1} of {arguments.epochs}: loss {loss:.4f}", flush=True)
    record("losses", losses)


if __name__ == "__main__":
    main()
