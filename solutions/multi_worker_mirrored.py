"""The training of fashion_mnist.py by TensorFlow's own MultiWorkerMirroredStrategy.

Run it:  horovodrun -np 2 python multi_worker_mirrored.py --ports 41001,41002

This script is complete, for comparison with Horovod's. Each process needs the addresses
of all of them before it starts, and builds its model inside of the strategy's scope.
"""

import argparse
import json
import os

import tensorflow as tf

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.data.batches import dataset_of_batches
from hvdcourse.training.models import wide_resnet
from hvdcourse.rank.place import Place
from hvdcourse.data.shards import batches, steps_per_epoch


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ports", required=True, help="a free port for each process, with commas")
    parser.add_argument("--data", default="digits", help="a data set, or a folder of images")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step, on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.02, help="of a single process")
    parser.add_argument("--width", type=int, default=2, help="how many times 16 filters wide")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    place = Place.from_environment()
    workers = [f"127.0.0.1:{port}" for port in arguments.ports.split(",")]
    task = {"type": "worker", "index": place.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    # On a machine with GPUs each worker has one of its own.
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[place.local_rank], "GPU")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    data = load(arguments.data)
    images, labels = (part[: arguments.images] for part in (data.train_images, data.train_labels))

    def my_batches():
        for epoch in range(arguments.epochs):
            yield from (
                (images[rows], labels[rows])
                for rows in batches(
                    len(images), place.rank, place.size, arguments.batch_size, seed=0, epoch=epoch
                )
            )

    dataset = strategy.distribute_datasets_from_function(
        lambda _: dataset_of_batches(my_batches, images, labels)
    )
    with strategy.scope():
        model = wide_resnet(images.shape[1:], len(data.classes), arguments.width)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = tf.keras.optimizers.SGD(arguments.learning_rate * place.size, momentum=0.9)
        model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(
        dataset,
        epochs=arguments.epochs,
        steps_per_epoch=steps_per_epoch(len(images), place.size, arguments.batch_size),
        callbacks=[ReportMetrics(images_per_epoch=len(images))],
        verbose=2 if place.rank == 0 else 0,
    )


if __name__ == "__main__":
    main()
