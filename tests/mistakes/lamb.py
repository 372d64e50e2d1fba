"""Mistakes in ``lamb.py``."""

from mistakes.round import mistake, together

M = "m.assign(self.beta_1 * m + (1 - self.beta_1) * g)"
V = "v.assign(self.beta_2 * v + (1 - self.beta_2) * tf.square(g))"
CORRECTION = "m_hat = m / (1 - self.beta_1**t)"
ROOT = "r = m_hat / (tf.sqrt(v_hat) + self.epsilon)"
DECAY = "u = r + self.decay * x"
RATIO = "return tf.where((x_norm > 0) & (u_norm > 0), x_norm / u_norm, 1.0)"
EXCLUDES = "return any(re.search(pattern, name) for pattern in self.exclude)"

ROUNDS = (
    together(
        mistake(
            1, "shares swapped", (M, M.replace("self.beta_1", "(1 - self.beta_1)")), said="m is"
        ),
        mistake(2, "no correction", (CORRECTION, "m_hat = m"), said="times what it should be"),
        mistake(
            3, "times the rate", (DECAY, "u = r + self.learning_rate * self.decay * x"), said="u"
        ),
        mistake(
            4,
            "upside down",
            (RATIO, RATIO.replace("x_norm / u_norm", "u_norm / x_norm")),
            said="the ratio is",
        ),
        mistake(
            5,
            "a part of the name, no expression",
            (EXCLUDES, "return any(pattern in name for pattern in self.exclude)"),
            said="is not excluded",
        ),
    ),
    together(
        mistake(
            1, "no square", (V, V.replace("tf.square(g)", "tf.abs(g)")), said="the second moment v"
        ),
        mistake(
            2,
            "ε under the root",
            (ROOT, "r = m_hat / tf.sqrt(v_hat + self.epsilon)"),
            said="the direction r",
        ),
        mistake(3, "subtracted", (DECAY, DECAY.replace("+", "-")), said="u is"),
        mistake(4, "one for all", (RATIO, "return 1.0"), said="the ratio is 1;"),
        mistake(
            5,
            "from the beginning",
            (EXCLUDES, EXCLUDES.replace("search", "match")),
            said="is not excluded",
        ),
    ),
    together(
        mistake(1, "sums", (M, "m.assign(self.beta_1 * m + g)"), said="times what it should be"),
        mistake(
            2, "no root", (ROOT, ROOT.replace("tf.sqrt(v_hat)", "v_hat")), said="the direction r"
        ),
        mistake(
            3, "the norm of the weights", (DECAY, "u = r + self.decay * tf.norm(x)"), said="u is"
        ),
        mistake(
            4,
            "at most 10, as in the paper's clipping",
            (RATIO, RATIO.replace("x_norm / u_norm", "tf.minimum(x_norm, 10.0) / u_norm")),
            said="the ratio is",
        ),
        mistake(
            5, "all of them", (EXCLUDES, EXCLUDES.replace("any", "all")), said="is not excluded"
        ),
    ),
    together(
        mistake(1, "the old v", (V, V.replace("self.beta_2 * v", "v")), said="the second moment v"),
        mistake(
            2,
            "β₁ twice",
            ("v_hat = v / (1 - self.beta_2**t)", "v_hat = v / (1 - self.beta_1**t)"),
            said="the direction r",
        ),
        mistake(3, "twice", (DECAY, "u = r + 2 * self.decay * x"), said="u is"),
        mistake(
            4,
            "squares",
            (RATIO, RATIO.replace("x_norm / u_norm", "(x_norm / u_norm) ** 2")),
            said="the ratio is",
        ),
        mistake(
            5, "the whole name", (EXCLUDES, "return name in self.exclude"), said="is not excluded"
        ),
    ),
    together(
        mistake(
            1, "of g², not of g", (M, M.replace("* g)", "* g * g)")), said="the first moment m"
        ),
        mistake(
            2,
            "updates counted from 0",
            (CORRECTION, CORRECTION.replace("**t", "**(t - 1)")),
            said="the direction r has numbers that are not finite",
        ),
        mistake(5, "none of them", (EXCLUDES, "return False"), said="is not excluded"),
        spoiled=(3, 4),
    ),
    together(
        mistake(
            1,
            "gradients cut at a norm of 1",
            (M, f"g = tf.clip_by_norm(g, 1.0)\n        {M}"),
            said="the first moment m",
        ),
        mistake(3, "of the update", (DECAY, "u = r + self.decay * r"), said="u is"),
        mistake(
            4,
            "no care for zeros",
            (RATIO, "return x_norm / u_norm"),
            said="the ratio is",
        ),
        mistake(
            5,
            "the name without its end",
            (EXCLUDES, EXCLUDES.replace("name)", 'name.split(":")[0])')),
            said="is not excluded",
        ),
    ),
    together(
        mistake(3, "of kernels alone", (DECAY, f"{DECAY} if len(x.shape) > 1 else r"), said="u is"),
        mistake(
            4,
            "for kernels alone",
            (RATIO, f"{RATIO} if len(x.shape) > 1 else 1.0"),
            said="the ratio is",
        ),
    ),
    together(
        mistake(
            1,
            "a new m that nobody keeps",
            (M, "m = self.beta_1 * m + (1 - self.beta_1) * g"),
            said="it is made from zero, as in the first update",
        ),
        mistake(
            5,
            "capital letters ignored",
            (EXCLUDES, EXCLUDES.replace("name)", "name, re.IGNORECASE)")),
            said="none of the patterns fits",
        ),
    ),
)
