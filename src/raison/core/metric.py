"""A metric: the quality of one explanation, or of a group of them. evaluate.py averages."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from raison.core.capabilities.embeddings import Shift
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Unit
from raison.core.results.explanation import Explanation
from raison.core.settings.settled import Settled

KeepRows = Bool[np.ndarray, "masks units"]
Mask = Bool[np.ndarray, " units"]


IN_PLACE = "in_place"
"""The removal of a metric that masks, which must keep the length of the text.

It is the removal that the explanation was made with: the run's own if set, otherwise the model's default. If
that deletes, it is the model's first removal that does not. A metric that deletes by definition has the default
`removal="delete"` instead. A removal that the caller sets takes precedence.
"""


class Need(StrEnum):
    """A metric's requirement besides the model's predictions; if it is not met, this is reported before anything
    runs."""

    RATIONALES = "rationales"
    """The data marks which parts of each text matter."""
    EMBEDDINGS = "embeddings"
    """The model's word embeddings can be moved."""
    HIDDEN_STATES = "hidden_states"
    """The model's hidden states can be read."""
    SEVERAL_TEXTS = "several_texts"
    """More than one text."""
    CLASSES = "classes"
    """The model's outputs are classes or labels with probabilities, not one number or the likelihood of a statement."""
    PROBABILITIES = "probabilities"
    """The explained output has a probability: it is a class, a label or a statement, not one number."""
    WHOLE_TEXTS = "whole_texts"
    """The model makes one prediction for the whole text, not predictions at positions in it."""
    VALUES = "values"
    """The explained value is that of one prediction, not a sum over the tokens of an output."""
    METHOD = "method"
    """The method itself, to explain another text; a single selected map is not enough."""


@dataclass(frozen=True, slots=True)
class Rewording:
    """Another wording of a text. It counts only if the explained class's probability moves by at most `tolerance`.

    For a model of one number, the number may move by at most this share of how far the whole text moves it; the same
    holds for the log-probability of a statement that a language model wrote. The `text` of a statement is the text
    itself, and `edit` names an edit that the model makes of it (OtherWordings).
    """

    text: Given
    tolerance: float
    edit: str = ""


@dataclass(frozen=True, slots=True)
class Reworded:
    """The scores of the same method with the same seed for the same class of another wording."""

    units: tuple[Unit, ...]
    scores: Float[np.ndarray, " units"]


@runtime_checkable
class Evidence(Protocol):
    """What a metric can request about one text."""

    @property
    def rationales(self) -> tuple[Mask, ...]:
        """For each annotator, which units matter; empty where the data does not say (see Need.RATIONALES)."""

    def probabilities(self, keeps: KeepRows, removal: str) -> Float[np.ndarray, " masks"]:
        """Probability of the explained class under each keep.

        For a model of one number it is that number, and for a statement that a language model wrote, its
        log-probability: differences of its tiny probability would say nothing.

        `removal` is one of the model's, or IN_PLACE. Whatever `Metric.keeps` announced has been computed in one go
        with all other texts and metrics; anything else is computed on the spot.
        """

    def log_probabilities(self, keeps: KeepRows, removal: str) -> Float[np.ndarray, " masks"]:
        """Log-probability of the explained class or statement under each keep."""

    def values(self, keeps: KeepRows, removal: str) -> Float[np.ndarray, " masks"]:
        """The explained value (probability, logit, ... of the explanation's own target) under each keep."""

    def shifted_scores(self, shift: Shift) -> Float[np.ndarray, " units"]:
        """Scores of the same method with the same seed when the word embeddings are shifted.

        Explains again: computed in one go for all texts where `Metric.shifts` announced it.
        """

    def reworded(self, rewording: Rewording) -> Reworded | None:
        """Scores of the same method with the same seed for another wording of the text.

        None if it does not count: the probability moves too far, or the model reads exactly the same tokens. Computed
        in one go for all texts where `Metric.rewordings` announced it.
        """


@dataclass(frozen=True)
class Metric(Settled, ABC):
    """A number per explanation. Its name is its file's name.

    Its fields are its settings. Their types, and a Setting in `Annotated`, say which values they may have.
    """

    reference: ClassVar[str]
    higher_is_better: ClassVar[bool | None]
    """None if neither is better: the metric is descriptive."""
    needs: ClassVar[frozenset[Need]] = frozenset()
    ordered: ClassVar[bool] = True
    """Depends only on the order of the scores, so a better order gives a better value."""

    @property
    def pool(self) -> str:
        """How the means over texts of the results of `measure` become one value: a key of POOLS in
        numerics.statistics.bootstrap."""
        return "mean"

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        """The keeps that `measure` will request, by removal, so that all can be computed together."""
        return {}

    def shifts(self, explanation: Explanation) -> Sequence[Shift]:
        """The shifts under which `measure` will ask for the scores, so that texts can be explained together."""
        return ()

    def rewordings(self, explanation: Explanation) -> Sequence[Rewording]:
        """The wordings that `measure` will request, so that texts can be explained together."""
        return ()

    @abstractmethod
    def measure(self, explanation: Explanation, evidence: Evidence) -> float | tuple[float, ...]:
        """The metric's value on one text, NaN where it is undefined; or the parts that `pool` names."""


@runtime_checkable
class GroupEvidence(Protocol):
    """What a group metric can request about its texts together."""

    def hidden_states(self) -> list[Float[np.ndarray, "_tokens hidden"]]:
        """Hidden states of each text's own tokens, special ones included, averaged over all layers.

        One pass per text, whenever they are requested.
        """

    def once(self, name: str, made: Callable[[], np.ndarray]) -> np.ndarray:
        """An array that depends on the texts alone: made for the first explanations of them that the metric evaluates,
        and kept for those by other methods and seeds. `name` distinguishes what one metric keeps.
        """


@dataclass(frozen=True)
class GroupMetric(Settled, ABC):
    """A number for many explanations of one method together. Its name is its file's name, its fields its settings."""

    reference: ClassVar[str]
    higher_is_better: ClassVar[bool | None]
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SEVERAL_TEXTS})
    fewest: ClassVar[int] = 2
    """Texts without which it is undefined."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that decide its values: resumed work must find them unchanged."""
        return ()

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Texts in a group, None for all of them. The last group may be smaller."""

    @abstractmethod
    def measure(self, explanations: Sequence[Explanation], evidence: GroupEvidence) -> Sequence[float]:
        """The values of one group, to be averaged with those of the others."""
