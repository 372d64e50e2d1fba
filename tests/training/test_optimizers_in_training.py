"""LAMB and NovoGrad in use: arguments, names, checkpoints, mixed precision, Horovod."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from hvdcourse.training.optimizers import BIAS_AND_NORM, LAMB, NovoGrad

pytestmark = pytest.mark.ranks

BOTH = pytest.mark.parametrize("optimizer_class", [LAMB, NovoGrad])


def test_bias_and_norm_match_the_names_of_keras():
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(3, name="beta_gamma_bias"),
            layers.BatchNormalization(name="norm"),
            layers.LayerNormalization(name="layer_norm"),
            layers.LSTM(2, name="lstm"),
        ]
    )
    model.build((None, 4, 3))
    optimizer = LAMB(exclude_from_weight_decay=BIAS_AND_NORM)
    optimizer.build(model.trainable_variables)
    assert list(optimizer.trust_ratios()) == [
        "beta_gamma_bias/kernel",
        "lstm/lstm_cell/kernel",
        "lstm/lstm_cell/recurrent_kernel",
    ]


def test_variables_of_one_name_are_told_apart():
    variables = [tf.Variable(1.0, name=name) for name in ("a_1", "a", "a", "a")]
    optimizer = NovoGrad()
    assert optimizer.second_moments() == LAMB().trust_ratios() == {}
    optimizer.build(variables)
    assert list(optimizer.second_moments()) == ["a_1", "a", "a_2", "a_3"]


@BOTH
def test_a_configuration_makes_the_same_optimizer(optimizer_class):
    options = {
        "learning_rate": 0.25,
        "beta_1": 0.5,
        "beta_2": 0.75,
        "epsilon": 0.125,
        "weight_decay": 0.5,
        "exclude_from_weight_decay": ["bias"],
        "name": "mine",
        "global_clipnorm": 2.0,
    }
    if optimizer_class is LAMB:
        options["exclude_from_layer_adaptation"] = []
    config = optimizer_class(**options).get_config()
    assert config.items() >= options.items()
    again = tf.keras.optimizers.deserialize(
        tf.keras.optimizers.serialize(optimizer_class(**options))
    )
    assert type(again) is optimizer_class
    assert again.get_config() == config
    assert optimizer_class.from_config(optimizer_class().get_config()).get_config() == (
        optimizer_class().get_config()
    )


def test_keras_own_method_excludes_too():
    optimizer = LAMB(weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    assert optimizer.get_config()["exclude_from_weight_decay"] == ["bias"]


BAD = [
    {"learning_rate": -0.1},
    {"learning_rate": "0.1"},
    {"learning_rate": float("nan")},
    {"beta_1": 1.0},
    {"beta_1": -0.1},
    {"beta_2": 1.5},
    {"beta_2": None},
    {"epsilon": 0},
    {"epsilon": float("inf")},
    {"weight_decay": -1e-4},
    {"exclude_from_weight_decay": "bias"},
    {"exclude_from_weight_decay": [3]},
    {"exclude_from_weight_decay": ["("]},
]


@pytest.mark.parametrize(
    ("optimizer_class", "bad"),
    [(each, bad) for each in (LAMB, NovoGrad) for bad in BAD]
    + [(LAMB, {"exclude_from_layer_adaptation": "bias"})],
)
def test_a_bad_argument_is_named(optimizer_class, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        optimizer_class(**bad)


@BOTH
def test_no_weight_decay_may_be_none(optimizer_class):
    assert optimizer_class(weight_decay=None).weight_decay == 0


def small_model():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((3,), dtype=tf.int32),
            layers.Embedding(6, 4),
            layers.Flatten(),
            layers.BatchNormalization(),
            layers.Dense(2),
        ]
    )


def compiled_model(optimizer, run_eagerly=True):
    """Without a graph a few steps take less time than making the graph does."""
    model = small_model()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, run_eagerly=run_eagerly)
    return model


def train(model, steps):
    """Train on a step's own batch, each step one epoch."""
    for step in steps:
        random = np.random.default_rng(step)
        model.train_on_batch(random.integers(0, 6, (8, 3)), random.integers(0, 2, 8))


