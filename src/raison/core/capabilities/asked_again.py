"""Repeated requests, for models that may answer equal questions differently."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


@dataclass(frozen=True, slots=True)
class Price:
    """Requests, tokens read and written, and their cost in the currency of the caller's prices."""

    requests: int
    tokens: int
    cost: float

    def times(self, count: int) -> "Price":
        """The price of `count` evaluations."""
        return Price(self.requests * count, self.tokens * count, self.cost * count)


class AskedAgain(Capability):
    """A model behind a server: its answers depend on what else the server works on, and on how it is asked."""

    name: ClassVar[str] = "asked_again"
    absence: ClassVar[str] = "is deterministic, so asking again shows no noise"

    @property
    @abstractmethod
    def description(self) -> str:
        """The origin and the basis of the answers, in one line."""

    @property
    @abstractmethod
    def identity(self) -> list[str]:
        """Everything that determines its answers: the server, the model's name there, the prompt."""

    @abstractmethod
    def prices(self, encoding: Encoding) -> list[Price]:
        """The maximum price of one evaluation of each text, without a request."""

    @abstractmethod
    def again(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        """The logits of each text under each of its keeps, requested again in the opposite order."""

    @abstractmethod
    def bounds(self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str) -> list[float]:
        """For each text, the maximum error of a probability under these keeps if the server omits some numbers."""
