"""TensorFlow's own MultiWorkerMirroredStrategy, with the layers and the optimizer of the fast form.

It gets the same cores too, and a pipeline that shuffles row numbers and prefetches batches.
"""

import json
import os

import tensorflow as tf
from common import Meter, cross_entropy, keep_sizes, read_arguments, read_images
from fast_layers import FastConv2D
from resnet import bottleneck_resnet

from hvdcourse.rank.place import Place


def tell_the_workers(ports, place):
    """Say where all workers are and which one this is, as the strategy expects to be told."""
    cluster = {"worker": [f"localhost:{port}" for port in ports.split(",")]}
    task = {"type": "worker", "index": place.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})


def main():
    arguments = read_arguments(__doc__)
    place = Place.from_environment()
    tell_the_workers(arguments.ports, place)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    images, labels = (tf.constant(array) for array in read_images(arguments.images))
    count = len(images)

    def gathered(rows):
        batch = tf.image.convert_image_dtype(tf.gather(images, rows), tf.float32)
        return batch, tf.gather(labels, rows)

    def my_share(_):
        dataset = tf.data.Dataset.range(count).shard(place.size, place.rank).shuffle(count)
        dataset = dataset.batch(arguments.batch_size // place.size)
        dataset = dataset.map(gathered, num_parallel_calls=tf.data.AUTOTUNE)
        return dataset.repeat().prefetch(2)

    with strategy.scope():
        model = bottleneck_resnet(conv2d=FastConv2D)
        model.compile(tf.keras.optimizers.legacy.Adam(0.001), cross_entropy())
    model.fit(
        strategy.distribute_datasets_from_function(my_share),
        epochs=arguments.epochs,
        steps_per_epoch=-(-count // arguments.batch_size),
        callbacks=[Meter(count, arguments.epochs)],
        verbose=0,
    )
    keep_sizes(model)


if __name__ == "__main__":
    main()
