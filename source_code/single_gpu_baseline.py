"""One device trains a small network, tests it, and records how fast and how well it did.

Run it:  python single_gpu_baseline.py

This script is complete: there is nothing to do in it. Lesson 3 makes such a script distributed.
"""

import argparse
import json
from pathlib import Path

import tensorflow as tf
from sklearn.metrics import classification_report

from hvdcourse.training.callbacks import ReportMetrics
from hvdcourse import load
from hvdcourse.training.models import small_convnet


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="the name of a data set, or a folder")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images")
    parser.add_argument("--batch-size", type=int, default=32, help="images a step")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of SGD with momentum")
    parser.add_argument("--seed", type=int, default=0, help="for the weights and the shuffling")
    parser.add_argument("--record", type=Path, help="a JSON file to write the figures to")
    return parser.parse_args()


class PrintEpochs(tf.keras.callbacks.Callback):
    """Prints a line after each epoch; stands behind ReportMetrics, which measures the time."""

    def on_train_begin(self, logs=None):
        self.total = 0.0

    def on_epoch_end(self, epoch, logs):
        self.total += logs["seconds"]
        print(
            f"epoch {epoch + 1}: {logs['seconds']:.2f} s, "
            f"{logs['images_per_second']:.0f} images/s, "
            f"loss {logs['loss']:.3f}, test accuracy {logs['val_accuracy']:.3f}; "
            f"{self.total:.2f} s of training so far",
            flush=True,
        )


def train(model, data, arguments):
    """Train the model and return the history: a list by name, with one entry an epoch."""
    dataset = tf.data.Dataset.from_tensor_slices((data.train_images, data.train_labels))
    dataset = dataset.shuffle(len(data.train_images), seed=arguments.seed)
    dataset = dataset.batch(arguments.batch_size).prefetch(tf.data.AUTOTUNE)
    return model.fit(
        dataset,
        epochs=arguments.epochs,
        validation_data=(data.test_images, data.test_labels),
        validation_batch_size=256,
        callbacks=[ReportMetrics(images_per_epoch=len(data.train_images)), PrintEpochs()],
        verbose=0,
    ).history


def test_by_class(model, data):
    """Return precision, recall and F1 of every class, by the class's name, and their means."""
    predicted = model.predict(data.test_images, batch_size=256, verbose=0).argmax(axis=1)
    return classification_report(
        data.test_labels,
        predicted,
        labels=range(len(data.classes)),
        target_names=data.classes,
        zero_division=0,
        output_dict=True,
    )


def print_classes(report, classes):
    """Print the report as a table with a line for each class."""
    width = max(len(name) for name in ("class", *classes))
    print(f"{'class':{width}}  precision  recall  test images")
    for name in classes:
        row = report[name]
        print(
            f"{name:{width}}  {row['precision']:9.3f}  {row['recall']:6.3f}  {row['support']:11.0f}"
        )


def write_record(path, record):
    """Write the record under another name first: nobody ever finds half a file."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(record, indent=2) + "\n")
    partial.replace(path)


def main():
    arguments = read_arguments()
    data = load(arguments.data)
    tf.keras.utils.set_random_seed(arguments.seed)
    model = small_convnet(data.train_images.shape[1:], len(data.classes), arguments.seed)
    optimizer = tf.keras.optimizers.SGD(arguments.learning_rate, momentum=0.9)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])

    history = train(model, data, arguments)
    by_class = test_by_class(model, data)
    record = {
        "data": arguments.data,
        "batch_size": arguments.batch_size,
        "seed": arguments.seed,
        "parameters": model.count_params(),
        "history": history,
        "training_seconds": sum(history["seconds"]),
        "test_accuracy": history["val_accuracy"][-1],
        "by_class": by_class,
    }
    print_classes(by_class, data.classes)
    print(
        f"test accuracy {record['test_accuracy']:.3f} after {record['training_seconds']:.2f} s of "
        f"training"
    )
    if arguments.record:
        write_record(arguments.record, record)


if __name__ == "__main__":
    main()
