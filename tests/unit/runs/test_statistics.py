"""Statistics of a table, against the same numbers worked out by hand or by a literal loop."""

import itertools
import math

import numpy as np
import pytest

from raison.core.results.scores import Comparison, MetricScores, Scores, Summary
from raison.numerics.statistics.best import of_any_pair
from raison.runs.statistics import (
    contrasts,
    cost,
    directed,
    mean_ranks,
    pareto,
    selection,
    subtract,
)
from raison.runs.summary import Costs, MetricInfo, method_scores, metric_scores

TEXTS = 8
METRICS = (MetricInfo("gain", True), MetricInfo("loss", False), MetricInfo("spread", None))


def row(label: str, level: float, evaluations: float = 10, gradients: float = 0, by: str | None = None) -> Scores:
    rng = np.random.default_rng([round(100 * level), len(label)])
    values = level + rng.normal(0, 0.05, TEXTS)
    table = (values, 1 - values, np.ones(TEXTS))
    metrics = [metric_scores(info, [column.tolist()]) for info, column in zip(METRICS, table, strict=True)]
    return method_scores(label, metrics, [Costs(evaluations, gradients, 0.1)], by)


def table(*rows: Scores) -> Comparison:
    return Comparison(rows, "model", "data", TEXTS, "word", "probability", 0)


THREE = table(row("good", 0.8, 52, 50), row("fair", 0.5, 20), row("random", 0.1, 0))
CHOSEN = table(
    row("lime", 0.5),
    row("lime by gain", 0.7, by="gain"),
    row("lime by loss", 0.6, by="loss"),
    row("lime by entropy", 0.4, by="entropy"),
    row("random(draws=4) by gain", 0.2, by="gain"),
    row("random", 0.1),
)


def exact_p(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Share of all sign flips whose mean difference is as far from zero."""
    gaps = np.array(first) - np.array(second)
    found = [abs(np.mean(gaps * signs)) for signs in itertools.product((1, -1), repeat=len(gaps))]
    return float(np.mean([value >= abs(gaps.mean()) - 1e-12 for value in found]))


def test_direction_of_each_metric() -> None:
    assert directed(THREE) == {"gain": True, "loss": False}


def test_differences_from_the_best_count_that_any_could_have_been_it() -> None:
    found = contrasts(THREE)
    assert list(found) == ["gain", "loss"]
    for metric, listed in found.items():
        assert [one.method for one in listed] == ["good", "fair", "random"]
        assert {one.best for one in listed} == {"good"}
        assert math.isnan(listed[0].p)
        for one in listed[1:]:
            values, best = THREE[one.method][metric].values, THREE["good"][metric].values
            assert one.difference.mean == pytest.approx(np.mean(values) - np.mean(best))
            assert one.difference.p == pytest.approx(exact_p(values, best))
            ratio = np.array([one.difference.mean / one.difference.error])
            [chance] = of_any_pair([np.array(row[metric].values)[:, None] for row in THREE.rows], "mean", ratio)
            assert one.p == pytest.approx(min(1.0, 2 * max(one.difference.confirmed, chance)))


def test_lower_is_better_finds_the_lowest() -> None:
    assert all(one.difference.mean > 0 for one in contrasts(THREE)["loss"][1:])


def test_undefined_metrics_have_no_best() -> None:
    nothing = metric_scores(METRICS[0], [[math.nan] * TEXTS])
    rows = [Scores(name, (nothing,), *(Summary(1.0, 1.0, 1.0, 1),) * 3) for name in ("a", "b")]
    assert contrasts(table(*rows)) == {"gain": []}
    assert all(math.isnan(rank) for rank in mean_ranks(table(*rows)).values())


def test_mean_ranks_follow_the_directions() -> None:
    assert mean_ranks(THREE) == {"good": 1.0, "fair": 2.0, "random": 3.0}
    assert mean_ranks(table(Scores("a", (), *(Summary(1.0, 1.0, 1.0, 1),) * 3))) == {}


def test_selection_compares_with_choosing_by_the_judge() -> None:
    lime, control = selection(CHOSEN)
    assert (lime.method, control.method) == ("lime", "random(draws=4)")
    assert lime.choosers == (None, "gain", "loss", "entropy")
    assert lime.judges == ("gain", "loss")
    assert control.choosers == ("gain",)
    assert control.judges == ("gain", "loss")
    assert [lime.differences[1][0], lime.differences[2][1]] == [None, None]
    assert control.differences == ((None, None),)
    for line, method in enumerate(("lime", "lime by gain", "lime by loss", "lime by entropy")):
        for column, judge in enumerate(lime.judges):
            assert lime.values[line][column] == CHOSEN[method][judge]
            gap = lime.differences[line][column]
            if gap is not None:
                own = CHOSEN[f"lime by {judge}"][judge].summary.mean
                assert gap.mean == pytest.approx(CHOSEN[method][judge].summary.mean - own)


def test_no_selection_where_nothing_was_chosen() -> None:
    assert selection(THREE) == []


def test_front_of_value_against_passes() -> None:
    assert cost(THREE["good"]) == 52 + 2 * 50
    worse = table(*THREE.rows, row("dear", 0.4, 500))
    assert {p.row.method: p.best for p in pareto(worse, "gain")} == {
        "good": True, "fair": True, "random": True, "dear": False,
    }  # fmt: skip
    assert [p.row.method for p in pareto(CHOSEN, "gain")] == [
        "lime", "lime by gain", "random(draws=4) by gain", "random",
    ]  # fmt: skip


def test_scores_of_other_texts_are_not_subtracted() -> None:
    one = metric_scores(METRICS[0], [[0.1, 0.2, 0.3]])
    assert math.isnan(subtract(one, metric_scores(METRICS[0], [[0.1, 0.2]])).mean)


def test_pooled_values_are_subtracted_as_pools() -> None:
    info = MetricInfo("ratio", True, "ratio")
    first: MetricScores = metric_scores(info, [[(1.0, 2.0), (3.0, 4.0)]])
    second: MetricScores = metric_scores(info, [[(1.0, 4.0), (1.0, 1.0)]])
    assert subtract(first, second).mean == pytest.approx(4 / 6 - 2 / 5)
