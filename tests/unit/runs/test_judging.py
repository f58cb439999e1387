"""Claims about models that were trained several times: the trainings have to agree, not only the texts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem, t, ttest_1samp

from raison.numerics.statistics.paired import Difference, difference
from raison.numerics.statistics.power import detectable
from raison.report.tables.writers import claim_text
from raison.runs.judging import FEWEST, Learned, Side, Verdict, corrected, finding_of, judged, over_trainings

LEARNED = Learned(0.9, 0.5)


def verdict(mean: float, side: Side, trainings: tuple[float, ...]) -> Verdict:
    """The verdict on 200 texts whose differences are close to this mean."""
    values = mean + np.random.default_rng(0).normal(0, 0.05, (200, 1))
    gap = difference(values, np.zeros_like(values))
    about = Verdict("it is better", "run", "metric", "row", side, "other", "missing", mean, 0.0)
    return over_trainings(judged(about, gap, LEARNED), trainings)


@pytest.mark.parametrize(
    ("trainings", "finding"),
    [
        ((), "holds"),
        ((0.1,), "holds"),
        ((0.099, 0.101), "holds"),
        ((0.05, 0.15), "undecided"),
        ((-0.02, 0.22), "undecided"),
        ((-0.01, 0.2, 0.2), "undecided"),
        ((0.08, 0.1, 0.12), "holds"),
        ((0.05, 0.1, 0.15), "undecided"),
        # Of many trainings one may differ.
        ((-0.02, *[0.12] * 7), "holds"),
        ((-0.4, -0.3, *[0.25] * 6), "undecided"),
    ],
)
def test_the_trainings_have_to_agree(trainings: tuple[float, ...], finding: str) -> None:
    assert verdict(0.1, "above", trainings).finding == finding
    mirrored = tuple(-value for value in trainings)
    assert verdict(-0.1, "below", mirrored).finding == finding
    # The same for a claim that fails.
    failed = verdict(-0.1, "above", mirrored).finding
    assert failed == {"holds": "fails"}.get(finding, finding)


def test_what_differs_is_said_and_no_number_of_texts_would_decide() -> None:
    found = verdict(0.1, "above", (-0.02, 0.22))
    assert found.differing
    assert found.note == "its 2 trainings, from -0.020 to +0.220, leave open what others would give"
    assert math.isnan(found.needed)
    assert "80 % power" not in claim_text(found)
    assert found.note in claim_text(found)
    agreed = verdict(0.1, "above", (0.08, 0.1, 0.12))
    assert not agreed.differing
    assert agreed.needed == max(FEWEST, agreed.difference.needed)
    assert "80 % power" in claim_text(agreed)


def test_what_is_not_decided_stays_as_it_is() -> None:
    undecided = verdict(0.0, "above", ())
    assert undecided.finding == "undecided"
    other = over_trainings(undecided, (-1.0, 1.0))
    assert (other.finding, other.differing) == ("undecided", True)
    assert over_trainings(undecided, (0.5,)) == undecided
    missing = replace(undecided, finding="missing")
    assert over_trainings(missing, (-1.0, 1.0)) == missing


@pytest.mark.parametrize("trainings", [(0.08, 0.1, 0.12), (0.05, 0.09, 0.1, 0.12, 0.15)])
def test_a_verdict_has_the_p_and_the_power_of_its_trainings(trainings: tuple[float, ...]) -> None:
    found = verdict(0.1, "above", trainings)
    parts = sem(trainings) ** 2, found.difference.error**2
    error, freedom = sum(parts) ** 0.5, sum(parts) ** 2 / (parts[0] ** 2 / (len(trainings) - 1) + parts[1] ** 2 / 199)
    both = 2 * t.sf(np.mean(trainings) / error, freedom)
    alone = parts[0] ** 0.5, len(trainings) - 1
    wider = max((error, freedom), alone, key=lambda one: t.isf(0.025, one[1]) * one[0])
    assert found.p == pytest.approx(max(both, ttest_1samp(trainings, 0.0).pvalue))
    assert found.p > found.difference.p
    assert found.detectable == pytest.approx(detectable(*wider))
    assert found.detectable > found.difference.detectable
    [adjusted] = corrected([found])
    assert adjusted.adjusted == found.p


def test_values_of_trainings_are_counted_once() -> None:
    """Where a value is that of a training, the trainings' variance is all there is: Student's test of them."""
    trainings = (0.01, 0.06, 0.02, 0.05, 0.09, 0.03, 0.01, 0.04)
    values = np.array(trainings)[:, None]
    claim = Verdict("says", "run", "metric", "row", "above", "other", "missing")
    given = judged(claim, difference(values, np.zeros_like(values)), Learned(0.9, 0.5))
    found = over_trainings(given, trainings, alone=True)
    assert found.trainings is not None
    wanted = t.interval(0.95, len(trainings) - 1, np.mean(trainings), sem(trainings))
    assert (found.trainings.low, found.trainings.high) == pytest.approx(wanted)
    assert found.trainings.p == pytest.approx(ttest_1samp(trainings, 0.0).pvalue)
    twice = over_trainings(given, trainings).trainings
    assert twice is not None
    assert twice.p > found.trainings.p


@pytest.mark.parametrize("deviation", [0.0005, 0.03])
def test_the_smallest_difference_is_found_in_four_of_five_cases(deviation: float) -> None:
    """Where texts deviate more, and where trainings do, whose own deviation three of them hardly show."""
    rng, found, smallest = np.random.default_rng(0), 0, []
    true, error = (0.036, 0.0125) if deviation < 0.01 else (0.1, 0.0125)
    for _ in range(300):
        trainings = true + rng.normal(0, error) + rng.normal(0, deviation, 3)
        mean = float(trainings.mean())
        gap = Difference(mean, mean - 1.97 * error, mean + 1.97 * error, 0.01, 256, error=error)
        claim = Verdict("says", "run", "metric", "row", "above", "other", finding_of(gap, "above"), difference=gap)
        one = over_trainings(claim, tuple(trainings))
        found += one.finding == "holds"
        smallest.append(one.detectable)
    assert np.median(smallest) == pytest.approx(true, rel=0.1 if deviation < 0.01 else 0.35)
    assert 0.7 < found / 300 < 0.9


def test_equal_trainings_are_rarely_told_apart() -> None:
    """Two recipes that are equally good, of which each training deviates: few verdicts, however many texts."""
    rng = np.random.default_rng(0)
    decided = 0
    for _ in range(40):
        deviations = rng.normal(0, 0.03, 3)
        decided += verdict(float(deviations.mean()), "above", tuple(deviations)).finding in ("holds", "fails")
    assert decided <= 6


def test_no_fewer_values_are_needed_than_a_verdict_takes() -> None:
    assert verdict(2.0, "above", ()).needed == FEWEST
