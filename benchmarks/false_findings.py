"""How often a table, a study or an audit finds something where there is nothing, with raison's own rules.

    trainings   two ways of training that are equally good: each training deviates by 0.03, each of 256 texts by 0.15;
                by texts alone, by a percentile bootstrap of the trainings on the same side, and by the rule
    best        a table of methods that are all equally good: is any cell told apart from the best of its column, by
                Holm's correction over its cells, and by the rule?
    intervals   how often 95 % intervals of few values cover the mean: percentile bootstraps, and those of the tables
    lights      explanations whose mean lies on the border of an audit's light, with rare failures, or clearly beyond
    audits      eleven methods that are no better than random scores: does an audit recommend one?
    power       differences that the power column says n values find in 80 of 100 cases: how many does the rule find?

A verdict that should not be made is made in about 5 % of cases, one-sided 2.5 %.
"""

from collections.abc import Callable

import numpy as np
from claim_rules import DISTRIBUTIONS
from common import save

from raison.core.results.scores import Comparison, MetricScores, Scores
from raison.numerics.statistics.bootstrap import mean_interval
from raison.numerics.statistics.multiple import holm
from raison.numerics.statistics.paired import difference
from raison.runs.judging import Border, Learned, Verdict, judged, over_trainings
from raison.runs.statistics import contrasts
from raison.runs.summary import Costs, MetricInfo, method_scores, metric_scores
from raison.studies.kinds.audit.evidence import CORRELATION, HALF, STEADY, UNRELATED, faithful, light_of
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, SUFFICIENT

DECIDED = ("holds", "fails")
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def verdict(values: np.ndarray, trainings: tuple[float, ...] = ()) -> Verdict:
    """The verdict on differences of texts."""
    about = Verdict("better", "run", "metric", "one", "above", "other", "missing")
    column = values[:, None]
    return over_trainings(judged(about, difference(column, np.zeros_like(column)), Learned(0.9, 0.5)), trainings)


def of_trainings() -> list[dict[str, object]]:
    """One row for each number of trainings."""
    rng, rows, samples = np.random.default_rng(0), [], 300
    for count in (1, 2, 3, 5, 8):
        alone = alike = both = 0
        for _ in range(samples):
            texts = rng.normal(0, 0.15, (256, 1)) + rng.normal(0, 0.1, (256, count))
            each = texts + rng.normal(0, 0.03 * 2**0.5, (1, count))
            by_texts = verdict(each.mean(axis=1))
            low, high = percentiles(each.mean(axis=0), rng)
            side = low > 0 if by_texts.difference.mean > 0 else high < 0
            decided = by_texts.finding in DECIDED
            alone, alike = alone + decided, alike + (decided and (count == 1 or side))
            both += verdict(each.mean(axis=1), tuple(each.mean(axis=0))).finding in DECIDED
        counts = {"by texts alone": alone, "by percentiles of trainings, too": alike, "by the rule": both}
        rows.append({"trainings": count} | shares(samples, counts))
    return rows


