"""A study's claims, checked against its records by the rule of raison.runs.judging."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raison.numerics.statistics.paired import Difference, against, difference
from raison.report.style import phrases
from raison.report.tables.records import Claims, Section, Text
from raison.runs.judging import UNKNOWN, Learned, Verdict, corrected, judged, over_trainings
from raison.studies.folder import Claim, WrittenStudy
from raison.studies.kind import kind_of


@dataclass(frozen=True, slots=True)
class PairedSample:
    """The paired values that a claim compares, one row for each text (or group); `second` may be a number.

    `metric`, `row` and `than` describe the comparison in words. The means are those of the tables. `interval` is that
    of the difference from a number, if the table has its own.
    """

    metric: str
    row: str
    than: str | float
    first: np.ndarray
    second: np.ndarray | float
    mean: float
    than_mean: float
    learned: Learned
    pool: str = "mean"
    interval: tuple[float, float] | None = None
    accuracy: float | None = None
    """Shown for information; it does not decide."""
    trainings: tuple[float, ...] = ()
    """The difference in each training, if models were trained several times."""
    of_trainings: bool = False
    """Whether each value is that of one training, and not of texts."""
    shift: float = 0.0
    """What is added to the second."""

    @property
    def gap(self) -> Difference:
        """The difference of the first and the second; unknown if they have different texts."""
        if isinstance(self.second, np.ndarray):
            # A group metric leaves out groups on which it is undefined: the others cannot be paired.
            same = self.first.shape == self.second.shape
            return difference(self.first, self.second, self.pool, shift=self.shift) if same else UNKNOWN
        gap = against(self.first, self.second + self.shift, self.pool)
        return gap if self.interval is None else replace(gap, low=self.interval[0], high=self.interval[1])

    def moved(self, shift: float) -> "PairedSample":
        """The same rows, to be compared with `shift` added to the second. Values are means, not parts of a pool."""
        if not shift:
            return self
        return replace(
            self,
            than=f"{self.than} {shift:+g}",
            shift=shift,
            than_mean=self.than_mean + shift,
            trainings=tuple(gap - shift for gap in self.trainings),
        )


def claims_section(results: WrittenStudy) -> Section:
    """A study's claims with their results, as a section of its report. Raises DataError."""
    claims = Claims(tuple(verdicts(results)))
    if not results.header.withdrawn:
        return Section("Claims", (claims,))
    return Section("Claims", (claims, Text(withdrawn_text([claim.says for claim in results.header.withdrawn]))))


def withdrawn_text(claims: Sequence[str]) -> str:
    """What is said of claims that a study no longer makes, from what they said."""
    said = "; ".join(dict.fromkeys(claims))
    return f"Withdrawn after the records had been seen ({phrases.count(len(claims), 'claim')}): {said}."


def verdicts(results: WrittenStudy) -> list[Verdict]:
    """The verdict on every claim of a study in every place (a run, a task) that it covers. Raises DataError."""
    known = kind_of(results.folder).results
    return corrected(
        [
            _verdict(claim, place, known.sample(results, claim, place))
            for claim in results.header.claims
            for place in known.places(results, claim)
        ]
    )


def _verdict(claim: Claim, place: str, sample: PairedSample | None) -> Verdict:
    if sample is None:
        than = claim.row if claim.than == "" else claim.than
        return Verdict(claim.says, place, claim.measured, claim.row, claim.side, than, "missing", caveat=claim.caveat)
    sample = sample.moved(claim.shift)
    about = (claim.says, place, sample.metric, sample.row, claim.side, sample.than)
    verdict = judged(Verdict(*about, "missing", sample.mean, sample.than_mean), sample.gap, sample.learned)
    verdict = over_trainings(verdict, sample.trainings, sample.of_trainings)
    accuracy = verdict.accuracy if sample.accuracy is None else sample.accuracy
    return replace(verdict, accuracy=accuracy, caveat=claim.caveat)
