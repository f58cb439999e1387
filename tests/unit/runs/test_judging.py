"""Claims about models that were trained several times: the trainings have to agree, not only the texts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from raison.numerics.statistics.paired import difference
from raison.report.tables.writers import claim_text
from raison.runs.judging import Learned, Side, Verdict, judged, over_trainings

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
        ((0.05, 0.15), "holds"),
        ((-0.02, 0.22), "undecided"),
        ((-0.01, 0.2, 0.2), "undecided"),
        ((0.05, 0.1, 0.15), "holds"),
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
    assert found.note == "its 2 trainings differ, from -0.020 to +0.220"
    assert math.isnan(found.needed)
    assert "80 % power" not in claim_text(found)
    assert found.note in claim_text(found)
    agreed = verdict(0.1, "above", (0.08, 0.12))
    assert not agreed.differing
    assert agreed.needed == agreed.difference.needed
    assert "80 % power" in claim_text(agreed)


def test_what_is_not_decided_stays_as_it_is() -> None:
    undecided = verdict(0.0, "above", ())
    assert undecided.finding == "undecided"
    assert over_trainings(undecided, (-1.0, 1.0)) == undecided
    missing = replace(undecided, finding="missing")
    assert over_trainings(missing, (-1.0, 1.0)) == missing
