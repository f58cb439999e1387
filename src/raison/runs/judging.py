"""The rule for deciding claims, shared by studies of scores, of trust and of trainings, and for audits.

    too few     fewer than 8 paired values: with so few, an interval decides half of the cases by chance
    not judged  the model did not learn its task: its accuracy is at most 10 points above the share of the largest class
    holds       the 95 % interval of the difference lies wholly on the claimed side of zero
    fails       it lies wholly on the other side
    undecided   otherwise

From 8 to 29 values a second test has to agree (p < 0.05), or the claim is undecided; benchmarks/claim_rules has the
simulation behind these numbers. It is the studentised bootstrap. Hits and misses have an exact test with any number of
values: McNemar's for pairs, the binomial one against a number, and a bet where a pair's claim allows a margin
(numerics.statistics.paired). Equal differences have, with any number, the chance of not having seen others
(numerics.statistics.studentised). Where the range of the values is known, as for an audit's lights, a bet on it may
decide as well (numerics.statistics.bounded). Holm's correction over all judged claims of a study is reported, too.

The interval is over texts. Where models were trained several times, Student's 95 % interval over trainings and texts
(`over_trainings`) has to lie on the same side, and its p-value counts as a further test: other trainings are what the
claim speaks of, too. Two trainings decide only if their differences hardly differ.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from raison.core.errors import InputError
from raison.core.settings.reading import plain_values
from raison.numerics.statistics.multiple import holm
from raison.numerics.statistics.paired import FEW, Difference
from raison.numerics.statistics.power import SIGNIFICANCE
from raison.numerics.statistics.student import FEWEST, student_interval, student_p

Side = Literal["above", "below"]
Caveat = Literal["exploratory", "by construction"]
"""Why a claim proves less than others: stated after its records had been seen, or unable to fail."""
Finding = Literal["holds", "fails", "undecided", "too few", "not judged", "missing"]

LEARNED = 0.1
"""How much a model's accuracy must exceed the share of the largest class."""
JUDGED: frozenset[Finding] = frozenset({"holds", "fails", "undecided"})

UNKNOWN = Difference(math.nan, math.nan, math.nan, math.nan, 0)

RULE = (
    "A claim holds if the 95 % interval of the difference lies wholly on its side of zero, fails if it lies wholly on "
    "the other side, and is undecided otherwise. Where models were trained with several seeds, Student's interval over "
    f"trainings and texts has to lie on that side, too. Fewer than {FEWEST} values are too few; with fewer than 30 the "
    "studentised bootstrap must agree, and with any number a test of hits and misses (McNemar's, the binomial one "
    "against a number, or a bet where a margin is allowed), and the chance of having missed others if all differences "
    "are equal. It is not judged if the model's accuracy exceeds the share of the largest class by at most 10 points, "
    "and missing if the records lack its subject."
)
"""The rule in the words of reports."""


@dataclass(frozen=True, slots=True)
class Border:
    """A value, and the side of it on which a mean is expected."""

    side: Side
    at: float


