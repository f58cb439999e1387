"""Results of randomisation and attacks for one explanation: plain numbers, one line of a file each."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from raison.core.results.explanation import Explanation
from raison.core.settings.reading import plain_values

CHUNK = 16
"""The texts that are explained together. Fixed, so that a resumed run repeats the same batches."""

Order = Literal["cascading", "independent"]
AttackObjective = Literal["unconstrained", "constrained"]
Attack = Literal["embedding", "substitution", "noise"]


class SimilarityKey(NamedTuple):
    """Which similarity a record holds."""

    method: str
    order: Order
    blocks: int
    draw: int
    text: int


class AttackKey(NamedTuple):
    """Which attack a record is about."""

    method: str
    attack: Attack
    objective: AttackObjective
    text: int


@dataclass(frozen=True, slots=True)
class BlockSimilarity:
    """The similarity of explanations of a model and of the same model with randomised blocks.

    `blocks` counts, in the order "cascading", the randomised blocks, from the last back. In the order "independent" it
    is the number of the single randomised block, 1 being the last. `of` is the number of all blocks. Measures are NaN
    if an explanation has no order (equal scores).
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
    def key(self) -> SimilarityKey:
        return SimilarityKey(self.method, self.order, self.blocks, self.draw, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        return plain_values(asdict(self))


@dataclass(frozen=True, slots=True)
class Attacked:
    """The effect of an attack on one explanation.

    `attack` "noise" is the control: the best of several random changes of the same size. `k` is the number of top units
    that the attack pushes down. `rank_change` is the share of the first k ranks that another unit holds afterwards,
    `sum_change` the decrease of the sum of the k units' scores, `probability_change` the decrease of the explained
    class's probability, or of a model's one number in its own units (negative if it rose). `steps` is the number of
    steps made. `held` is False if no change was found that keeps the prediction; the measures are then those of no
    change, zero.
    """

    method: str
    attack: Attack
    objective: AttackObjective
    text: int
    k: int
    rank_change: float
    sum_change: float
    probability_change: float
    steps: int
    held: bool

    @property
    def key(self) -> AttackKey:
        return AttackKey(self.method, self.attack, self.objective, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        return plain_values(asdict(self))


@dataclass(frozen=True, slots=True)
class Substituted:
    """The effect of replacing words, with both explanations; they are equal if nothing was replaced."""

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
