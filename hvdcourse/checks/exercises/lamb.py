"""What each step of ``lamb.py`` must make true, update by update and layer by layer, on 3 ranks.

Each value is judged by those that it is made of, as the rank kept them: a mistake shows in its own
step, and not in all that follows from it.
"""

import random
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hvdcourse.checks.evidence import ObservedRun, demand
from hvdcourse.checks.exercise import UNEVEN_HOSTS, Exercise, Step, Trial
from hvdcourse.checks.exercises.lamb_updates import TOLERANCE, LayerUpdate, difference, updates_of

UPDATES = 4
# Each choice has a pattern whose second part fits within a name, one that fits a name's end, and
# one that fits none, because of a capital letter. None fits norm/gamma, which is long, nor the
# first layer's or the head's kernel, whose gradient or weights are zero at first.
PATTERNS = (
    r"beta|_2/k,_[23]/bias:0,Head",
    r"hidden_2/k|beta,n_1/bias:,NORM",
    r"^hidden_2|/beta,d/bias:0$,Kernel",
    r"beta|_\d/b,d/bias:0,Gamma",
)


def arguments() -> dict[str, Any]:
    """Return arguments for one run: layers, weights, samples and hyperparameters by chance.

    The last hidden layer is so wide that its normalization's weights have a norm above 10, and the
    head's gradient one above 1, which some implementations cut off.
    """
    units = [random.randrange(3, 8) for _ in range(random.choice((4, 5)))]
    units[-2] = random.randrange(105, 120)
    return {
        "learning_rate": round(random.uniform(0.02, 0.1), 4),
        "beta_1": round(random.uniform(0.5, 0.9), 4),
        "beta_2": round(random.uniform(0.8, 0.98), 4),
        "epsilon": round(random.uniform(0.01, 0.1), 4),
        "weight_decay": round(random.uniform(0.1, 0.3), 4),
        "exclude": random.choice(PATTERNS),
        "units": ",".join(map(str, units)),
        "updates": UPDATES,
        "seed": f"{random.randrange(1, 1000)}{{rank}}",
    }


