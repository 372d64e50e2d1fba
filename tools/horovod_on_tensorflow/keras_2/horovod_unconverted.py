"""Keeps AutoGraph from Horovod's own functions, so that a training starts sooner.

AutoGraph reads and rewrites every Python function that a graph is made of, anew in every process.
Horovod's need no rewriting: they decide by Python's numbers, and by ``tf.cond``. A function that is
given to ``tf.function`` itself is rewritten whatever the rules say, unless it is told not to:
https://www.tensorflow.org/api_docs/python/tf/autograph/experimental/do_not_convert

Python loads this when it starts, by the ``.pth`` file beside it.
"""

import sys

from tensorflow_import import Finder


def leave_unconverted(execute, module):
    """Have the module executed that makes Horovod's graphs, and AutoGraph leave Horovod alone."""
    from functools import partial

    import tensorflow
    from tensorflow.python.autograph.core import config

    execute(module)
    module._make_subgraph = partial(tensorflow.function, autograph=False)
    config.CONVERSION_RULES = (config.DoNotConvert("horovod"), *config.CONVERSION_RULES)


sys.meta_path.insert(0, Finder("horovod.tensorflow.util", leave_unconverted))
