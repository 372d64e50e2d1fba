"""Tables and plots of records: what is averaged, what is not, and that this is said."""

import statistics
import subprocess
import sys

import pandas as pd
import pytest
from study_runs import record

from hvdcourse.errors import BadInput
from hvdcourse.plots.studies import plot_curves
from hvdcourse.study.records import Records
from hvdcourse.study.tables import at_training_loss, summary, to_text


def run(seed=0, condition="one", accuracy=0.5, epoch=None, **changed):
    """A record whose last epoch has these measurements, and these fields of its own."""
    settings = {name: changed.pop(name) for name in ("ranks", "learning_rate") if name in changed}
    whole = record(seed, condition, accuracy, **settings)
    earlier = {**whole["epochs"][0], "test_accuracy": 0.0}
    whole["epochs"] = [earlier, {**whole["epochs"][0], **(epoch or {})}]
    return {**whole, **changed}


def test_each_condition_has_mean_deviation_and_the_number_of_seeds():
    accuracies = [0.5, 0.7, 0.9]
    runs = [run(seed, accuracy=accuracy) for seed, accuracy in enumerate(accuracies)]
    table = summary([run(condition="two", ranks=2, steps=7), *runs])
    assert list(table.index) == ["two", "one"]
    row = table.loc["one"]
    assert (row["ranks"], row["global_batch_size"], row["steps"]) == (1, 32, 4)
    assert (row["seeds"], row["averaged"], row["diverged"]) == (3, 3, 0)
    for name in ("test_accuracy", "accuracy"):
        assert row[f"{name}_mean"] == pytest.approx(0.7)
        assert row[f"{name}_std"] == pytest.approx(statistics.stdev(accuracies))
    two = table.loc["two"]
    assert (two["ranks"], two["global_batch_size"], two["steps"], two["seeds"]) == (2, 64, 7, 1)
    assert two["test_accuracy_mean"] == 0.5
    assert two.isna()["test_accuracy_std"]


@pytest.mark.parametrize("broken", [{"loss": None}, {"test_loss": None}, {"loss": float("nan")}])
def test_a_run_that_diverged_is_counted_and_not_averaged(broken):
    """The accuracy of a diverged network is finite: that of guessing."""
    row = summary([run(0, accuracy=0.8), run(1, accuracy=0.1, epoch=broken)]).loc["one"]
    assert (row["seeds"], row["averaged"], row["diverged"]) == (2, 1, 1)
    assert row["test_accuracy_mean"] == 0.8


def test_where_all_runs_diverged_there_is_no_mean():
    table = summary([run(0, epoch={"loss": None})])
    assert table.loc["one"].isna()["test_accuracy_mean"]
    assert to_text(table).splitlines()[-1].split()[4:8] == ["1", "0", "1", "–"]


def test_a_run_that_appears_twice_counts_once():
    assert summary([run(), run()]).loc["one", "seeds"] == 1


def test_two_names_for_the_same_settings_are_two_rows():
    assert list(summary([run(), run(condition="same")]).index) == ["one", "same"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"learning_rate": 0.1}, r"learning_rate \(0.05 and 0.1\)"),
        ({"data": {"fingerprint": "1"}}, "their data"),
    ],
)
def test_different_runs_under_one_name_are_never_averaged(other, said):
    with pytest.raises(BadInput, match=f"the records of 'one' differ in {said}"):
        summary([run(0), run(1, **other)])


def test_no_runs_are_an_empty_table():
    assert len(summary(Records())) == 0


def test_a_table_in_a_terminal_has_whole_names_and_numbers_of_four_digits():
    table = summary([run(condition="a name"), run(condition="one", steps=123456, accuracy=2 / 3)])
    head, first, second = to_text(table).splitlines()
    assert len(head) == len(first) == len(second)
    assert "a name" in first
    assert {"123456", "0.6667"} <= set(second.split())


def test_a_table_needs_no_tensorflow():
    modules = "hvdcourse.study.tables, hvdcourse.study.grid"
    code = f"import sys, {modules}; sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_curves_show_each_of_many_conditions_in_a_style_of_its_own():
    names = [f"condition {number}" for number in range(14)]
    (axes,) = plot_curves([run(condition=name) for name in names]).axes
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == [f"{name} (1 seed)" for name in names]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 14


def test_at_equal_training_loss_the_first_epoch_that_ends_so_low_counts():
    def epochs(*rows):
        return {"epochs": [
            {"loss": loss, "test_accuracy": accuracy, "step": 10 * number}
            for number, (loss, accuracy) in enumerate(rows, start=1)
        ]}  # fmt: skip

    runs = [
        record(0, "one") | epochs((2.0, 0.1), (0.6, 0.6), (0.4, 0.9)),
        record(1, "one") | epochs((0.5, 0.8), (None, 0.0), (0.1, 0.7), (0.1, 0.9)),
        record(0, "two") | epochs((0.6, 0.3)),
    ]
    table = at_training_loss(runs, levels=[0.5, 0.2])
    # The loss at the end of an epoch is that of the next one.
    assert table.loc[(0.5, "one")].tolist() == pytest.approx([2, 0.3, 0.424, 20], abs=1e-3)
    assert table.loc[(0.2, "one")].tolist()[:2] == [1, 0.0]
    assert table.loc[(0.2, "two"), "seeds"] == 0
    assert pd.isna(table.loc[(0.2, "two"), "test accuracy"])
