"""A wide residual network learns to classify images: first in one process, then on many.

Run it:    horovodrun -np 2 python fashion_mnist.py
Check it:  hvdcourse check fashion_mnist

With --folder it saves a checkpoint after every epoch, writes logs for TensorBoard, and goes on from
the newest checkpoint that it finds there. Steps 1 to 7 make the script distributed; steps 8 to 10,
of the next lesson, keep it converging on many ranks.
"""

import argparse
from pathlib import Path

# Step 1: Import Horovod for Keras, the module horovod.tensorflow.keras, under the name hvd.
#:
import horovod.tensorflow.keras as hvd
# End of step 1.

# Step 4: Import broadcast_variables: it is in the module horovod.tensorflow, and not in hvd.
#:
from horovod.tensorflow import broadcast_variables
# End of step 4.

import tensorflow as tf

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.data.batches import dataset_of_batches
from hvdcourse.training.models import wide_resnet
from hvdcourse.training.optimizers import NovoGrad
from hvdcourse import record
from hvdcourse.data.shards import batches, shard, steps_per_epoch


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.02, help="of a single process")
    parser.add_argument("--warmup-epochs", type=int, default=1, help="to warm the rate up (step 9)")
    parser.add_argument("--width", type=int, default=2, help="how many times 16 filters wide")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the images")
    parser.add_argument("--weights-seed", type=int, help="of the first weights; random without it")
    parser.add_argument("--folder", type=Path, help="for checkpoints and logs; none without it")
    return parser.parse_args()


def training_batches(images, labels, arguments, first_epoch, rank, size):
    """Return this rank's batches of all epochs from the first one on.

    The order of the images depends on the seed and the epoch alone, so that a run that is resumed
    goes through them as one that was never stopped.
    """

    def all_batches():
        for epoch in range(first_epoch, arguments.epochs):
            for rows in batches(
                len(images), rank, size, arguments.batch_size,
                seed=arguments.seed, epoch=epoch,
            ):  # fmt: skip
                yield images[rows], labels[rows]

    return dataset_of_batches(all_batches, images, labels)


def rate_factor(epoch, epochs):
    """Return the schedule's factor: 1, in the third quarter 0.1, and in the last one 0.01."""
    return 0.1 ** ((epoch >= epochs / 2) + (epoch >= epochs * 3 / 4))


def full_rate(arguments):
    """Return the learning rate that the schedule multiplies."""
    # Step 8: The rate suits the global batch, which grows with the number of ranks.
    #: return arguments.learning_rate
    return arguments.learning_rate * hvd.size()
    # End of step 8.


def make_optimizer(learning_rate):
    # Step 10: The optimizer is NovoGrad, with the same rate and no other argument. It is imported
    # already.
    #: optimizer = tf.keras.optimizers.SGD(learning_rate, momentum=0.9)
    optimizer = NovoGrad(learning_rate)
    # End of step 10.
    # Step 3: In every step all ranks apply the mean of all ranks' gradients.
    #:
    optimizer = hvd.DistributedOptimizer(optimizer)
    # End of step 3.
    return optimizer


def rate_setters(learning_rate, steps, arguments):
    """Return the callbacks that set the learning rate; an epoch has this many steps."""

    def factor(epoch):
        return rate_factor(epoch, arguments.epochs)

    # Step 9: In the first --warmup-epochs epochs the rate rises step by step, from that of a single
    # process to the full one. After them the schedule alone sets it. The callbacks for both are in
    # hvd.callbacks. Lesson 4, "Fix 3: warmup", shows their traps: the schedule's function returns a
    # factor of the full rate, and not a rate.
    #: schedule = tf.keras.callbacks.LearningRateScheduler(lambda e: learning_rate * factor(e))
    #: return [schedule]
    # A correction of the momentum would need a variable; in today's Keras it is a plain number.
    warmup = hvd.callbacks.LearningRateWarmupCallback(
        learning_rate, arguments.warmup_epochs, momentum_correction=False, steps_per_epoch=steps
    )
    schedule = hvd.callbacks.LearningRateScheduleCallback(
        learning_rate, factor, start_epoch=arguments.warmup_epochs, momentum_correction=False
    )
    return [warmup, schedule]
    # End of step 9.


def savers(folder):
    """Return the callbacks that write: a checkpoint after every epoch, and TensorBoard's logs."""
    return [
        tf.keras.callbacks.ModelCheckpoint(folder / "epoch-{epoch:03d}", save_weights_only=True),
        tf.keras.callbacks.TensorBoard(folder / "logs", write_graph=False),
    ]


