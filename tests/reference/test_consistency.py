"""Consistency against a double loop over pairs, and its distances against loops over positions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

import raison
from raison.core.errors import InputError, UnknownNameError
from raison.core.results.explanation import Explanation
from raison.metrics.consistency import Consistency
from raison.numerics.measures.distances import padded_distances, positionwise_distances
from tests.toys import Linear

TEXTS = ["good film", "not a terrible film .", "um wonderful film not bad", "bad", "good fine film . bad", "not good"]


@dataclass
class States:
    """core.metric.GroupEvidence from given hidden states."""

    states: list[np.ndarray]

    def hidden_states(self) -> list[np.ndarray]:
        return self.states

    def once(self, name: str, made: Callable[[], np.ndarray]) -> np.ndarray:
        return made()


@pytest.fixture(scope="module")
def explanations() -> list[Explanation]:
    return raison.explain(Linear(), TEXTS, "occlusion", of="logit", progress=False)


@pytest.fixture(scope="module")
def evidence() -> States:
    """Of as many tokens as each text has, plus two special ones."""
    rng = np.random.default_rng(0)
    return States([rng.normal(size=(len(text.split()) + 2, 5)).astype(np.float32) for text in TEXTS])


def dist(first: list[float], second: list[float], norm: str) -> float:
    gaps = [abs(float(a) - float(b)) for a, b in zip(first, second, strict=True)]
    return sum(gaps) if norm == "l1" else math.sqrt(sum(gap**2 for gap in gaps))


def pad(rows: list, length: int, filler: object) -> list:
    return [rows[i] if i < len(rows) else filler for i in range(length)]


def states_apart(first: np.ndarray, second: np.ndarray, level: str, norm: str) -> float:
    if level == "text":
        return dist(list(first.astype(float).mean(0)), list(second.astype(float).mean(0)), norm)
    length, nothing = max(len(first), len(second)), [0.0] * first.shape[1]
    pairs = zip(pad(list(first), length, nothing), pad(list(second), length, nothing), strict=True)
    return sum(dist(list(a), list(b), norm) for a, b in pairs) / length


def scores_apart(first: tuple[float, ...], second: tuple[float, ...], normalise: str, norm: str) -> float:
    if normalise == "sum":
        first, second = ([abs(s) / sum(map(abs, side)) for s in side] for side in (first, second))
    length = max(len(first), len(second))
    return dist(pad(list(first), length, 0.0), pad(list(second), length, 0.0), norm)


@pytest.mark.parametrize("level", ["token", "text"])
@pytest.mark.parametrize("normalise", ["sum", "none"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_consistency(explanations: list[Explanation], evidence: States, level: str, normalise: str, norm: str) -> None:
    states, scores = [], []
    for i in range(len(TEXTS)):
        for j in range(i + 1, len(TEXTS)):
            states.append(states_apart(evidence.states[i], evidence.states[j], level, norm))
            scores.append(scores_apart(explanations[i].scores, explanations[j].scores, normalise, norm))
    metric = Consistency(level=level, normalise=normalise, distance=norm)
    (found,) = metric.measure(explanations, evidence)
    assert found == pytest.approx(spearmanr(states, scores).statistic, abs=1e-9)


def test_explanations_that_follow_the_model_are_consistent_and_opposite_ones_are_not(
    explanations: list[Explanation],
) -> None:
    """Texts on a line: the score of the first of two units grows along it, or goes back and forth."""
    states = States([np.array([[float(place), 0.0]]) for place in (0, 1, 3, 7, 15)])

    def rho(firsts: list[float]) -> float:
        group = [replace(explanations[0], scores=(first, 1 - first)) for first in firsts]
        return Consistency().measure(group, states)[0]

    good = rho([0.0, 0.01, 0.03, 0.07, 0.15])
    assert good == pytest.approx(1)
    rng = np.random.default_rng(1)
    assert abs(np.mean([rho(rng.uniform(size=5).tolist()) for _ in range(200)])) < 0.2
    assert rho([0.0, 0.9, 0.5, 0.3, 0.1]) < -0.1


def test_scale_and_sign_of_the_scores_do_not_count_unless_asked(
    explanations: list[Explanation], evidence: States
) -> None:
    factors = [3, -1, 0.1, 7, -2, 1]
    other = [
        replace(e, scores=tuple(factor * s for s in e.scores)) for e, factor in zip(explanations, factors, strict=True)
    ]
    first, second = (Consistency().measure(group, evidence)[0] for group in (explanations, other))
    assert first == pytest.approx(second, abs=1e-12)
    raw = Consistency(normalise="none")
    assert raw.measure(explanations, evidence)[0] != pytest.approx(raw.measure(other, evidence)[0], abs=1e-3)


def test_groups_without_a_correlation_give_no_value(explanations: list[Explanation], evidence: States) -> None:
    metric = Consistency()
    assert np.isnan(metric.measure(explanations[:2], States(evidence.states[:2]))).all()
    same = [replace(explanations[0], scores=(0.5, 0.5))] * 4
    assert np.isnan(metric.measure(same, States(evidence.states[:4]))).all()
    assert np.isnan(metric.measure(explanations[:4], States([np.ones((2, 3))] * 4))).all()
    nothing = [replace(e, scores=(0.0,) * len(e.scores)) for e in explanations]
    assert np.isnan(metric.measure(nothing, evidence)).all()


def test_size_is_the_batch() -> None:
    assert Consistency().size == 64
    assert Consistency(batch=8).size == 8


@pytest.mark.parametrize(
    "settings", [{"level": "sentence"}, {"distance": "cosine"}, {"normalise": "max"}, {"batch": 2}]
)
def test_settings_that_cannot_be_used(settings: dict[str, object]) -> None:
    with pytest.raises(InputError if "batch" in settings else UnknownNameError):
        Consistency(**settings)


def test_distances_of_equal_sequences_are_exactly_zero() -> None:
    """Rounding there would order pairs that tie."""
    sequence = np.random.default_rng(2).normal(size=(7, 4)).astype(np.float32)
    found = positionwise_distances([sequence, sequence, sequence[:3]], "l2")
    assert found[0] == 0
    assert found[1] == found[2] > 0
    expected = [np.abs(sequence[3:].astype(float)).sum() / 7] * 2
    np.testing.assert_allclose(positionwise_distances([sequence, sequence, sequence[:3]], "l1")[1:], expected)


def test_pairs_are_in_row_order() -> None:
    vectors = [np.array([0.0]), np.array([1.0, 0.0]), np.array([4.0]), np.array([0.0, 0.0, 9.0])]
    expected = [dist(pad(list(a), 3, 0.0), pad(list(b), 3, 0.0), "l2") for a, b in combinations(vectors, 2)]
    np.testing.assert_allclose(padded_distances(vectors, "l2"), expected)
    np.testing.assert_allclose(
        positionwise_distances([vector[:, None] for vector in vectors], "l1"),
        [
            dist(pad(list(a), max(len(a), len(b)), 0.0), pad(list(b), max(len(a), len(b)), 0.0), "l1")
            / max(len(a), len(b))
            for a, b in combinations(vectors, 2)
        ],
    )
