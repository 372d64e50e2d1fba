"""Keras under TensorFlow's own MultiWorkerMirroredStrategy, one worker a rank."""

import json
import os

from hvdcourse.place import Place


def main():
    from common import cross_entropy, read_arguments, read_images
    arguments = read_arguments(__doc__)
    place = Place.from_environment()
    workers = [f"localhost:{port}" for port in arguments.ports.split(",")]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": place.rank}})
    import tensorflow as tf
    from hvdcourse.callbacks import ReportMetrics
    from hvdcourse.models import bottleneck_resnet
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    images, labels = read_images(arguments, "float32")
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images)).batch(arguments.batch_size)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    dataset = dataset.with_options(options).prefetch(2)
    with strategy.scope():
        model = bottleneck_resnet()
        model.compile(tf.keras.optimizers.Adam(0.001), cross_entropy(), metrics=["accuracy"])
    model.fit(dataset, epochs=arguments.epochs, callbacks=[ReportMetrics(images_per_epoch=len(images))], verbose=0)


if __name__ == "__main__":
    main()