@dataclass(frozen=True, slots=True)
class Learned:
    """A model's accuracy and its task's majority class: shares from 0 to 1, NaN if unknown.

    `accuracy` is measured on the texts that `where` names; `majority` is the share of the largest class in the study's
    texts.
    """

    accuracy: float = math.nan
    majority: float = math.nan
    where: str = "these texts"

    def __post_init__(self) -> None:
        for name in ("accuracy", "majority"):
            value = getattr(self, name)
            if not (math.isnan(value) or 0 <= value <= 1):
                raise InputError(f"{name} is {value}: give a share of texts from 0 to 1.")

    @property
    def failed(self) -> bool:
        """Whether the model is known not to have learned its task."""
        # A model at the border (44.3 % against 34.3 %) is excluded regardless of rounding.
        return self.accuracy - self.majority <= LEARNED + 1e-9

    @property
    def says(self) -> str:
        """The numbers as text, for verdicts that depend on them or lack them."""
        accuracy = "unknown" if math.isnan(self.accuracy) else f"{self.accuracy:.1%} on {self.where}"
        majority = "unknown" if math.isnan(self.majority) else f"{self.majority:.1%}"
        return f"accuracy {accuracy}, largest class {majority}"

    @property
    def known(self) -> bool:
        """Whether both numbers are known."""
        return not (math.isnan(self.accuracy) or math.isnan(self.majority))


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim on one run: `row` is `side` `than` (another row, or a number) by `metric`.

    `mean` and `than_mean` are the two values in the table. `difference` has NaN for what is unknown; on a group metric
    it counts groups instead of texts. `adjusted` is the claim's p-value after Holm's correction over the study; NaN for
    claims that were not tested. `accuracy` is the model's share of correct predictions, NaN if unknown. `note` says why
    a claim was not judged, or what is unknown about its model. `trainings` is the difference over the trainings, if the
    models were trained several times. `caveat` is the claim's own.
    """

    says: str
    run: str
    metric: str
    row: str
    side: Side
    than: str | float
    finding: Finding
    mean: float = math.nan
    than_mean: float = math.nan
    difference: Difference = UNKNOWN
    adjusted: float = math.nan
    note: str = ""
    accuracy: float = math.nan
    trainings: Difference | None = None
    caveat: Caveat | None = None

    @property
    def differing(self) -> bool:
        """Whether its trainings leave the side open, which no number of texts would change."""
        over = self.trainings
        return over is not None and not (over.low > 0 or over.high < 0)

    @property
    def p(self) -> float:
        """The largest p-value of the tests that were made."""
        over = math.nan if self.trainings is None else self.trainings.p
        return float(np.fmax(self.difference.confirmed, over))

    @property
    def detectable(self) -> float:
        """The smallest true difference that these values, and these trainings, find with 80 % power; NaN if unknown."""
        over = math.nan if self.trainings is None else self.trainings.detectable
        return float(np.fmax(self.difference.detectable, over))

    @property
    def needed(self) -> float:
        """The number of values that would show the difference; NaN if it is unknown, or if they would not decide."""
        return math.nan if self.differing or math.isnan(self.difference.needed) else max(FEWEST, self.difference.needed)

    @property
    def survives(self) -> bool | None:
        """Whether a verdict survives Holm's correction; None for a claim that neither holds nor fails."""
        return self.adjusted < SIGNIFICANCE if self.finding in ("holds", "fails") else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, the properties among them; NaN becomes None."""
        names = ("differing", "p", "detectable", "needed", "survives")
        return plain_values(asdict(self) | {name: getattr(self, name) for name in names})


def finding_of(gap: Difference, side: Side) -> Finding:
    """The verdict on the claim that a difference lies on one side of zero; see the module for the rule."""
    if gap.count < FEWEST:
        return "too few"
    low, high = (gap.low, gap.high) if side == "above" else (-gap.high, -gap.low)
    # A NaN interval gives no verdict, and with few values no second test gives none either.
    agreed = gap.second < SIGNIFICANCE or (gap.count >= FEW and math.isnan(gap.second))
    if not agreed:
        return "undecided"
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def over_trainings(verdict: Verdict, trainings: Sequence[float], alone: bool = False) -> Verdict:
    """The verdict, undecided if other trainings may turn it; `trainings` has the difference in each.

    `alone` says that the values of the verdict are those of the trainings, and not of texts.

    Trainings and texts are both samples: the variance of the mean is the sum of those over trainings and over texts,
    with Satterthwaite's degrees of freedom (1946). Two or three trainings may be alike by chance, and these degrees are
    then too many: the interval reaches at least as far as that over the trainings alone.
    """
    count, gap = len(trainings), verdict.difference
    if verdict.finding not in JUDGED or count < 2:
        return verdict
    mean = float(np.mean(trainings))
    of_texts = 0.0 if alone or math.isnan(gap.error) else gap.error**2
    parts = np.array([np.var(trainings, ddof=1) / count, of_texts])
    error = math.sqrt(parts.sum())
    freedom = float(parts.sum() ** 2 / (parts**2 / [count - 1, gap.count - 1]).sum()) if error > 0 else count - 1.0
    both = ((error, freedom), (math.sqrt(parts[0]), count - 1.0))
    half, error, freedom = max((student_interval(0.0, *one)[1], *one) for one in both)
    p = max(student_p(mean, *one) for one in both)
    over = Difference(mean, mean - half, mean + half, p, count, error=error, freedom=freedom)
    positive = (verdict.side == "above") == (verdict.finding == "holds")
    if verdict.finding != "undecided" and ((over.low > 0) if positive else (over.high < 0)):
        return replace(verdict, trainings=over)
    found = replace(verdict, finding="undecided", trainings=over)
    if not found.differing:
        return found
    ends = f"from {min(trainings):+.3f} to {max(trainings):+.3f}"
    note = f"its {count} trainings, {ends}, leave open what others would give"
    return replace(found, note="; ".join(part for part in (verdict.note, note) if part))


def judged(verdict: Verdict, gap: Difference, learned: Learned) -> Verdict:
    """The verdict on a claim with known values; it stays "missing" without a common value."""
    if not gap.count:
        return verdict
    finding = finding_of(gap, verdict.side)
    note = f"at least {FEWEST} are needed" if finding == "too few" else ""
    if learned.failed:
        finding, note = "not judged", learned.says
    elif not learned.known:
        note = "; ".join(part for part in (note, learned.says) if part)
    return replace(verdict, finding=finding, difference=gap, note=note, accuracy=learned.accuracy)


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """A study's verdicts with Holm's p-values over all its claims that were judged."""
    tested = [verdict.p if verdict.finding in JUDGED else math.nan for verdict in verdicts]
    adjusted = holm(tested)
    return [replace(verdict, adjusted=p) for verdict, p in zip(verdicts, adjusted, strict=True)]
