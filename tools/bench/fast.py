"""The fast form: a rank does little beside the network, and that with the fastest kernels."""

import horovod.tensorflow as hvd
import tensorflow as tf
from common import Meter, cross_entropy, keep_sizes, read_arguments, read_images
from fast_layers import FastConv2D
from resnet import bottleneck_resnet

from hvdcourse.data.shards import batches


def main():
    arguments = read_arguments(__doc__)
    hvd.init()
    # All images stand in memory once, as bytes.
    images, labels = (tf.constant(array) for array in read_images(arguments.images))
    model = bottleneck_resnet(conv2d=FastConv2D)
    # One kernel updates a weight. The newer Adam runs a dozen operations, each with its own pass
    # through memory.
    optimizer = tf.keras.optimizers.legacy.Adam(0.001)
    loss_of = cross_entropy()
    hvd.broadcast_variables(model.variables, root_rank=0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def train_step(rows):
        # Only row numbers are shuffled, and a batch is one gather: nothing is done image by
        # image. So there is nothing worth a prefetch, which would need a free core anyway.
        batch = tf.image.convert_image_dtype(tf.gather(images, rows), tf.float32)
        with tf.GradientTape() as tape:
            loss = loss_of(tf.gather(labels, rows), model(batch, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        if not arguments.no_allreduce:
            # All gradients in one message: the ranks have to agree once a step.
            gradients = hvd.grouped_allreduce(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    batch_size = arguments.batch_size // hvd.size()
    meter = Meter(len(images), arguments.epochs)
    for epoch in range(arguments.epochs):
        meter.on_epoch_begin(epoch)
        for rows in batches(len(images), hvd.rank(), hvd.size(), batch_size, seed=0, epoch=epoch):
            loss = train_step(rows)
        meter.on_epoch_end(epoch, {"loss": float(loss)})
    keep_sizes(model)


if __name__ == "__main__":
    main()
