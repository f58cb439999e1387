"""Predictions composed of single-token predictions."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.targets.target import Target


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The tokens of some predictions as separate predictions, a row of `encoding` for each token.

    `owners` are the numbers of the rows that the tokens belong to. Each token's row has the units of its owner, and its
    tokens keep their places. The log-probability of a prediction is the sum of those of its tokens.
    """

    model: LanguageModel
    encoding: Encoding
    target: Target
    owners: tuple[int, ...]


class TokenPredictions(Capability):
    """Splits each prediction into single-token predictions, for methods that look inside a model."""

    name: ClassVar[str] = "token_predictions"
    absence: ClassVar[str] = "does not compose its predictions of single tokens"

    @property
    @abstractmethod
    def reader(self) -> LanguageModel:
        """A model that predicts single tokens, with the capabilities that methods need."""

    @abstractmethod
    def token_rows(self, encoding: Encoding) -> Sequence[TokenRows]:
        """The tokens of all rows of an encoding."""