def moments(
    m: np.ndarray, v: np.ndarray, g: np.ndarray, beta_1: float, beta_2: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return both moments after the gradient g."""
    return beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2


def direction(
    m: np.ndarray, v: np.ndarray, t: int, beta_1: float, beta_2: float, epsilon: float
) -> np.ndarray:
    """Return r of update t, counted from 1, from the moments after its gradient."""
    return m / (1 - beta_1**t) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)


def trust_ratio(x: np.ndarray, u: np.ndarray) -> float:
    """Return the weights' norm over the update's, or 1 where either is zero."""
    norms = np.linalg.norm(x), np.linalg.norm(u)
    return float(norms[0] / norms[1]) if all(norms) else 1.0


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is found in the layer's name."""
    return any(re.search(pattern, name) for pattern in patterns)


def demand_of_updates(
    run: ObservedRun,
    expected: str,
    complaint: Callable[[LayerUpdate], str],
    evidence: Callable[[LayerUpdate], Any],
    missing: str,
) -> None:
    """Demand that there is nothing to complain about in any update of any rank.

    ``evidence`` says, by what is true or not, which updates can show the step at all. Where there
    are none, the step is not met, and ``missing`` says why.
    """
    met, lines = [], []
    for rank in run.ranks:
        updates = list(updates_of(run, rank))
        complaints = [f"{update}, {text}" for update in updates if (text := complaint(update))]
        if not any(evidence(update) for update in updates):
            complaints = [missing]
        met.append(not complaints)
        more = f"; and {len(complaints) - 1} more like it" if len(complaints) > 1 else ""
        lines.append(complaints[0] + more if complaints else "as it should be")
    demand(expected, met, lines)


def is_open(layer: LayerUpdate, made: str) -> bool:
    """Whether a layer is not excluded, and has numbers under this name to go on with."""
    return not layer.excluded and bool(np.isfinite(layer.made[made]).all())


def check_moments(run: ObservedRun) -> None:
    betas = run.arguments["beta_1"], run.arguments["beta_2"]

    def complaint(layer: LayerUpdate) -> str:
        zero = np.zeros_like(layer.g)
        names = {"m": "the first moment m", "v": "the second moment v"}
        kept = moments(layer.before["m"], layer.before["v"], layer.g, *betas)
        anew = moments(zero, zero, layer.g, *betas)
        for name, expected, from_zero in zip(names, kept, anew, strict=True):
            value = layer.made[name]
            if text := difference(names[name], value, expected):
                is_anew = value.any() and not difference(names[name], value, from_zero)
                return text + (": it is made from zero, as in the first update" if is_anew else "")
        return ""

    demand_of_updates(
        run,
        f"with β₁ = {betas[0]} and β₂ = {betas[1]}, m and v are running means of g and g², where "
        "g is the mean of all ranks' gradients",
        complaint,
        lambda layer: layer.g.any(),
        "every gradient is zero",
    )


def check_direction(run: ObservedRun) -> None:
    names = ("beta_1", "beta_2", "epsilon")
    beta_1, beta_2, epsilon = (run.arguments[name] for name in names)

    def complaint(layer: LayerUpdate) -> str:
        m, v = layer.made["m"], layer.made["v"]
        r = direction(m, v, layer.t, beta_1, beta_2, epsilon)
        return difference("the direction r", layer.made["r"], r)

    demand_of_updates(
        run,
        "r is the corrected first moment over the sum of ε and the root of the corrected second "
        f"one (β₁ = {beta_1}, β₂ = {beta_2}, ε = {epsilon})",
        complaint,
        lambda layer: all(layer.made[name].any() for name in "mv"),
        "m or v is zero in every update, see step 1",
    )


def check_decay(run: ObservedRun) -> None:
    def complaint(layer: LayerUpdate) -> str:
        if layer.excluded:
            return ""
        return difference("u", layer.made["u"], layer.made["r"] + layer.decay * layer.x)

    demand_of_updates(
        run,
        f"u is r + λ x with λ = {run.arguments['weight_decay']}, and r where λ = 0",
        complaint,
        lambda layer: layer.decay and layer.x.any() and is_open(layer, "r"),
        "every layer is excluded, or r is not finite, see step 2",
    )


def check_trust_ratio(run: ObservedRun) -> None:
    rate = run.arguments["learning_rate"]

    def complaint(layer: LayerUpdate) -> str:
        u = layer.made["u"]
        if not np.isfinite(u).all():
            return ""
        ratio = trust_ratio(layer.x, u)
        if not layer.excluded and not abs(layer.ratio - ratio) <= TOLERANCE * ratio:
            norms = f"‖x‖ = {np.linalg.norm(layer.x):.3g} and ‖u‖ = {np.linalg.norm(u):.3g}"
            return f"the ratio is {layer.ratio:.4g}; with {norms} it should be {ratio:.4g}"
        step, x_size = -rate * layer.ratio * u, float(np.abs(layer.x).max())
        return difference("the change of the weights", layer.x_after - layer.x, step, x_size)

    demand_of_updates(
        run,
        "the trust ratio is ‖x‖ / ‖u‖, and 1 where either is zero; the weights change by "
        f"−η · ratio · u (η = {rate})",
        complaint,
        lambda layer: is_open(layer, "u"),
        "every layer is excluded, or u is not finite, see step 2 or 3",
    )


def check_exclusions(run: ObservedRun) -> None:
    patterns = run.arguments["exclude"].split(",")

    def fits(layer: LayerUpdate) -> bool:
        return is_excluded(f"{layer.name}:0", patterns)

    def complaint(layer: LayerUpdate) -> str:
        if not fits(layer):
            message = "none of the patterns fits, but the layer is excluded"
            return message if layer.excluded else ""
        if not layer.excluded:
            return "one of the patterns fits, but the layer is not excluded"
        if layer.ratio != 1:
            return f"the layer is excluded, but its trust ratio is {layer.ratio:.4g}"
        decayed = difference("u", layer.made["u"], layer.made["r"])
        return f"the layer is excluded, but {decayed} (u = r)" if decayed else ""

    demand_of_updates(
        run,
        f"layers with a name in which one of the patterns {patterns} is found have no weight decay "
        "and the trust ratio 1, and no other layers",
        complaint,
        fits,
        "no layer has such a name",
    )


STEPS = (
    Step(number=1, title="Moments follow the gradient and its square", check=check_moments),
    Step(number=2, title="The direction is right from the first update on", check=check_direction),
    Step(number=3, title="Weight decay is in the update, not in the gradient", check=check_decay),
    Step(
        number=4,
        title="The trust ratio sets each layer's step, and is 1 for a norm of zero",
        check=check_trust_ratio,
    ),
    Step(number=5, title="Layers are excluded by their names", check=check_exclusions),
)

EXERCISE = Exercise(
    name="lamb",
    notebook="04_convergence",
    trials=lambda _: [Trial(hosts=UNEVEN_HOSTS, arguments=arguments())],
    steps=STEPS,
)
