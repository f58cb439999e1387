"""The lights of an audit, and what random scores are told apart from."""

from dataclasses import replace

import numpy as np
import pytest

from raison.core.results.scores import MetricScores, Scores
from raison.runs.judging import Border
from raison.studies.kinds.audit.evidence import (
    CORRELATION,
    HALF,
    LOST,
    SHARE,
    STEADY,
    UNRELATED,
    AuditFinding,
    _along,
    attacks,
    changes,
    faithful,
    light_of,
    parameters,
)
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT
from raison.studies.kinds.audit.sections import answer
from raison.studies.kinds.audit.spec import AuditPlan
from raison.trust.records import Attacked, AttackKey, BlockSimilarity, SimilarityKey
from raison.trust.results import AttackedHead, RandomisedHead, TrustHead, TrustRun, VariantHead
from raison.trust.tables import summary

GREEN, RED = Border("below", 0.25), Border("above", 0.5)


@pytest.mark.parametrize(
    ("values", "light"),
    [
        ([1.0] * 8, "red"),
        ([1.0] * 7 + [0.9], "red"),
        ([1.0, 0.9, 0.8, 0.9, 1.0, 0.8, 0.9, 0.9], "red"),
        ([0.6] * 8, "amber"),
        ([0.0] * 12, "green"),
        ([0.1] * 12, "amber"),
        ([0.1] * 20, "green"),
        ([0.0] * 8, "amber"),
        ([1.0] * 7, "grey"),
    ],
)
def test_a_method_that_always_breaks_breaks(values: list[float], light: str) -> None:
    assert light_of(values, GREEN, RED, SHARE, LOST)[0] == light


def test_a_light_whose_interval_is_on_the_green_side_is_undecided() -> None:
    assert light_of([0.01] * 8, GREEN, RED, SHARE, LOST) == ("amber", True)
    # Eight texts without a loss: of one text in four, none might have been drawn.
    assert light_of([0.0] * 8, GREEN, RED, SHARE, LOST) == ("amber", False)
    assert light_of([0.6] * 8, GREEN, RED, SHARE, LOST) == ("amber", False)
    assert answer(AuditFinding("attacks", "amber", None, "", undecided=True)) == "undecided"
    assert answer(AuditFinding("attacks", "amber", None, "")) == "bends"


def test_a_perfect_result_of_a_default_audit_is_green() -> None:
    assert light_of([0.0] * AuditPlan().attacked, GREEN, RED, SHARE, LOST) == ("green", False)


def test_rare_failures_that_few_texts_would_miss_leave_a_light_undecided() -> None:
    """Explanations that agree by 0.93, but on one text in five not at all: on average they are below the border."""
    rng = np.random.default_rng(0)
    green, red = Border("above", STEADY), Border("below", HALF)

    def share_green(texts: int, failures: float) -> float:
        values = np.where(
            rng.random((60, texts)) < failures, rng.normal(0, 0.15, (60, texts)), rng.normal(0.93, 0.03, (60, texts))
        )
        lights = [light_of(row, green, red, CORRELATION, UNRELATED)[0] for row in np.clip(values, -1, 1).tolist()]
        return lights.count("green") / len(lights)

    assert all(share_green(texts, 0.2) <= 0.05 for texts in (8, 12, 24))
    assert share_green(AuditPlan().changed, 0.0) > 0.7


@pytest.mark.parametrize("blocks", [1, 2, 6, 12])
def test_the_mean_along_a_curve_is_that_of_the_randomised_blocks(blocks: int) -> None:
    """An explanation that keeps a correlation of 0.3 whatever is randomised has 0.3, also with a single block."""
    curve = np.array([1.0, *[0.3] * blocks])
    assert _along(float(np.trapezoid(curve, dx=1 / blocks)), blocks) == pytest.approx(0.3)


def scores(worths: np.ndarray) -> Scores:
    """A method whose comprehensiveness and sufficiency are as good."""
    metrics = (
        MetricScores(COMPREHENSIVE, True, tuple(worths.tolist()), summary(worths)),
        MetricScores(SUFFICIENT, False, tuple((1 - worths).tolist()), summary(1 - worths)),
    )
    return Scores("made", metrics, summary([1.0]), summary([0.0]), summary([0.1]))


def test_few_texts_show_nothing_of_any_method() -> None:
    random = np.array([0.1, 0.2, 0.3, 0.1, 0.2])
    worse, better = faithful([scores(random - 0.1), scores(random + np.linspace(0.4, 0.5, 5))], scores(random))
    assert (worse.light, worse.shown) == ("grey", False)
    assert (better.light, better.shown) == ("grey", False)