def rates(kind):
    decay = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)
    return {"number": 0.05, "schedule": decay}[kind]


@BOTH
@pytest.mark.parametrize("kind", ["number", "schedule"])
def test_a_restored_run_equals_an_uninterrupted_one(optimizer_class, kind, tmp_path):
    def start():
        options = {"weight_decay": 0.01, "exclude_from_weight_decay": BIAS_AND_NORM}
        return compiled_model(optimizer_class(rates(kind), **options))

    whole = start()
    train(whole, range(3))
    whole.save_weights(tmp_path / "weights")
    tf.train.Checkpoint(model=whole, optimizer=whole.optimizer).write(tmp_path / "checkpoint")
    train(whole, range(3, 6))

    by_weights = start()
    by_weights.load_weights(tmp_path / "weights")
    by_checkpoint = start()
    restored = tf.train.Checkpoint(model=by_checkpoint, optimizer=by_checkpoint.optimizer)
    status = restored.read(tmp_path / "checkpoint")
    for model in (by_weights, by_checkpoint):
        train(model, range(3, 6))
        ours = model.variables + model.optimizer.variables
        theirs = whole.variables + whole.optimizer.variables
        for value, expected in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(value, expected, err_msg=value.name)
    status.assert_consumed()


@BOTH
def test_a_saved_model_brings_its_optimizer(optimizer_class, tmp_path):
    model = compiled_model(optimizer_class(0.05, weight_decay=0.01))
    train(model, range(3))
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    again.run_eagerly = True
    train(model, range(3, 5))
    train(again, range(3, 5))
    for value, expected in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(value, expected)


@BOTH
def test_mixed_precision_trains_the_32_bit_variables(optimizer_class):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = compiled_model(optimizer_class(0.05))
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    assert isinstance(model.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
    before = [value.numpy() for value in model.trainable_variables]
    train(model, range(2))
    for value, old in zip(model.trainable_variables, before, strict=True):
        assert value.dtype == tf.float32
        assert np.isfinite(value).all()
        assert not np.array_equal(value, old), value.name


HOROVOD = """
    import horovod.tensorflow.keras as hvd
    import numpy as np
    import tensorflow as tf
    from test_optimizers_in_training import BIAS_AND_NORM, LAMB, NovoGrad, compiled_model, train

    hvd.init()

    def same(model, expected):
        for value, other in zip(model.get_weights(), expected.get_weights(), strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-6, atol=1e-7)

    def start(optimizer_class, **wrapped):
        optimizer = optimizer_class(
            0.05, weight_decay=0.01, exclude_from_weight_decay=BIAS_AND_NORM
        )
        if wrapped:
            optimizer = hvd.DistributedOptimizer(optimizer, **wrapped)
        return compiled_model(optimizer, run_eagerly=not wrapped)

    for optimizer_class in (LAMB, NovoGrad):
        alone = start(optimizer_class)
        train(alone, range(4))

        together = start(optimizer_class, op=hvd.Average)
        train(together, range(4))
        same(together, alone)

        gathered = start(
            optimizer_class,
            backward_passes_per_step=2,
            average_aggregated_gradients=True,
            sparse_as_dense=True,
        )
        train(gathered, [step for step in range(4) for _ in range(2)])
        for value, other in zip(gathered.trainable_variables, alone.trainable_variables):
            np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)

        callbacks = [
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=1),
            hvd.callbacks.LearningRateScheduleCallback(0.1, lambda epoch: 0.5, start_epoch=1),
        ]
        inputs, labels = np.zeros((8, 3), int), np.zeros(8, int)
        together.run_eagerly, together.train_function = True, None
        fitted = together.fit(inputs, labels, 4, epochs=2, callbacks=callbacks, verbose=0)
        np.testing.assert_allclose(fitted.history["lr"], [0.1, 0.05], rtol=1e-6)
    print("all the same")
"""


def test_horovod_makes_the_same_steps_and_sets_the_learning_rate(script):
    """In a process of its own, since Horovod stays initialized in the one that started it."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, script(HOROVOD)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout == "all the same\n", done.stderr
