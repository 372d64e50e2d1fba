"""Has TensorFlow trace Horovod's functions as they are: half of a short training's time.

AutoGraph reads and rewrites every Python function that a graph is made of, anew in every process.
Horovod's need no rewriting: they decide by Python's numbers, and by ``tf.cond``.
https://www.tensorflow.org/api_docs/python/tf/autograph/experimental/do_not_convert
"""

import functools

import horovod.tensorflow
import tensorflow as tf
from tensorflow.python.autograph.core import config


def leave_horovod_unconverted() -> None:
    """Keep AutoGraph from what Horovod defines, wherever a script calls it from."""
    config.CONVERSION_RULES = (config.DoNotConvert("horovod"), *config.CONVERSION_RULES)
    # What Horovod itself makes a graph of is converted by any rule, unless told otherwise here.
    horovod.tensorflow._make_subgraph = functools.partial(tf.function, autograph=False)