def percentiles(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The percentile bootstrap's 95 % interval of a mean."""
    means = values[rng.integers(len(values), size=(2_000, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def of_intervals() -> list[dict[str, object]]:
    """One row for each distribution and number of values."""
    rng, rows, samples = np.random.default_rng(0), [], 1_000
    for name in ("normal", "skewed (log-normal)"):
        for count in (2, 3, 5, 7):
            drawn = DISTRIBUTIONS[name](rng, (samples, count))
            found = {"percentile bootstrap": 0, "of the tables": 0}
            for values in drawn:
                low, high = percentiles(values, rng)
                _, least, most = mean_interval(values.tolist())
                found["percentile bootstrap"] += low <= 0 <= high
                found["of the tables"] += least <= 0 <= most
            rows.append({"values": name, "n": count} | shares(samples, found))
    return rows


def of_best() -> list[dict[str, object]]:
    """One row for each size of a table."""
    rng, rows, samples = np.random.default_rng(0), [], 100
    draws: dict[str, Draw] = {
        "normal": lambda rng, shape: rng.normal(size=shape),
        "log-normal": lambda rng, shape: np.exp(rng.normal(size=shape)),
    }
    for name, draw in draws.items():
        for methods, texts, metrics in ((5, 50, 2), (11, 50, 2), (20, 50, 5), (11, 12, 2), (11, 300, 2)):
            found = holm_alone = 0
            for _ in range(samples):
                infos = [MetricInfo(f"metric {number}", True) for number in range(metrics)]
                values = draw(rng, (methods, metrics, texts))
                columns = contrasts(table([row(str(k), infos, values[k]) for k in range(methods)], texts))
                cells = [one for column in columns.values() for one in column if one.method != one.best]
                found += any(one.p < 0.05 for one in cells)
                holm_alone += min(holm([one.difference.p for one in cells])) < 0.05
            rows.append(
                {"values": name, "methods": methods, "texts": texts, "metrics": metrics}
                | shares(samples, {"told apart by Holm over the cells": holm_alone, "by the rule": found})
            )
    return rows


def of_lights() -> list[dict[str, object]]:
    """One row for each number of texts: how often "steady" is green, whose border is 0.8."""
    rng, rows, samples = np.random.default_rng(0), [], 300
    cases = {"0.80, failures": 0.14, "0.75, failures": 0.194, "0.93, no failure": 0.0}
    for texts in (8, 12, 16, 24, 40):
        green = {}
        for name, failing in cases.items():
            fails = rng.random((samples, texts)) < failing
            values = np.where(fails, rng.normal(0, 0.15, fails.shape), rng.normal(0.93, 0.03, fails.shape))
            borders = Border("above", STEADY), Border("below", HALF)
            lights = [light_of(one, *borders, CORRELATION, UNRELATED)[0] for one in np.clip(values, -1, 1).tolist()]
            green[name] = lights.count("green")
        rows.append({"texts": texts} | shares(samples, green))
    return rows


def of_audits() -> list[dict[str, object]]:
    """One row for each number of texts: how often any of eleven methods is shown to be better than random scores."""
    rng, rows, samples = np.random.default_rng(0), [], 100
    infos = [MetricInfo(COMPREHENSIVE, True), MetricInfo(SUFFICIENT, False)]
    for texts in (5, 8, 16, 30, 50):
        found = 0
        for _ in range(samples):
            values = rng.normal(size=(12, 2, texts))
            random, *methods = (row(str(k), infos, values[k]) for k in range(12))
            found += any(one.shown for one in faithful(methods, random))
        rows.append({"texts": texts} | shares(samples, {"any method is shown to be better": found}))
    return rows


def of_power() -> list[dict[str, object]]:
    """One row for each distribution and number of values; the difference is what the first samples print."""
    rng, rows, samples = np.random.default_rng(0), [], 300
    for name in ("normal", "heavy tails (t, 3)", "skewed (log-normal)", "zero-inflated"):
        draw = DISTRIBUTIONS[name]
        for count in (10, 16, 29, 30, 100):
            printed = [verdict(draw(rng, (count, 1))[:, 0]).detectable for _ in range(50)]
            shift = float(np.nanmedian(printed))
            drawn = draw(rng, (samples, count))
            for side, shifted in (("up", drawn + shift), ("down", drawn - shift)):
                found = sum(verdict(one).finding == ("holds" if side == "up" else "fails") for one in shifted)
                rows.append({"values": name, "n": count, "shifted": side} | shares(samples, {"found": found}))
    return rows


def row(name: str, infos: list[MetricInfo], values: np.ndarray) -> Scores:
    """A method's scores, (metrics, texts)."""
    metrics: list[MetricScores] = [
        metric_scores(info, [column.tolist()]) for info, column in zip(infos, values, strict=True)
    ]
    return method_scores(name, metrics, [Costs(1, 0, 0.0)])


def table(rows: list[Scores], texts: int) -> Comparison:
    """A run's table."""
    return Comparison(tuple(rows), "model", "data", texts, "word", "probability", 0)


def shares(samples: int, counts: dict[str, int]) -> dict[str, object]:
    """Counts as shares."""
    return {name: f"{count / samples:.3f}" for name, count in counts.items()}


if __name__ == "__main__":
    save("false_findings_trainings", of_trainings())
    save("false_findings_intervals", of_intervals())
    save("false_findings_best", of_best())
    save("false_findings_lights", of_lights())
    save("false_findings_audits", of_audits())
    save("false_findings_power", of_power())
