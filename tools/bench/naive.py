"""The naive form: what one gets by adding Horovod's optimizer to a plain Keras script."""

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from common import Meter, cross_entropy, keep_sizes, read_arguments, read_images
from resnet import bottleneck_resnet


def main():
    arguments = read_arguments(__doc__)
    hvd.init()
    images, labels = read_images(arguments.images)
    images = images.astype(np.float32) / 255
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shard(hvd.size(), hvd.rank())
    dataset = dataset.shuffle(len(images)).batch(arguments.batch_size // hvd.size())

    model = bottleneck_resnet()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001))
    model.compile(optimizer, cross_entropy(), metrics=["accuracy"])
    model.fit(
        dataset,
        epochs=arguments.epochs,
        callbacks=[
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            Meter(len(images), arguments.epochs),
        ],
        verbose=0,
    )
    keep_sizes(model)


if __name__ == "__main__":
    main()
