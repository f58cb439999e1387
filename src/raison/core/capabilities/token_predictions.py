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
    """The tokens of some predictions as predictions of their own, a row of `encoding` for each token.

    `owners` are the numbers of the rows whose tokens they are. Rows have the units, and their tokens the places, that
    these rows have. The log-probability of a prediction is the sum of those of its tokens.
    """

    model: LanguageModel
    encoding: Encoding
    target: Target
    owners: tuple[int, ...]


class TokenPredictions(Capability):
    """Gives each prediction as those of its tokens, for methods that look inside a model, which reads one at a time."""

    name: ClassVar[str] = "token_predictions"
    absence: ClassVar[str] = "does not compose its predictions of single tokens"

    @property
    @abstractmethod
    def reader(self) -> LanguageModel:
        """A model of single tokens, whose capabilities hold for all of them."""

    @abstractmethod
    def token_rows(self, encoding: Encoding) -> Sequence[TokenRows]:
        """The tokens of all rows of an encoding."""