def test_of_many_methods_one_is_not_better_by_chance() -> None:
    """Eleven methods, none of which is better than random scores: rarely is one shown to be."""
    rng = np.random.default_rng(0)
    found = [faithful([scores(rng.normal(size=20)) for _ in range(11)], scores(rng.normal(size=20))) for _ in range(12)]
    assert sum(any(one.shown for one in audit) for audit in found) <= 1
    better, *_ = faithful([scores(rng.normal(2, 1, 20)) for _ in range(11)], scores(rng.normal(size=20)))
    assert (better.light, better.shown) == ("green", True)


def test_what_the_correction_takes_away_is_said() -> None:
    """Twelve texts that show it of one method alone do not show it of the best of eleven."""
    rng = np.random.default_rng(1)
    random, better = scores(np.zeros(12)), scores(np.linspace(-0.3, 1, 12))
    [alone] = faithful([better], random)
    assert (alone.light, alone.shown) == ("green", True)
    assert "Holm" not in alone.says
    among, *_ = faithful([better, *(scores(rng.normal(size=12)) for _ in range(10))], random)
    assert (among.light, among.shown) == ("amber", False)
    assert "not after Holm's correction over the methods" in among.says


def run_of(attacked: AttackedHead | None, randomised: RandomisedHead | None = None) -> TrustRun:
    return TrustRun(TrustHead("t", "m", "d", "d", randomised, attacked), {}, {})


WORDS = VariantHead("substitution", "constrained", ("occlusion",))
GRADIENTS = {"embedding": {"occlusion": "it has no gradient", "lime": "it is random"}, "substitution": {"lime": "too"}}


@pytest.mark.parametrize(
    ("method", "boundary", "single", "why"),
    [
        ("occlusion", (), (), "Not attacked: not measured yet."),
        ("occlusion", (0, 1), (), "Not attacked: on every text, two classes are equally probable."),
        ("occlusion", (0,), (1,), "No tested text has more than one unit, so there is no order to compare."),
        ("lime", (), (), "Not attacked: it is random; too."),
    ],
)
def test_the_reason_why_nothing_was_attacked_is_that_of_this_method(
    method: str, boundary: tuple[int, ...], single: tuple[int, ...], why: str
) -> None:
    found = attacks(run_of(AttackedHead(2, boundary, (WORDS,), GRADIENTS)), method, "", single)
    assert (found.light, found.value, found.says) == ("grey", None, why)


def test_whether_a_text_has_an_order_is_asked_of_the_tested_ones() -> None:
    head = RandomisedHead(2, ("lime",), ("cascading",), 1, 1, {"occlusion": "it is a function"})
    trust = run_of(None, head)
    assert parameters(trust, "lime", {0, 1}).says.startswith("No tested text has more than one unit")
    assert parameters(trust, "lime", {0}).says == "No text has a complete curve yet."
    assert parameters(trust, "occlusion", {0}).says == "Not randomised: it is a function."
    assert changes(None, "lime", {0, 1}).says == "Not measured yet."


def test_an_interval_of_few_values_keeps_to_what_is_possible() -> None:
    found = {
        SimilarityKey("lime", "cascading", 1, 0, text): BlockSimilarity(
            "lime", "cascading", 1, 1, 0, text, rho, rho, rho
        )
        for text, rho in enumerate((1.0, -0.9, 1.0))
    }
    head = RandomisedHead(3, ("lime",), ("cascading",), 1, 1, {})
    value = parameters(replace(run_of(None, head), similarities=found), "lime", ()).value
    assert value is not None
    assert (value.low, value.high) == (-1.0, 1.0)


def test_a_text_on_which_no_change_kept_the_prediction_was_not_attacked() -> None:
    head = AttackedHead(3, (), (WORDS,), {})

    def tried(*held: bool) -> TrustRun:
        return replace(
            run_of(head),
            attacks={
                AttackKey("occlusion", "substitution", "constrained", text): Attacked(
                    "occlusion", "substitution", "constrained", text, 1, float(kept), 0.0, 0.1, int(kept), kept
                )
                for text, kept in enumerate(held)
            },
        )

    found = attacks(tried(True, True, False), "occlusion", "", ())
    assert found.value is not None
    assert (found.value.count, found.value.mean) == (2, 1.0)
    assert "over 2 texts" in found.says
    assert "On 1 more text it found no change that keeps the prediction." in found.says
    none = attacks(tried(False, False, False), "occlusion", "", ())
    assert (none.light, none.value) == ("grey", None)
    assert none.says == "Not attacked: no change was found that keeps the prediction."
