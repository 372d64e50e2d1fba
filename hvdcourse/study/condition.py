"""How one run of a study trains: every setting that can differ between two runs."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from hvdcourse.errors import BadInput


@dataclass(frozen=True)
class Condition:
    """The settings of a run, all but its seed.

    Attributes:
        data: what ``hvdcourse.data.sets.load`` takes.
        images: train on the first so many images; None for all.
        hold_out: how many of the training images are held out and tested on, in place of the test
            images: for the choice of settings, which must not look at the test images.
        model: ``"convnet"``, ``"wide_resnet"`` or ``"transformer"``.
        width: 8 times as many filters in convnet's first layers, 16 times in wide_resnet's; as many
            features of each token in the transformer, a multiple of 4.
        blocks: of the transformer, of attention and a dense layer each.
        layer_norm: of the transformer, ``"post"`` or ``"pre"``: after each sum or before.
        batch_norm: ``"none"``, ``"local"`` (each rank over its own batch) or ``"sync"``.
        ghost_batches: parts into which each rank's batch is cut for local batch normalization.
        batch_norm_momentum: how much of the moving averages stays in each update: one a step, or
            one for each ghost batch.
        optimizer: ``"sgd"`` with momentum 0.9, ``"adam"``, ``"lamb"`` or ``"novograd"``.
        learning_rate: the rate at ``base_batch_size``.
        scaling: how the rate grows with k = global batch size / base batch size: not
            (``"none"``), k times (``"linear"``) or √k times (``"sqrt"``).
        base_batch_size: images a step that ``learning_rate`` is meant for.
        warmup_epochs: over so many epochs the rate rises, step by step, to its full height: from
            ``learning_rate``, or from 0 where it is not scaled.
        schedule: ``"constant"``, or ``"step"``: a tenth after half of the epochs, and a hundredth
            after three quarters.
        weight_decay: of LAMB and NovoGrad; biases and normalization have none.
        ranks: how many processes train together.
        batch_size: images a step on each rank.
        epochs: times to go through the images.
        target: end as soon as this test accuracy is reached.
        evaluate_every: steps between two looks at the target; None for once an epoch.
        measure_noise: estimate the gradient noise scale; needs 2 ranks.
        keep_trust_ratios: record LAMB's trust ratio of every layer and step.
        keep_weights: put the weights at the end beside the records.
    """

    data: str = "digits"
    images: PositiveInt | None = None
    hold_out: NonNegativeInt = 0
    model: Literal["convnet", "wide_resnet", "transformer"] = "convnet"
    width: PositiveInt = 4
    blocks: PositiveInt = 12
    layer_norm: Literal["post", "pre"] = "post"
    batch_norm: Literal["none", "local", "sync"] = "none"
    ghost_batches: PositiveInt = 1
    batch_norm_momentum: Annotated[float, Field(ge=0, le=1)] = 0.99
    optimizer: Literal["sgd", "adam", "lamb", "novograd"] = "sgd"
    learning_rate: PositiveFloat = 0.05
    scaling: Literal["none", "linear", "sqrt"] = "none"
    base_batch_size: PositiveInt = 32
    warmup_epochs: NonNegativeFloat = 0
    schedule: Literal["constant", "step"] = "constant"
    weight_decay: NonNegativeFloat = 0.0
    ranks: PositiveInt = 1
    batch_size: PositiveInt = 32
    epochs: PositiveInt = 12
    target: float | None = None
    evaluate_every: PositiveInt | None = None
    measure_noise: bool = False
    keep_trust_ratios: bool = True
    keep_weights: bool = False

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            try:
                allowed.validate_python(value)
            except ValidationError as error:
                expected = error.errors()[0]["msg"].removeprefix("Input ")
                raise BadInput(f"{name} {expected}; got {value!r}") from None
        if self.measure_noise and self.ranks < 2:
            raise BadInput("measure_noise compares ranks: it needs ranks of 2 or more")
        if self.ghost_batches > 1 and self.batch_norm != "local":
            raise BadInput(f"ghost_batches need batch_norm 'local'; got {self.batch_norm!r}")
        if self.model == "transformer" and self.width % 4:
            raise BadInput(f"width of a transformer must be a multiple of 4; got {self.width}")

    @classmethod
    def from_mapping(cls, name: str, settings: Mapping[str, Any]) -> "Condition":
        """Return the condition of this name. Raises BadInput for a setting that does not exist."""
        known = {field.name for field in fields(cls)}
        for setting in settings:
            if setting not in known:
                close = difflib.get_close_matches(str(setting), known, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise BadInput(f"condition {name!r}: there is no setting {setting!r}{hint}")
        try:
            return cls(**settings)
        except BadInput as error:
            raise BadInput(f"condition {name!r}: {error}") from None

    def images_of(self, count: int) -> int:
        """Return how many of so many training images it trains on.

        Raises:
            BadInput: that is more than there are, or fewer than one for each rank.
        """
        left = count - self.hold_out
        if self.images is not None and self.images > left:
            raise BadInput(f"images={self.images}, but there are {max(left, 0)} to train on")
        trained = left if self.images is None else self.images
        if min(trained, self.hold_out or self.ranks) < self.ranks:
            raise BadInput(
                f"{self.ranks} ranks need an image each to train on and one to test on; there are "
                f"{max(trained, 0)}, and {self.hold_out} held out"
            )
        return trained

    @property
    def global_batch_size(self) -> int:
        """Images a step on all ranks together."""
        return self.ranks * self.batch_size

    @property
    def full_rate(self) -> float:
        """The learning rate after the warmup: scaled as ``scaling`` says."""
        k = self.global_batch_size / self.base_batch_size
        return self.learning_rate * {"none": 1.0, "linear": k, "sqrt": math.sqrt(k)}[self.scaling]

    def rate_at(self, step: int, steps_per_epoch: int) -> float:
        """Return the learning rate of a step, counted from 0 over the whole run.

        In the warmup (arXiv:1706.02677, section 2.2) the rate rises in equal parts, and the step
        at which the warmup has ended is the first one at its full height.
        """
        warmup_steps = round(self.warmup_epochs * steps_per_epoch)
        if step < warmup_steps:
            start = 0.0 if self.scaling == "none" else self.learning_rate
            return start + step / warmup_steps * (self.full_rate - start)
        epoch = step // steps_per_epoch
        falls = (epoch >= self.epochs / 2) + (epoch >= self.epochs * 3 / 4)
        return self.full_rate * (0.1**falls if self.schedule == "step" else 1.0)


# Strict: True is no number, and "1" is none.
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_ALLOWED: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(kind, config=_STRICT)
    for name, kind in get_type_hints(Condition, include_extras=True).items()
}
