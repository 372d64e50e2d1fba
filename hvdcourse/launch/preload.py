"""What the fork server imports once, for all ranks that are forked from it.

Nothing is computed here: threads do not survive a fork.
"""

import gc
import importlib
import os

# TensorFlow logs three "errors" at its import where it finds no GPU, which mean nothing. What it
# logs later, in the ranks, is wanted.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
_STDERR = os.dup(2)
_NOWHERE = os.open(os.devnull, os.O_WRONLY)
os.dup2(_NOWHERE, 2)
try:
    # It would look for garbage some 700 times, in a sixth of the time that the imports take.
    gc.disable()
    for _name in ("numpy", "tensorflow", "horovod.tensorflow.keras", "hvdcourse.launch.supervisor"):
        importlib.import_module(_name)
finally:
    os.dup2(_STDERR, 2)
    os.close(_STDERR)
    os.close(_NOWHERE)
# The garbage collector of a forked process need not look through all of this again.
gc.collect()
gc.freeze()
gc.enable()
