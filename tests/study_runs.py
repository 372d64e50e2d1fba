"""Records of runs that nobody made, for the tests of a study's records and tables."""

from dataclasses import asdict

from hvdcourse.study.condition import Condition


def record(seed=0, condition="one", accuracy=0.5, **settings):
    """A whole record, as a run of these settings leaves it."""
    whole = Condition(**settings)
    row = {"epoch": 1, "loss": 1.0, "test_loss": 1.0, "accuracy": accuracy}
    return {
        "condition": condition, "seed": seed, "settings": asdict(whole), "ranks": whole.ranks,
        "batch_size": whole.batch_size, "global_batch_size": whole.global_batch_size,
        "data": {"fingerprint": "0" * 16}, "steps": 4, "command": "horovodrun …",
        "epochs": [{**row, "test_accuracy": accuracy}],
    }  # fmt: skip
