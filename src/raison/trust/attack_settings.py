"""The settings of an attack in embedding space, checked once."""

from dataclasses import dataclass
from typing import Annotated, Literal

from raison.core.settings.fields import Setting, check
from raison.trust.records import AttackObjective

Optimiser = Literal["descent", "adam", "sign"]
CountSetting = Annotated[int, Setting(least=1)]
ShareSetting = Annotated[float, Setting(above=0, most=1)]
OWNER = "an attack"
"""Whose settings these are, in error messages."""


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
    epsilon: Annotated[float, Setting(above=0)] = 2.0
    relative: bool = False
    share: ShareSetting = 0.15
    k: Annotated[int | None, Setting(least=1)] = None
    alpha: Annotated[float, Setting(above=0)] = 1.0
    beta: Annotated[float, Setting(least=0)] = 1.0
    steps: CountSetting = 500
    learning_rate: Annotated[float, Setting(above=0)] = 0.1
    halve_every: CountSetting = 200
    tolerance: Annotated[float, Setting(least=0)] = 1e-5
    patience: CountSetting = 20
    optimiser: Optimiser = "descent"
    draws: CountSetting = 16

    def __post_init__(self) -> None:
        check(self, OWNER)

    @property
    def penalty(self) -> float:
        """The weight of the squared change of probability: none for the unconstrained objective."""
        return self.beta if self.objective == "constrained" else 0.0
