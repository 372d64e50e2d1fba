"""The best learning rates of a search, from its records."""

from study_runs import record

from hvdcourse.study.searches import best_rates, best_runs, rates_tried

# The best mean is at 0.1, the best single run at 0.2. "linear" makes the full rate 0.25 x 4.
RUNS = [
    *(record(seed, "SGD, warmup, rate 0.1", 0.8, learning_rate=0.1) for seed in (0, 1)),
    record(1, "SGD, warmup, rate 0.2", 0.1, learning_rate=0.2),
    record(0, "SGD, warmup, rate 0.2", 0.9, learning_rate=0.2),
    record(0, "LAMB, rate 0.25", 0.3, learning_rate=0.25, scaling="linear", batch_size=128),
]


def test_tries_stand_under_their_name_and_their_full_rate():
    assert rates_tried(RUNS) == {
        "SGD, warmup": {0.1: [0.8, 0.8], 0.2: [0.9, 0.1]},
        "LAMB": {1.0: [0.3]},
    }


def test_the_best_rate_has_the_best_mean_and_not_the_best_seed():
    assert best_rates(RUNS) == {"SGD, warmup": 0.1, "LAMB": 1.0}
    best = best_runs(RUNS)
    assert [(run["condition"], run["seed"]) for run in best] == [
        ("SGD, warmup", 0), ("SGD, warmup", 1), ("LAMB", 0),
    ]  # fmt: skip
    assert best[0]["settings"] == RUNS[0]["settings"]
