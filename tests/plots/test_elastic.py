"""The plot of an elastic job: its gaps, and the accuracy around them."""

import pytest
from matplotlib import pyplot as plt

from hvdcourse.launch.result import RankResult, RunResult
from hvdcourse.plots.elastic import changes, plot_elastic

# Two workers train 3 epochs, one is killed at 3.4 s; one trains 2 more; a host joins.
EPOCHS = [(1, 0.1, 2), (2, 0.5, 2), (3, 0.6, 2), (5, 0.7, 1), (6, 0.8, 1), (9, 0.75, 2),
          (10, 0.9, 2), (11, 0.9, 2), (12, 0.9, 2), (13, 0.65, 2), (14, 0.2, 2)]  # fmt: skip


def job(events=(("killed", 3.4), ("added", 5.5))):
    planned = {"report": "planned kill", "value": {"after_epoch": 3, "ranks": [1]}}
    evidence = [{"collective": "allreduce"}, planned]
    for time, accuracy, size in EPOCHS:
        value = {"rank": 0, "size": size, "time": 100 + time, "loss": 1, "test_accuracy": accuracy}
        evidence.append({"report": "epoch", "value": value})
        evidence.append({"report": "epoch", "value": {**value, "rank": 1, "test_accuracy": 0}})
    for name, time in events:
        evidence.append({"report": name, "value": {"time": 100 + time, "ranks": [1]}})
    rank = RankResult(0, 0, evidence=evidence)
    return RunResult("", 1, "ended", 1, 1, [rank], [])


def test_a_gap_is_the_time_between_the_last_old_and_the_first_new_epoch():
    killed, added = changes(job())
    assert (killed.what, added.what) == ("rank 1 killed", "a host added")
    assert killed.gap == pytest.approx((2, 4)), "from the end of the first epoch, at 1 s, on"
    assert added.seconds == pytest.approx(3)


def test_the_lowest_accuracy_is_that_of_the_next_five_epochs():
    killed, added = changes(job())
    assert (killed.before, killed.lowest_after) == (0.6, 0.7)
    assert (added.before, added.lowest_after) == (0.8, 0.65)
    assert "3.0 s" in str(added)


def test_a_change_that_no_epoch_followed_has_no_gap():
    assert changes(job(events=[("added", 13.5)])) == []


def test_the_plot_has_the_gaps_in_both_axes_and_their_seconds_inside():
    figure = plot_elastic(job())
    upper, lower = figure.axes
    assert [len(axes.patches) for axes in (upper, lower)] == [2, 2]
    assert [text.get_text() for text in upper.texts] == [
        "rank 1 killed: 2.0 s",
        "a host added: 3.0 s",
    ]
    assert len(lower.lines) == 3, "no line crosses a gap"
    assert len(lower.get_legend().texts) == 2
    plt.close(figure)
