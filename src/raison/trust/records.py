"""What randomisation and attacks found out about one explanation: plain numbers, one line of a file each."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from raison.core.explanation import Explanation

Order = Literal["cascading", "independent"]
Objective = Literal["unconstrained", "constrained"]
Attack = Literal["embedding", "substitution", "noise"]


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike an explanation of a model and that of the same model with randomised blocks are.

    `blocks` counts, in the order "cascading", how many blocks were randomised, from the last back; in the order
    "independent" it is the number of the one block that was, 1 being the last. `of` is how many blocks there are.
    Measures are NaN where an explanation has no order (equal scores).
    """

    method: str
    order: Order
    blocks: int
    of: int
    draw: int
    text: int
    spearman: float
    kendall: float
    overlap: float

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        return (self.method, self.order, self.blocks, self.draw, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, NaN included; the store writes it as None."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Attacked:
    """What an attack did to one explanation.

    `attack` "noise" is the control: the best of random changes of the same size, as many as the attack's steps allow
    or as it says itself. `k` is the number of top units that the attack pushes down. `rank_change` is the share of
    the first k ranks that another unit holds afterwards, `sum_change` the fall of the k units' scores together,
    `probability_change` the fall of the explained class's probability (negative where it rose). `steps` is how many
    were made. `held` is False where no change was found that keeps the prediction: the measures are then those of no
    change, zero.
    """

    method: str
    attack: Attack
    objective: Objective
    text: int
    k: int
    rank_change: float
    sum_change: float
    probability_change: float
    steps: int
    held: bool

    @property
    def key(self) -> tuple[str, str, str, int]:
        return (self.method, self.attack, self.objective, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Substituted:
    """What replacing words did, with both explanations, which hold the texts; equal ones where nothing was replaced."""

    record: Attacked
    before: Explanation
    after: Explanation

    def to_dict(self) -> dict[str, Any]:
        """Plain values: which explanation was attacked, and both."""
        return {
            "method": self.record.method,
            "text": self.record.text,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