def resume(model, folder):
    """Load the newest checkpoint in the folder, if any, and return the epoch to go on with.

    A checkpoint holds the weights and the optimizer's state.
    """
    checkpoint = tf.train.latest_checkpoint(folder)
    if checkpoint is None:
        return 0
    model.load_weights(checkpoint).assert_existing_objects_matched()
    return int(checkpoint.rpartition("-")[2])


def main():
    arguments = read_arguments()
    # Step 1: This process is one of many and knows its place. Where the machine has GPUs, it sees
    # a single one, that of its local rank, and no two processes of a machine share one.
    #:
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    # End of step 1.

    data = load(arguments.data)
    images, labels = data.train_images[: arguments.images], data.train_labels[: arguments.images]
    tests = len(data.test_images)
    if arguments.weights_seed is not None:
        tf.keras.utils.set_random_seed(arguments.weights_seed)
    model = wide_resnet(images.shape[1:], len(data.classes), arguments.width)
    # Step 2: Only rank 0 prints, here and during the training.
    #: print(f"{model.count_params()} parameters, {len(images)} training images", flush=True)
    #: verbose = 2
    if hvd.rank() == 0:
        print(f"{model.count_params()} parameters, {len(images)} training images", flush=True)
    verbose = 2 if hvd.rank() == 0 else 0
    # End of step 2.

    learning_rate = full_rate(arguments)
    optimizer = make_optimizer(learning_rate)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    # The optimizer's state exists from now on, so that it can be loaded and sent.
    optimizer.build(model.trainable_variables)

    first_epoch = 0
    # Step 7: Only rank 0 looks for a checkpoint. All ranks go on with the epoch that it finds, and
    # with its weights and its optimizer's state.
    #: if arguments.folder:
    #:     first_epoch = resume(model, arguments.folder)
    if arguments.folder and hvd.rank() == 0:
        first_epoch = resume(model, arguments.folder)
    # The weights and the state follow in step 4.
    first_epoch = int(hvd.broadcast(first_epoch, root_rank=0))
    # End of step 7.
    # Step 4: All ranks begin with the weights, and the optimizer's state, of rank 0. A broadcast
    # hands them out.
    #:
    # Horovod's BroadcastGlobalVariablesCallback does it after the first step, which another rank's
    # weights have then had a part in.
    broadcast_variables(model.variables, root_rank=0)
    broadcast_variables(optimizer.variables, root_rank=0)
    # End of step 4.

    # Step 5: In each epoch the ranks, together, see each image once.
    #: steps = steps_per_epoch(len(images), 1, arguments.batch_size)
    #: dataset = training_batches(images, labels, arguments, first_epoch, rank=0, size=1)
    steps = steps_per_epoch(len(images), hvd.size(), arguments.batch_size)
    dataset = training_batches(images, labels, arguments, first_epoch, hvd.rank(), hvd.size())
    # End of step 5.
    # Step 6: Each rank evaluates its share of the test images, and every rank gets the mean of all
    # ranks' metrics.
    #: mine = shard(tests, rank=0, size=1)
    #: callbacks = []
    # The mean of the shares' metrics is that of the whole test set where the shares are equally
    # long, as those of 360 digits are on 2 to 6 ranks. Others must be weighted, as in svhn.py.
    mine = shard(tests, hvd.rank(), hvd.size())
    callbacks = [hvd.callbacks.MetricAverageCallback()]
    # End of step 6.
    callbacks += rate_setters(learning_rate, steps, arguments)
    # Step 7: Only rank 0 writes checkpoints and logs.
    #: if arguments.folder:
    #:     callbacks += savers(arguments.folder)
    if arguments.folder and hvd.rank() == 0:
        callbacks += savers(arguments.folder)
    # End of step 7.

    history = model.fit(
        dataset,
        epochs=arguments.epochs,
        initial_epoch=first_epoch,
        steps_per_epoch=steps,
        validation_data=(data.test_images[mine], data.test_labels[mine]),
        validation_batch_size=256,
        callbacks=[*callbacks, ReportMetrics(images_per_epoch=len(images))],
        verbose=verbose,
    )
    record("val_accuracy", history.history["val_accuracy"])
    record("val_loss", history.history["val_loss"])


if __name__ == "__main__":
    main()
