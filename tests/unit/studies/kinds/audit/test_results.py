"""The lights of an audit, and which methods it may recommend."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from raison.core.results.scores import MetricScores, Scores
from raison.runs.judging import Border
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT
from raison.studies.kinds.audit.results import SHARE, AuditFinding, _faithful, light_of, read
from raison.studies.kinds.audit.sections import answer
from raison.studies.kinds.audit.spec import AuditPlan
from raison.trust.tables import summary

COMMITTED = Path(__file__).parents[5] / "studies" / "audit_sst2" / "audit"
GREEN, RED = Border("below", 0.25), Border("above", 0.5)


@pytest.mark.parametrize(
    ("values", "light"),
    [
        ([1.0] * 8, "red"),
        ([1.0] * 7 + [0.9], "red"),
        ([1.0, 0.9, 0.8, 0.9, 1.0, 0.8, 0.9, 0.9], "red"),
        ([0.6] * 8, "amber"),
        ([0.0] * 12, "green"),
        ([0.0] * 8, "amber"),
        ([1.0] * 7, "grey"),
    ],
)
def test_a_method_that_always_breaks_breaks(values: list[float], light: str) -> None:
    assert light_of(values, GREEN, RED, SHARE)[0] == light


def test_a_light_whose_interval_is_on_the_green_side_is_undecided() -> None:
    assert light_of([0.0] * 8, GREEN, RED, SHARE) == ("amber", True)
    assert light_of([0.6] * 8, GREEN, RED, SHARE) == ("amber", False)
    assert answer(AuditFinding("attacks", "amber", None, "", undecided=True)) == "undecided"
    assert answer(AuditFinding("attacks", "amber", None, "")) == "bends"


def test_a_perfect_result_of_a_default_audit_is_green() -> None:
    assert light_of([0.0] * AuditPlan().attacked, GREEN, RED, SHARE) == ("green", False)


def test_a_few_texts_worse_than_random_scores_recommend_nothing() -> None:
    def scores(*worths: float) -> Scores:
        metrics = (
            MetricScores(COMPREHENSIVE, True, worths, summary(worths)),
            MetricScores(SUFFICIENT, False, tuple(1 - worth for worth in worths), summary(1 - one for one in worths)),
        )
        return Scores("of five texts", metrics, summary([1.0]), summary([0.0]), summary([0.1]))

    random = scores(0.1, 0.2, 0.3, 0.1, 0.2)
    worse, better = (
        _faithful(scores(*given), random) for given in ((0.1, 0.1, 0.2, 0.1, 0.2), (0.3, 0.2, 0.3, 0.1, 0.2))
    )
    assert (worse.light, worse.shown) == ("grey", False)
    assert (better.light, better.shown) == ("grey", True)


def test_what_was_not_shown_is_said_in_other_words() -> None:
    assert answer(AuditFinding("faithful", "amber", None, "")) == "partly"
    assert answer(AuditFinding("faithful", "amber", None, "", shown=False)) == "not shown"
    assert answer(AuditFinding("changes", "grey", None, "")) == "not tested"


def test_a_method_whose_strongest_attack_is_missing_gets_no_light(tmp_path: Path) -> None:
    shutil.copytree(COMMITTED, tmp_path / "audit")
    for packed in (tmp_path / "audit").rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    assert read(tmp_path / "audit")["integrated_gradients"]["attacks"].light == "red"
    attacks = tmp_path / "audit" / "trust" / "attacks.jsonl"
    kept = [line for line in attacks.read_text().splitlines(keepends=True) if json.loads(line)["attack"] != "embedding"]
    attacks.write_text("".join(kept))
    found = read(tmp_path / "audit")["integrated_gradients"]["attacks"]
    assert (found.light, found.value) == ("grey", None)
    assert found.says.startswith("Not finished: ")
