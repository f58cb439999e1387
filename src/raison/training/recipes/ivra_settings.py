"""How a model is fine-tuned, and how it is trained to explain itself (IvRA)."""

import math
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.models.derived.attention_explainer import SELECTIONS, Design
from raison.training.self_explaining.criterion import Criterion, create_criteria

DECAY_EPOCHS = 2
"""The learning rate is multiplied by the decay after so many epochs, as in the paper."""


@dataclass(frozen=True, slots=True)
class FineTuneSettings:
    """How to fine-tune a base model on the task alone: all weights but the word embeddings, without dropout.

    `rank` trains low-rank matrices in place of all weights, and the head. `texts` and `validation` rows are taken from
    the data, each label in proportion; None is all that there are, and a tenth of it. The epoch that is most accurate
    on the validation rows is kept.
    """

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-5
    rank: int | None = None
    texts: int | None = None
    validation: int | None = None
    seed: int = 0
    progress: bool = True

    def __post_init__(self) -> None:
        check_numbers(self)


@dataclass(frozen=True, slots=True)
class IvraSettings:
    """How to train a model to explain itself. The defaults are the paper's, where it has them.

    `criteria` are names, short names (sim, comp, suff, suff_mae, suff_kl, cons, clust) or calls with settings;
    `weights` are their weights relative to the task's loss (1 each by default). `form`, `norm`, `selection`, `over` and
    `initial` are the explainer's (models/derived/attention_explainer.py). The learning rate is multiplied by `decay`
    every two epochs; the explainer's coefficients learn `coefficient_rate` times as fast. `rank` trains low-rank
    matrices in place of all weights. Word embeddings are fixed.

    `student` names the model that learns from the explanations (criterion sim): "minilm", "tiny" or a folder, not
    fine-tuned. It sees `student_share` of the texts, `student_batch` at a time, and takes steps of gradient descent of
    `student_rate`; with `roll_back` it takes each step again from the updated model (MetaDistil's pilot update).

    `above_chance` refuses a model that is hardly better on the held-out texts than their most frequent label. `texts`
    and `validation` are as in FineTuneSettings. `checks` evaluations are made per epoch; the checkpoint that is best by
    the criteria (the mean of their scores) is kept.
    """

    criteria: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    form: str = "ivra"
    norm: str = "softmax"
    selection: tuple[str, ...] = SELECTIONS
    over: str = "units"
    initial: tuple[float, float] | None = None
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 3e-5
    decay: float = 0.75
    coefficient_rate: float = 100.0
    rank: int | None = None
    student: str = "minilm"
    student_share: float = 0.2
    student_batch: int = 8
    student_rate: float = 0.05
    roll_back: bool = False
    texts: int | None = None
    validation: int | None = None
    checks: int = 1
    seed: int = 0
    above_chance: bool = False
    progress: bool = True

    def __post_init__(self) -> None:
        check_numbers(self)
        self.design.check()
        criteria = self.created()
        if self.weights and len(self.weights) != len(criteria):
            raise InputError(f"{len(self.weights)} weights for {len(criteria)} criteria: give one for each, or none.")
        if any(not weight > 0 for weight in self.weights):
            raise InputError(f"weights of criteria are above 0; got {self.weights}.")
        fewest = max(criterion.fewest for criterion in criteria)
        if self.batch_size < fewest:
            raise InputError(
                f"a batch of {self.batch_size} has no pair of texts to compare: for the criterion "
                f"{', '.join(self.criteria)} give --batch-size {fewest} or more (the paper takes 64)."
            )
        if not 0 < self.student_share <= 1:
            raise InputError(f"the student's share is {self.student_share}: give a number above 0, at most 1.")

    @property
    def design(self) -> Design:
        """The explainer's."""
        return Design(self.form, self.norm, self.selection, self.over, self.initial)

    def created(self) -> tuple[Criterion, ...]:
        """The criteria. Raises InputError or UnknownNameError."""
        return create_criteria(self.criteria)

    def weighted(self) -> tuple[tuple[Criterion, float], ...]:
        """The criteria and how much each counts."""
        criteria = self.created()
        return tuple(zip(criteria, self.weights or (1.0,) * len(criteria), strict=True))


def check_numbers(settings: FineTuneSettings | IvraSettings) -> None:
    """Raises InputError for numbers that cannot be used."""
    counts = ("epochs", "batch_size", "rank", "texts", "validation", "student_batch", "checks")
    rates = ("learning_rate", "decay", "coefficient_rate", "student_rate")
    for name in type(settings).__dataclass_fields__:
        value = getattr(settings, name)
        if name in counts and value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{name} cannot be {value}: give a whole number from 1 on.")
        if name in rates and not 0 < value < math.inf:
            raise InputError(f"{name} cannot be {value}: give a number above 0.")
