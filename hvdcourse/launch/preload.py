"""What the fork server imports once, for all ranks that are forked from it.

Nothing is computed here: threads do not survive a fork.
"""

import gc
import importlib
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
# The garbage collector would look through it some 700 times, in a sixth of the time that it takes.
gc.disable()
for _name in ("numpy", "tensorflow", "horovod.tensorflow.keras", "hvdcourse.launch.supervisor"):
    importlib.import_module(_name)
# The garbage collector of a forked process need not look through all of this again.
gc.collect()
gc.freeze()
gc.enable()
