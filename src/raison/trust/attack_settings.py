"""The settings of an attack in embedding space, checked once."""

import math
from dataclasses import dataclass
from typing import Literal

from raison.core.errors import InputError
from raison.core.settings.fields import check as check_fields
from raison.numerics.measures.ranking import check_share
from raison.trust.records import AttackObjective

Optimiser = Literal["descent", "adam", "sign"]


@dataclass(frozen=True, slots=True)
class EmbeddingAttack:
    """The thesis's top-k attack (its sections 2.3 and 3.5, whose settings are the defaults).

    `objective` "unconstrained" only requires the same prediction. "constrained" adds `beta` times the squared change of
    the explained class's probability to the loss (`alpha` times the sum of the original top units' scores). If a model
    outputs one number, its change is divided by the whole text's effect on it, and the prediction counts as the same up
    to a change of 0.05.

    `epsilon` bounds every number of a word embedding's change. With `relative`, epsilon, the learning rate and the
    tolerance are in standard deviations of the embedding table's numbers. k = floor(`share` * units), at least 1, or
    `k` itself.

    At most `steps` steps of gradient descent of length `learning_rate` times the gradient, halved every `halve_every`
    steps. A text stops once no number moved by `tolerance` or more for `patience` steps in a row. Plain descent stops
    at once where gradients are small, as for confident predictions; "adam" and "sign" take steps of the rate's own
    size.

    `draws` random changes are the control.
    """

    objective: AttackObjective = "constrained"
    epsilon: float = 2.0
    relative: bool = False
    share: float = 0.15
    k: int | None = None
    alpha: float = 1.0
    beta: float = 1.0
    steps: int = 500
    learning_rate: float = 0.1
    halve_every: int = 200
    tolerance: float = 1e-5
    patience: int = 20
    optimiser: Optimiser = "descent"
    draws: int = 16

    def __post_init__(self) -> None:
        check_fields(self)
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InputError(
                f"epsilon is {self.epsilon}: nothing could be changed, so there is no attack. Give the maximum change "
                "of an entry of a word embedding, such as 2.0, or 1.0 with relative=True."
            )
        check_share(self.share)
        for name in ("steps", "halve_every", "patience", "draws"):
            check_count(name, getattr(self, name))
        if self.k is not None:
            check_count("k", self.k)
        for name, least in (("alpha", True), ("learning_rate", True), ("beta", False), ("tolerance", False)):
            _check_amount(name, getattr(self, name), above=least)

    @property
    def penalty(self) -> float:
        """The weight of the squared change of probability: none for the unconstrained objective."""
        return self.beta if self.objective == "constrained" else 0.0


def check_count(name: str, value: object) -> None:
    """InputError unless it is a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise InputError(f"{name} of an attack cannot be {value!r}: give a whole number of at least 1.")


def _check_amount(name: str, value: float, above: bool) -> None:
    if not math.isfinite(value) or value < 0 or (above and value == 0):
        raise InputError(f"{name} of an attack cannot be {value!r}: give a number {'above' if above else 'from'} 0.")
