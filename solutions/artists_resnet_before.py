"""Who painted this? A residual network learns to tell painters apart by their pictures.

Run it:    python artists_resnet.py
Judge it:  hvdcourse challenge

This is the program as its author hands it over: it works, in one process. Make it distributed,
fast, and convergent at 16 times its batch. The brief stands in notebooks/07_challenge.ipynb.
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse.data.image_folder import find_images
from hvdcourse.data.painters import image_folder
from hvdcourse import record


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="painters", help="painters, or a folder of your own")
    parser.add_argument("--images", type=int, help="train on this many images; on all without it")
    parser.add_argument("--pixels", type=int, default=64, help="height and width of the images")
    parser.add_argument("--epochs", type=int, default=6, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=16, help="images a step, in each process")
    parser.add_argument("--learning-rate", type=float, default=0.02, help="at 16 images a step")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the images")
    parser.add_argument("--folder", type=Path, help="for checkpoints; none without it")
    return parser.parse_args()


def read_image(path, pixels):
    with Image.open(path) as image:
        image.verify()  # a damaged file shall not get into the training
    with Image.open(path) as image:
        image = image.convert("RGB").resize((pixels, pixels), Image.Resampling.BICUBIC)
        return np.asarray(image, np.float32) / 255


def make_dataset(paths, labels, arguments, shuffle):
    rng = np.random.default_rng(arguments.seed)

    def samples():
        order = rng.permutation(len(paths)) if shuffle else range(len(paths))
        for number in order:
            yield read_image(paths[number], arguments.pixels), labels[number]

    signature = (
        tf.TensorSpec((arguments.pixels, arguments.pixels, 3), tf.float32),
        tf.TensorSpec((), tf.int64),
    )
    dataset = tf.data.Dataset.from_generator(samples, output_signature=signature)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(paths)))
    return dataset.batch(arguments.batch_size)


def convolution(x, filters, size=3, strides=1, start="he_normal"):
    layer = tf.keras.layers.Conv2D(filters, size, strides, padding="same", kernel_initializer=start)
    return layer(x)


def residual_block(x, filters):
    active = tf.keras.layers.ReLU()(x)
    inner = tf.keras.layers.ReLU()(convolution(active, filters, strides=2))
    outer = convolution(inner, filters, start="zeros")
    return outer + convolution(active, filters, size=1, strides=2)


def residual_network(pixels, painters):
    images = tf.keras.layers.Input((pixels, pixels, 3))
    x = convolution(images, 32, size=8, strides=4)
    for filters in (32, 64):
        x = residual_block(x, filters)
    x = tf.keras.layers.GlobalAveragePooling2D()(tf.keras.layers.ReLU()(x))
    return tf.keras.Model(images, tf.keras.layers.Dense(painters)(x))


def print_report(painters, labels, predicted):
    report = {}
    for number, painter in enumerate(painters):
        named, exist = predicted == number, labels == number
        right, exist, named = (int(these.sum()) for these in (named & exist, exist, named))
        report[painter] = [right, exist, named]
        precision, recall = right / max(named, 1), right / exist
        print(f"{painter:20} precision {precision:.2f}, recall {recall:.2f}, {exist} pictures")
    record("report", report)


def main():
    arguments = read_arguments()
    found = find_images(image_folder(arguments.data))
    chosen = np.random.default_rng(0).permutation(len(found.train_paths))[: arguments.images]
    paths = [found.train_paths[number] for number in chosen]
    labels = found.train_labels[chosen]
    train = make_dataset(paths, labels, arguments, shuffle=True)
    test = make_dataset(found.test_paths, found.test_labels, arguments, shuffle=False)
    print(f"{len(paths)} images of {len(found.classes)} painters", flush=True)

    model = residual_network(arguments.pixels, len(found.classes))
    optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])

    callbacks = [ReportMetrics(images_per_epoch=len(paths))]
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        checkpoint = arguments.folder / "weights-{epoch:03d}.h5"
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(checkpoint, save_weights_only=True))
    model.fit(train, epochs=arguments.epochs, validation_data=test, callbacks=callbacks, verbose=2)
    predicted = model.predict(test, verbose=0).argmax(axis=1)
    print_report(found.classes, found.test_labels, predicted)


if __name__ == "__main__":
    main()
