"""What an audit of so many texts recommends, and how much faithfulness that costs, by rule.

Texts are drawn with replacement from the 100 sentences of studies/catalogue_sst2, so many as an audit has. A method
passes if it is more faithful than random scores there; one of those that pass is recommended. Faithfulness is that on
all 100 sentences, comprehensiveness minus sufficiency, and its loss the difference from kernel_shap's.

    best          the most faithful
    not worse     the cheapest that no interval shows to be worse than the most faithful, the rule until schema 2
    keeps 80 %    the cheapest whose interval shows that it keeps 80 % of the lead over random scores, the rule of
                  studies/kinds/audit/recommendation.py
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import save

from raison.core.results.scores import Comparison, MetricScores
from raison.runs.judging import finding_of
from raison.runs.run import read_run
from raison.runs.statistics import cost, subtract
from raison.runs.table import comparison
from raison.studies.kinds.audit.evidence import faithful
from raison.studies.kinds.audit.recommendation import COMPREHENSIVE, RANDOM, SUFFICIENT, faithfulness, recommended

RECORDS = Path(__file__).parents[1] / "studies/catalogue_sst2/results/sst2--sst2"
DRAWS, COUNTS, BASE, LARGE = 60, (8, 16, 30, 50, 100), "kernel_shap", 0.1
METHODS = {
    "an audit's own": (
        "integrated_gradients", "kernel_shap", "partition_shap", "lime", "occlusion", "deep_lift", "decompx",
        "saliency", "attention_average", "attention_last", "aml",
    ),
    "five": ("kernel_shap", "occlusion", "saliency", "attention_last", "input_x_gradient"),
    "without kernel_shap": ("occlusion", "saliency"),
    "cheap": ("saliency", "attention_last"),
}  # fmt: skip
Rule = Callable[[dict[str, float], Comparison], str]


def best(passing: dict[str, float], table: Comparison) -> str:
    """The most faithful."""
    return max(passing, key=lambda method: float(np.mean(faithfulness(table[method]))))


def not_worse(passing: dict[str, float], table: Comparison) -> str:
    """The cheapest that is not shown to be worse."""
    first = table[best(passing, table)]

    def alike(method: str) -> bool:
        row = table[method]
        gaps = subtract(row[COMPREHENSIVE], first[COMPREHENSIVE]), subtract(first[SUFFICIENT], row[SUFFICIENT])
        return not any(finding_of(gap, "below") == "holds" for gap in gaps)

    return min((method for method in passing if method == first.method or alike(method)), key=passing.__getitem__)


RULES: dict[str, Rule] = {
    "best": best,
    "not worse": not_worse,
    "keeps 80 %": lambda passing, table: recommended(passing, table)[0],
}


def drawn(table: Comparison, texts: np.ndarray) -> Comparison:
    """The same methods on these texts."""

    def of(scores: MetricScores) -> MetricScores:
        return replace(scores, values=tuple(scores.values[text] for text in texts), parts=())

    rows = tuple(replace(row, metrics=tuple(of(scores) for scores in row.metrics)) for row in table.rows)
    return replace(table, rows=rows, texts=len(texts))


def passing(table: Comparison, methods: Sequence[str]) -> dict[str, float]:
    """Passes per text of the methods that are better than random scores on both counts, or else on one."""
    rows = [table[method] for method in methods]
    found = dict(zip(methods, faithful(rows, table[RANDOM]), strict=True))
    shown = [row for row in rows if found[row.method].shown]
    green = [row for row in shown if found[row.method].light == "green"]
    return {row.method: cost(row) for row in green or shown}


def main() -> None:
    """A line for each set of methods and number of texts."""
    table = comparison(read_run(RECORDS))
    size = table.texts
    known = {row.method: float(np.mean(faithfulness(row))) for row in table.rows}
    rng, rows = np.random.default_rng(0), []
    for name, methods in METHODS.items():
        for count in COUNTS:
            chosen: dict[str, list[str]] = {rule: [] for rule in RULES}
            for _ in range(DRAWS):
                sample = drawn(table, rng.integers(0, size, count))
                able = passing(sample, methods)
                for rule, choose in RULES.items() if able else ():
                    chosen[rule].append(choose(able, sample))
            row: dict[str, object] = {"methods": name, "texts": count, "recommends": len(chosen["best"]) / DRAWS}
            for rule, of_rule in chosen.items():
                losses = np.array([known[BASE] - known[method] for method in of_rule])
                costs = [cost(table[one]) for one in of_rule]
                row[f"{rule}: mean loss"] = round(float(losses.mean()), 3) if of_rule else ""
                row[f"{rule}: loss over {LARGE}"] = round(float((losses > LARGE).mean()), 2) if of_rule else ""
                row[f"{rule}: passes"] = round(float(np.mean(costs))) if of_rule else ""
            rows.append(row)
            print(row, flush=True)
    save("audit_rule", rows)


if __name__ == "__main__":
    main()
