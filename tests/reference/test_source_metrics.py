"""What citations are judged by: log-probability drop, linear datamodeling score, precision and recall, literally."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from raison.core.errors import InputError
from raison.core.metric import KeepRows
from raison.core.results.explanation import Explanation
from raison.metrics.linear_datamodeling_score import LinearDatamodelingScore
from raison.metrics.log_probability_drop import LogProbabilityDrop
from raison.metrics.precision_at_top import PrecisionAtTop
from raison.metrics.recall_at_top import RecallAtTop
from tests.reference.test_known_feature_metrics import Marked, explain


class ProgressCallback(Marked):
    """Evidence of a model whose log-probability is a function of what is kept."""

    def __init__(self, function) -> None:
        super().__init__(())
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "asked", [])

    def log_probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        self.asked.append((removal, keeps))
        return np.array([self.function(keep) for keep in keeps])


def weights(units: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=units)


@pytest.mark.parametrize("top", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", range(5))
def test_log_probability_drop(top, seed):
    units = 6
    scores, effects = weights(units, seed), weights(units, seed + 100)
    found = LogProbabilityDrop(top).measure(explain(scores), ProgressCallback(lambda keep: float(effects @ keep) - 3.0))
    gone = sorted(range(units), key=lambda unit: -scores[unit])[:top]
    assert found == pytest.approx(sum(effects[unit] for unit in gone))


def test_a_probability_of_zero_has_no_drop():
    evidence = ProgressCallback(lambda keep: 0.0 if keep.all() else -math.inf)
    assert math.isnan(LogProbabilityDrop().measure(explain([1.0, 0.0]), evidence))


@pytest.mark.parametrize("seed", range(5))
def test_linear_datamodeling_score(seed):
    scores, effects = weights(8, seed), weights(8, seed + 100)
    evidence = ProgressCallback(lambda keep: -math.exp(-float(effects @ keep)))
    found = LinearDatamodelingScore(samples=40).measure(explain(scores), evidence)
    [(removal, keeps)] = evidence.asked
    assert removal == explain(scores).removal
    predicted = [sum(score for score, kept in zip(scores, keep, strict=True) if kept) for keep in keeps]
    actual = [-math.exp(-sum(e for e, kept in zip(effects, keep, strict=True) if kept)) for keep in keeps]
    assert found == pytest.approx(spearmanr(predicted, actual).statistic, abs=1e-9)


def test_what_a_linear_model_says_of_itself_is_right_and_its_reverse_is_wrong():
    effects = weights(8)
    evidence = ProgressCallback(lambda keep: float(effects @ keep) - 20)
    assert LinearDatamodelingScore().measure(explain(effects), evidence) == pytest.approx(1.0)
    assert LinearDatamodelingScore().measure(explain(-2 * effects), evidence) == pytest.approx(-1.0)
    assert math.isnan(LinearDatamodelingScore().measure(explain(np.zeros(8)), evidence))


@pytest.mark.parametrize("sure", [0.0, 12.0, 24.0])
def test_how_sure_the_model_is_changes_no_rank(sure):
    """Log-probabilities near 0 differ by less and less; log-odds do not."""
    effects = weights(8)
    evidence = ProgressCallback(lambda keep: -math.log1p(math.exp(-sure - float(effects @ keep))))
    assert LinearDatamodelingScore().measure(explain(effects), evidence) == pytest.approx(1.0, abs=1e-9)


def test_outputs_that_are_certain_tie():
    assert math.isnan(LinearDatamodelingScore().measure(explain(weights(8)), ProgressCallback(lambda keep: 0.0)))


def test_removals_are_the_same_for_all_methods_and_keep_units_with_their_probability():
    one, other = explain(weights(5)), replace(explain(weights(5, 1)), method="lime", seed=7)
    metric = LinearDatamodelingScore(samples=4000, keep=0.3)
    [keeps] = metric.keeps(one).values()
    assert (keeps == next(iter(metric.keeps(other).values()))).all()
    assert np.abs(keeps.mean(0) - 0.3).max() < 0.04
    assert np.abs(np.corrcoef(keeps.T) - np.eye(5)).max() < 0.06
    # Fewer removals are the first of these, and another text has others.
    assert (next(iter(LinearDatamodelingScore(samples=10, keep=0.3).keeps(one).values())) == keeps[:10]).all()
    assert (next(iter(metric.keeps(replace(one, text="another text of it")).values())) != keeps).any()


def expected(scores, top, known, share):
    """The mean over all orders that the scores allow."""
    values = []
    for order in itertools.permutations(range(len(scores))):
        ranked = [scores[unit] for unit in order]
        if all(a >= b for a, b in itertools.pairwise(ranked)):
            hits = sum(known[unit] for unit in order[:top])
            values.append(share(hits, min(top, len(scores)), sum(known)))
    return sum(values) / len(values)


@pytest.mark.parametrize("seed", range(12))
def test_precision_and_recall_with_ties(seed):
    rng = np.random.default_rng(seed)
    units, top = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    scores, known = rng.integers(-1, 2, size=units) / 2, rng.random(units) < 0.5
    known[rng.integers(units)] = True
    explanation, evidence = explain(scores.tolist()), Marked((known,))
    precision = expected(scores, top, known, lambda hits, count, _: hits / count)
    recall = expected(scores, top, known, lambda hits, _, marked: hits / marked)
    assert PrecisionAtTop(top).measure(explanation, evidence) == pytest.approx(precision)
    assert RecallAtTop(top).measure(explanation, evidence) == pytest.approx(recall)


def test_without_a_known_unit_there_is_nothing_to_say():
    explanation: Explanation = explain([1.0, 0.0])
    for metric in (PrecisionAtTop(), RecallAtTop()):
        assert math.isnan(metric.measure(explanation, Marked((np.zeros(2, dtype=bool),))))


@pytest.mark.parametrize("metric", [LogProbabilityDrop, PrecisionAtTop, RecallAtTop])
def test_tops_are_counts(metric):
    for top in (0, -3, True):
        with pytest.raises(InputError, match="top of .* cannot be .*: give a whole number of at least 1"):
            metric(top)
    with pytest.raises(InputError):
        LinearDatamodelingScore(samples=2)
    with pytest.raises(InputError):
        LinearDatamodelingScore(keep=1.0)
