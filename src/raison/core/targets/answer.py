"""An answer that is a part of a text: characters of the context in a pair (question, context)."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Characters `start` to `end` (not included) of the context, and the text that they are."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ExplainedAnswer:
    """The explained answer, and the model's probabilities of its first and last token.

    The answer's probability is the product of the two. `predicted` is the answer that the model itself gives, which
    differs if the caller asked about another part of the context.
    """

    start: int
    end: int
    text: str
    start_probability: float
    end_probability: float
    predicted: Answer

    @property
    def is_predicted(self) -> bool:
        """Whether it is the model's own answer."""
        return (self.start, self.end) == (self.predicted.start, self.predicted.end)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ExplainedAnswer":
        """The inverse of `to_dict`. Raises KeyError or TypeError on other data."""
        return cls(**{**data, "predicted": Answer(**data["predicted"])})
