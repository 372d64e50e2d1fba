"""Datasets of batches, and who else works on them."""

import pytest

from hvdcourse.launch.run import run_quickly
from hvdcourse.paths import SOLUTIONS

# Tells of each dataset that the script goes through whether the tuner does so, too.
WATCHED = """
    import runpy, sys
    import tensorflow as tf
    from hvdcourse import report

    iterate = tf.data.Dataset.__iter__

    def watched(dataset):
        report("tuned", dataset.options().autotune.enabled is not False)
        return iterate(dataset)

    tf.data.Dataset.__iter__ = watched
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.mark.ranks
def test_no_epoch_of_the_first_script_waits_for_a_tuner(script):
    arguments = [str(SOLUTIONS / "start_here.py"), "--epochs", "2", "--pixels", "8"]
    (rank,) = run_quickly(script(WATCHED), 1, arguments=arguments, quiet=True).ranks
    tuned = [entry["value"] for entry in rank.evidence if entry.get("report") == "tuned"]
    assert set(tuned) == {False}
