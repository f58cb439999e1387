"""A criterion of explanations, and its view of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.encoding import Encoding
from raison.core.registry import Catalogue, name_of
from raison.core.settings.fields import Setting, check

ALIASES = {
    "sim": "simulatability",
    "comp": "comprehensiveness",
    "suff": "sufficiency",
    "suff_mae": "absolute_sufficiency",
    "suff_kl": "divergence_sufficiency",
    "cons": "consistency",
    "clust": "clustering",
}
"""The paper's short names."""
Shares = Annotated[
    tuple[float, ...], Setting(above=0, most=1, fewest=1, words="shares above 0, 1 at most, such as 0.1")
]
"""Shares of a text's tokens."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The student's results on a batch: the loss of equation 7, and for each text whether it agreed."""

    loss: Float[Tensor, ""]
    agreed: Bool[Tensor, " batch"]


class TrainingStep(Protocol):
    """A batch as the model sees it in one pass. `shares` are the explanations, with sum 1 over `explained`."""

    encoding: Encoding
    labels: Int[Tensor, "batch parts"]
    decisions: Float[Tensor, "batch parts choices"]
    shares: Float[Tensor, "batch tokens"]
    explained: Bool[Tensor, "batch tokens"]
    scored: Bool[Tensor, "batch tokens"]
    """Tokens that can be removed."""
    training: bool

    @property
    def predicted(self) -> Int[Tensor, "batch parts"]:
        """The model's prediction: its strongest class, or a span's strongest start and end. No gradient."""

    @property
    def states(self) -> Float[Tensor, "batch tokens hidden"]:
        """The mean of the layers' hidden states, zero on padding. Requested by `Criterion.reads_states`."""

    def kept(self, keep: Float[Tensor, "batch tokens"]) -> Float[Tensor, "batch parts choices"]:
        """Decisions after mixing embeddings: keep x each token's own + (1 - keep) x that of a removed token.

        One pass. Tokens that cannot be removed are always kept.
        """

    def portions(self, shares: Sequence[float]) -> list[Float[Tensor, " batch"]]:
        """Shares of top tokens: in training one drawn for each text, otherwise all, one after another."""

    def simulate(self, weight: float, smoothing: float) -> Simulated:
        """Let the student learn from explanations by equation 7 (`weight` is that of its second term).

        In training, this is one step of equations 14 and 15, on texts of the student's own share: the loss is that of
        the updated student, and its gradient is that of the model through the update. Outside training, the student is
        not updated.
        """


@dataclass(frozen=True)
class Criterion(ABC):
    """A loss on explanations: a frozen record of its settings, with a loss and a score. Its name is its file's name.

    Raises InputError for settings outside of what their fields allow.
    """

    def __post_init__(self) -> None:
        check(self, f"the criterion {name_of(self)}")

    @property
    def reads_states(self) -> bool:
        """Whether hidden states are needed."""
        return False

    @property
    def fewest(self) -> int:
        """Minimum number of texts in a batch."""
        return 1

    @property
    def fewest_scored(self) -> int:
        """Minimum number of texts in a batch that has a score."""
        return self.fewest

    @property
    def takes_logarithms(self) -> bool:
        """Whether a token's share must not be zero."""
        return False

    @property
    def trains_student(self) -> bool:
        """Whether a student is needed."""
        return False

    @abstractmethod
    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        """The number to minimise, differentiable in the model's weights and the explainer's coefficients."""

    @abstractmethod
    def score(self, step: TrainingStep) -> list[float]:
        """What the criterion measures, higher is better: a number per text, or one for the batch. No gradients."""


CRITERIA: Catalogue[Criterion] = Catalogue("raison.training.criteria", "criterion", Criterion)


def create_criteria(specs: Sequence[str]) -> tuple[Criterion, ...]:
    """Criteria from names, short names or calls. Raises UnknownNameError; InputError for none or a repeated one."""
    if not specs:
        raise InputError(f"no criterion: give at least one of {', '.join(ALIASES)}.")
    criteria = tuple(_created(spec.strip()) for spec in specs)
    names = [name_of(criterion) for criterion in criteria]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the criterion {twice[0]} is given twice: name each once.")
    return criteria


def _created(spec: str) -> Criterion:
    name, bracket, settings = spec.partition("(")
    if name not in ALIASES and name not in CRITERIA.names:
        raise UnknownNameError("criterion", name, (*ALIASES, *CRITERIA.names))
    return CRITERIA.create(ALIASES.get(name, name) + bracket + settings)
