"""Mistakes in ``cifar.py``."""

from mistakes.round import mistake, together

NORMALIZED = "    x = tf.keras.layers.BatchNormalization(momentum=0.9)(x)\n"
RATE = "return single_rate * hvd.size()"
LAMB = """LAMB(
        full_rate(arguments.lamb_learning_rate), exclude_from_weight_decay=BIAS_AND_NORM
    )"""
WARMUP = "learning_rate, arguments.warmup_epochs, momentum_correction=False, steps_per_epoch=steps"
START = "start_epoch=arguments.warmup_epochs"
RELU = "    return tf.keras.layers.ReLU()(x)\n"
MAKE = "def make_optimizer(arguments):\n"
KERNELS_ALONE = f"""class KernelsAlone(LAMB):
    def update_step(self, gradient, variable):
        if len(variable.shape) > 1:
            super().update_step(gradient, variable)


{MAKE}"""
FIRST_NORMS = f"""class FirstNorms(LAMB):
    def add_layer(self, variable):
        super().add_layer(variable)
        self.norms = [*getattr(self, "norms", ()), float(tf.norm(variable))]

    def update_step(self, gradient, variable):
        before = variable.read_value()
        super().update_step(gradient, variable)
        if self._adapts(variable):
            factor = self.norms[self.layer_index(variable)] / tf.norm(before)
            variable.assign(before + factor * (variable - before))


{MAKE}"""

ROUNDS = (
    together(
        mistake(
            1,
            "of rows",
            (NORMALIZED, NORMALIZED.replace("momentum", "axis=1, momentum")),
            said=(
                "each channel is normalized by itself",
                "no moving average is as long as there are channels",
            ),
        ),
        mistake(2, "2 for the size", (RATE, RATE.replace("hvd.size()", "2")), said="2 times"),
        mistake(
            4,
            "nothing excluded",
            (LAMB, "LAMB(full_rate(arguments.lamb_learning_rate))"),
            said="vectors move by the rate times their norm",
        ),
        mistake(
            3,
            "no warmup",
            (
                "    return [warmup, schedule]",
                "    return [tf.keras.callbacks.LearningRateScheduler("
                "lambda epoch: learning_rate * factor(epoch))]",
            ),
            said="the rates are",
        ),
    ),
    together(
        mistake(
            1,
            "averages that are too slow",
            (NORMALIZED, NORMALIZED.replace("momentum=0.9", "")),
            said="the outputs are",
        ),
        mistake(2, "the local size", (RATE, RATE.replace("size", "local_size")), said="2 times"),
        mistake(
            3,
            "a warmup that goes on",
            (WARMUP, WARMUP.replace("warmup_epochs,", "warmup_epochs + 1,")),
            said=("the rate rises with every step", "of the way at the end"),
        ),
        mistake(
            4,
            "the norms of the start",
            (MAKE, FIRST_NORMS),
            (LAMB, LAMB.replace("LAMB(", "FirstNorms(", 1)),
            said=("the norm that it has by then", "a kernel moved by 0."),
        ),
    ),
    together(
        mistake(
            1,
            "a normalization of each image",
            (NORMALIZED, "    x = tf.keras.layers.LayerNormalization()(x)\n"),
            said="rank 0: has none",
        ),
        mistake(
            2,
            "the root of the size",
            (RATE, RATE + " ** 0.5"),
            said="1.73 times",
        ),
        mistake(
            3,
            "the schedule from the start",
            (START, "start_epoch=0"),
            said=("the rate rises with every step", "the rates are 0."),
        ),
        mistake(
            4,
            "Adam",
            (LAMB, "tf.keras.optimizers.Adam(full_rate(arguments.lamb_learning_rate))"),
            said=("the rate times their norm", "a layer's update is "),
        ),
    ),
    together(
        mistake(2, "no scaling", (RATE, "return single_rate"), said="1 times"),
        mistake(
            1,
            "in training mode always",
            (NORMALIZED, NORMALIZED.replace("(x)", "(x, training=True)")),
            said="in evaluation",
        ),
        mistake(
            4,
            "SGD's rate",
            (LAMB, LAMB.replace("lamb_learning_rate", "learning_rate")),
            said=("the highest rate is LAMB's own", "the highest is 0.0"),
        ),
    ),
    together(
        mistake(2, "scaled twice", (RATE, RATE + " ** 2"), said="9 times"),
        mistake(
            1,
            "after the ReLU",
            (NORMALIZED, ""),
            (RELU, "    x = tf.keras.layers.ReLU()(x)\n" + NORMALIZED + "    return x\n"),
            said="what goes into ReLU 1 of 7 is not normalized",
        ),
        mistake(
            3,
            "a quarter of the epochs",
            (WARMUP, WARMUP.replace("warmup_epochs", "epochs // 4")),
            (START, "start_epoch=arguments.epochs // 4"),
            said=("the rate rises with every step", "the rates are 0."),
        ),
        mistake(
            4,
            "biases and normalizations stand still",
            (MAKE, KERNELS_ALONE),
            (LAMB, LAMB.replace("LAMB(", "KernelsAlone(", 1)),
            said="such a vector is 100 % away from that",
        ),
    ),
    together(
        mistake(
            3,
            "the warmup alone",
            ("    return [warmup, schedule]", "    return [warmup]"),
            said=("after the warmup the schedule alone sets the rate", ", then 0."),
        ),
        mistake(
            4,
            "a decay of biases and normalizations",
            (
                LAMB,
                LAMB.replace("from_weight_decay", "from_layer_adaptation").replace(
                    "BIAS_AND_NORM", "BIAS_AND_NORM, weight_decay=0.01"
                ),
            ),
            said=("adds no weight decay", "such a vector is"),
        ),
        spoiled=(1,),
    ),
    # Step 4 does not tell this: without step 2 its rate is LAMB's, once, as well.
    together(
        mistake(
            2,
            "scaled for SGD, and not for LAMB",
            (
                LAMB,
                LAMB.replace(
                    "full_rate(arguments.lamb_learning_rate)", "arguments.lamb_learning_rate"
                ),
            ),
            said=", or 1 times 0.0",
        ),
        mistake(
            1,
            "in the first group alone",
            (NORMALIZED, "    if x.shape[-1] == 16:\n    " + NORMALIZED),
            said="what goes into ReLU 4, 5, 6, 7 of 7 is not normalized",
        ),
        only=True,
    ),
)
