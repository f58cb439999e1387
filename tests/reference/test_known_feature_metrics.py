"""Ground truth overlap and mean rank against the thesis's definitions, over every way to break ties."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import numpy as np
import pytest

from raison.core.errors import UnknownNameError
from raison.core.inputs.unit import Unit
from raison.core.metric import Need
from raison.core.results.explanation import Explanation
from raison.metrics import CATALOGUE
from tests.explained import of_words

NAMES = ("ground_truth_overlap", "mean_rank", "mean_rank_percentage")


@dataclass(frozen=True)
class Marked:
    """core.metric.Evidence without a model: none of these metrics may ask for anything else."""

    rationales: tuple[np.ndarray, ...]

    def probabilities(self, keeps: object, removal: str) -> np.ndarray:
        raise AssertionError("asked for a prediction")

    values = log_probabilities = probabilities

    def shifted_scores(self, shift: object) -> np.ndarray:
        raise AssertionError("asked for another explanation")

    reworded = shifted_scores


def explain(scores: Sequence[float], segments: Sequence[int] = ()) -> Explanation:
    """An explanation of as many invented words as there are scores."""
    segments = segments or [0] * len(scores)
    units = tuple(Unit(2 * i, 2 * i + 1, "w", segment) for i, segment in enumerate(segments))
    return replace(of_words("w " * len(scores), scores), units=units)


def measure(name: str, scores: Sequence[float], *known: np.ndarray, annotators: str = "majority") -> float:
    metric = CATALOGUE.create(f"{name}(annotators={annotators!r})")
    found = metric.measure(explain(scores), Marked(known))
    assert isinstance(found, float)
    return found


def literal(name: str, ranking: Sequence[int], known: set[int]) -> float:
    """The definition for one ranking without ties."""
    if name == "ground_truth_overlap":
        return float(set(ranking[: len(known)]) == known)
    r = next(r for r in range(1, len(ranking) + 1) if known <= set(ranking[:r]))
    return r if name == "mean_rank" else r / len(ranking)


def rankings(scores: Sequence[float]) -> Iterator[tuple[int, ...]]:
    """Every order of the units in which no unit follows one with a lower score."""
    for order in permutations(range(len(scores))):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            yield order


def random_cases(levels: int) -> Iterator[tuple[list[float], np.ndarray]]:
    """Texts of 1 to 6 units with scores of few levels (0: all different); all units known among them."""
    rng = np.random.default_rng(levels)
    for number in range(40):
        units = int(rng.integers(1, 7))
        scores = rng.integers(levels, size=units) / 4 if levels else rng.normal(size=units)
        known = rng.random(units) < (0.2, 0.5, 1.0)[number % 3]
        known[rng.integers(units)] = True
        yield scores.tolist(), known


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_mean_over_every_way_to_break_ties(name: str, levels: int) -> None:
    for scores, known in random_cases(levels):
        where = set(np.flatnonzero(known).tolist())
        expected = np.mean([literal(name, order, where) for order in rankings(scores)])
        assert measure(name, scores, known) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("units", "count"), [(1, 1), (4, 1), (5, 2), (6, 3), (6, 6)])
def test_chance_level(units: int, count: int) -> None:
    """Over all orders of different scores, and for equal scores wherever the known units stand."""
    level = {
        "ground_truth_overlap": 1 / math.comb(units, count),
        "mean_rank": count * (units + 1) / (count + 1),
        "mean_rank_percentage": count * (units + 1) / ((count + 1) * units),
    }
    for name, expected in level.items():
        first = np.arange(units) < count
        values = [measure(name, [float(place) for place in order], first) for order in permutations(range(units))]
        assert np.mean(values) == pytest.approx(expected, abs=1e-9)
        for known in (first, first[::-1].copy()):
            assert measure(name, [0.5] * units, known) == pytest.approx(expected, abs=1e-9)


def test_by_hand() -> None:
    scores = [0.1, 0.9, -0.3, 0.7]
    found = {
        name: [
            measure(name, scores, np.array(known, dtype=bool)) for known in ((0, 1, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0))
        ]
        for name in NAMES
    }
    assert found == {
        "ground_truth_overlap": [1, 0, 0],
        "mean_rank": [1, 2, 3],
        "mean_rank_percentage": [0.25, 0.5, 0.75],
    }


@pytest.mark.parametrize("name", NAMES)
def test_annotators(name: str) -> None:
    scores = [0.1, 0.9, -0.3, 0.7]
    marks = [np.array(mark, dtype=bool) for mark in ((0, 1, 0, 0), (0, 1, 0, 1), (1, 1, 0, 0))]
    none = np.zeros(4, dtype=bool)
    expected = {"majority": {1}, "union": {0, 1, 3}, "intersection": {1}}
    order = (1, 3, 0, 2)
    for annotators, known in expected.items():
        assert measure(name, scores, *marks, annotators=annotators) == literal(name, order, known)
    each = np.mean([literal(name, order, known) for known in ({1}, {1, 3}, {0, 1})])
    assert measure(name, scores, *marks, annotators="each") == pytest.approx(each)
    assert measure(name, scores, *marks, none, annotators="each") == pytest.approx(each)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("annotators", ["majority", "each"])
def test_nothing_known_is_undefined(name: str, annotators: str) -> None:
    assert math.isnan(measure(name, [0.2, 0.1], np.zeros(2, dtype=bool), annotators=annotators))


@pytest.mark.parametrize("name", NAMES)
def test_direction_and_scale(name: str) -> None:
    metric = CATALOGUE.get(name)
    assert metric.needs == {Need.RATIONALES}
    assert metric.higher_is_better == (name == "ground_truth_overlap")
    scores, known = np.array([0.1, 0.9, 0.7, -0.3]), np.array([False, True, True, False])
    good, scaled, bad = (measure(name, row.tolist(), known) for row in (scores, 7.5 * scores, -scores))
    assert good == scaled
    assert good > bad if metric.higher_is_better else good < bad


@pytest.mark.parametrize("name", [*NAMES, "token_f1", "iou_f1", "auprc", "auroc"])
def test_unknown_annotators_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'union'"):
        CATALOGUE.create(f"{name}(annotators='unoin')")
