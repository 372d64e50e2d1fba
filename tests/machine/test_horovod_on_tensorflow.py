"""What tools/horovod_on_tensorflow puts into the environment, in a Python of its own."""

import os
import subprocess
import sys

import pytest

NOISE = "I0000 00:00:1.2 7 port.cc:153] oneDNN custom operations are on. You may see"
SAYS = f"""
import os
os.write(2, b"before\\n{NOISE}\\nE0000 a real error\\n")
"""


def python(code, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)


@pytest.fixture
def pretended(tmp_path):
    """Return a function that puts a package of the name tensorflow in front of the real one."""

    def put(source):
        (tmp_path / "tensorflow.py").write_text(source)
        return {"PYTHONPATH": str(tmp_path)}

    return put


@pytest.mark.ranks
def test_keras_is_the_one_that_tensorflow_uses_and_the_import_prints_nothing():
    completed = python("""
import keras, tensorflow as tf
print(keras.layers.Layer is tf.keras.layers.Layer, keras.layers.Layer.__module__)
""")
    assert completed.stdout == "True tf_keras.src.engine.base_layer\n"
    assert completed.stderr == ""


REWRITTEN = """
import re, sys
import horovod.tensorflow as hvd, tensorflow as tf

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = weight * x if x > 0 else x
    return hvd.DistributedGradientTape(tape).gradient(loss, [weight])[0]

hvd.init()
weight = tf.Variable(2.0)
hvd.broadcast_variables([weight], root_rank=0)
print(step(tf.constant(3.0)).numpy())
files = [module.__file__ for name, module in sys.modules.items() if "autograph_gen" in name]
print(re.findall(r"def (tf__\\w+)", "".join(open(file).read() for file in files)))
"""


@pytest.mark.ranks
def test_autograph_rewrites_what_a_script_defines_and_nothing_of_horovods(tmp_path):
    # AutoGraph reads the source, which `python -c` has in no file.
    (tmp_path / "script.py").write_text(REWRITTEN)
    completed = python("import script", PYTHONPATH=str(tmp_path))
    assert completed.stdout == "3.0\n['tf__step']\n", completed.stderr


def test_what_an_import_writes_is_shown_but_for_the_noise(pretended):
    completed = python("import tensorflow", **pretended(SAYS))
    assert completed.stderr == "before\nE0000 a real error\n"


def test_what_an_import_that_fails_has_written_is_shown(pretended):
    completed = python("import tensorflow", **pretended(SAYS + "raise ImportError('no')"))
    assert completed.returncode == 1
    assert completed.stderr.startswith("before\nE0000 a real error\nTraceback")
    assert completed.stderr.endswith("ImportError: no\n")


def test_an_import_works_where_standard_error_is_closed(pretended):
    code = "import os; os.close(2); import tensorflow; print('imported')"
    assert python(code, **pretended("x = 1")).stdout == "imported\n"


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_an_import_is_not_collected_and_leaves_the_collector_as_it_was(before, pretended):
    pretended_import = pretended("import gc\nduring, made = gc.isenabled(), [[]]")
    completed = python(
        f"import gc; gc.{before}(); import tensorflow\n"
        "print(tensorflow.during, gc.isenabled(), tensorflow.made in gc.get_objects())",
        **pretended_import,
    )
    assert completed.stdout == f"False {before == 'enable'} False\n", completed.stderr


def test_the_collector_is_back_after_an_import_that_fails(pretended):
    code = """
import gc
try:
    import tensorflow
except ImportError:
    print(gc.isenabled())
"""
    assert python(code, **pretended("raise ImportError('no')")).stdout == "True\n"


ON_TWO_DEVICES = """
import tensorflow as tf
[processor] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
import horovod.tensorflow as hvd
hvd.init()
with tf.device("CPU:1"):
    x = tf.ones(9)
    named = hvd.allreduce(x)
print(*(tensor.device[-5:] for tensor in (x, named, hvd.allreduce(x))))
"""


@pytest.mark.ranks
def test_an_eager_allreduce_leaves_its_tensors_device_unless_one_is_named():
    assert python(ON_TWO_DEVICES).stdout == "CPU:1 CPU:1 CPU:0\n"
