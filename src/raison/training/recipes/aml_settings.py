"""How an explainer is trained by attributive masking."""

import math
from dataclasses import dataclass

from raison.core.errors import InputError, UnknownNameError
from raison.core.unit import Granularity, check_unit
from raison.models.tokens.alignment import Merge, check_merge
from raison.numerics.losses.attributive_masking import LossWeights, MaskSize, check_mask_size

ENCODER_RATE, LOW_RANK_RATE = 4e-5, 1e-3
"""Learning rates: the published code's, for a whole backbone; and one that low-rank matrices need."""
LOSSES = ("prediction", "inverse", "size")


@dataclass(frozen=True, slots=True)
class AmlSettings:
    """How to train an explainer. The defaults are the published code's, where it has them.

    `metrics` are names or calls of metrics with one number per text; each gets the weights and the checkpoint that are
    best for it. `backbone` None is the explained model's own encoder, or MiniLM for a model that has none. `rank` None
    trains all of it. `masking` None is the mask token, or what comes next (raison.masking.substitutes). `weights` are
    those of the losses, searched for if they are None; `without` leaves a loss out ("prediction", "inverse": the
    ablations Xpred and Xinv). `checks` evaluations are made per epoch. `half` computes the training passes in bfloat16.
    `above_chance` refuses a model that is hardly better on the held-out texts than their most frequent label, if their
    labels are classes of the model.
    """

    metrics: tuple[str, ...] = ("comprehensiveness",)
    backbone: str | None = None
    rank: int | None = 4
    learning_rate: float | None = None
    masking: str | None = None
    filler: str | None = None
    size: MaskSize = "cross_entropy"
    merge: Merge = "max"
    unit: Granularity = "token"
    texts: int = 1000
    validation: int = 200
    epochs: int = 10
    batch_size: int = 20
    checks: int = 3
    weights: LossWeights | None = None
    without: str | None = None
    trials: int = 30
    search_texts: int = 450
    search_epochs: int = 2
    seed: int = 0
    half: bool = False
    above_chance: bool = False
    progress: bool = True

    @property
    def rate(self) -> float:
        """The learning rate, of training and of fine-tuning."""
        return self.learning_rate or (ENCODER_RATE if self.rank is None else LOW_RANK_RATE)


def check_settings(settings: AmlSettings) -> None:
    """Raise InputError or UnknownNameError for settings that are invalid for every model."""
    check_merge(settings.merge)
    check_mask_size(settings.size)
    check_unit(settings.unit)
    if settings.learning_rate is not None and not 0 < settings.learning_rate < math.inf:
        raise InputError(f"the learning rate cannot be {settings.learning_rate}: give a number above 0.")
    if settings.rank is not None and settings.rank < 1:
        raise InputError(f"rank cannot be {settings.rank}: give a whole number from 1 on, or None for all weights.")
    if settings.without is not None and settings.without not in LOSSES[:2]:
        raise UnknownNameError("loss to leave out", settings.without, LOSSES[:2])
    counts = ("texts", "validation", "epochs", "batch_size", "checks", "trials", "search_texts", "search_epochs")
    for name in counts:
        if getattr(settings, name) < 1:
            raise InputError(f"{name} cannot be {getattr(settings, name)}: give a whole number from 1 on.")
