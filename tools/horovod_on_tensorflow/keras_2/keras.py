"""Keras 2 under its old name: what imports ``keras`` gets ``tf_keras``.

Horovod's callbacks and optimizers are written for Keras 2, and import it as ``keras``:
https://github.com/horovod/horovod/issues/4290.
"""

import sys

import tf_keras

sys.modules[__name__] = tf_keras
