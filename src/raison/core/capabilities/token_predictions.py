"""Predictions that consist of predictions of single tokens."""

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
    absence: ClassVar[str] = "makes each prediction at once"

    @property
    @abstractmethod
    def reader(self) -> LanguageModel:
        """A model of single tokens, which says what can be asked of them all."""

    @abstractmethod
    def token_rows(self, encoding: Encoding) -> Sequence[TokenRows]:
        """The tokens of all rows of an encoding."""
