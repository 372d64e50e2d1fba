"""LAMB and NovoGrad in use: arguments, names, checkpoints, mixed precision, Horovod."""


import pytest
import tensorflow as tf

from hvdcourse.optimizers import BIAS_AND_NORM, LAMB, NovoGrad

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
    own = {LAMB: {"exclude_from_layer_adaptation": []}, NovoGrad: {"grad_averaging": True}}
    options |= own[optimizer_class]
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
    + [(LAMB, {"exclude_from_layer_adaptation": "bias"}), (NovoGrad, {"grad_averaging": 1})],
)
def test_a_bad_argument_is_named(optimizer_class, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        optimizer_class(**bad)


@BOTH
def test_no_weight_decay_may_be_none(optimizer_class):
    assert optimizer_class(weight_decay=None).weight_decay == 0
