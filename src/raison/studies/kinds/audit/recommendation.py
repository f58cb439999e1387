"""The method that an audit recommends, and whether method="auto" may follow it.

benchmarks/audit_rule.py shows what these rules recommend for different numbers of texts, and at what cost.
"""

from collections.abc import Mapping

import numpy as np

from raison.core.results.scores import Comparison, MetricScores, Scores
from raison.numerics.statistics.paired import FEW, difference
from raison.report.style import phrases
from raison.runs.judging import finding_of

COMPREHENSIVE, SUFFICIENT = "aopc_comprehensiveness", "aopc_sufficiency"
RANDOM = "random"
KEPT = 0.8
"""The share of the most faithful method's lead over random scores that a cheaper one has to keep."""
BASE = "kernel_shap"
"""The fallback of method="auto"."""


def recommended(passing: Mapping[str, float], table: Comparison) -> tuple[str, str]:
    """The cheapest method that surely keeps most of the most faithful method's lead, and the reason.

    `passing` has the passes per text of the methods with the best light, at least one. "Surely" means by the rule of
    claims: few texts can hardly show it, and then the most faithful method itself is recommended.
    """
    best = max(passing, key=lambda method: float(np.nanmean(faithfulness(table[method]))))
    alike = [method for method in passing if method == best or _keeps(table[method], table[best], table[RANDOM])]
    chosen = min(alike, key=lambda method: passing[method])
    cost = f"{passes(passing[chosen])} a text"
    if chosen != best:
        return chosen, (
            f"The cheapest of the methods that surely keep {share(KEPT)} of the lead of {best}, the most "
            f"faithful, over random scores, in comprehensiveness, in sufficiency and in both together: {cost}."
        )
    cheaper = any(other < passing[best] for other in passing.values())
    lead = f" No cheaper one is sure to keep {share(KEPT)} of its lead over random scores." if cheaper else ""
    return chosen, f"The most faithful of the methods that pass, at {cost}.{lead}"


def unfit_for_auto(chosen: str, table: Comparison) -> str:
    """Why method="auto" does not follow a recommendation; empty if it does.

    It would give up its own choice for a method that was compared with too little, or on too few texts.
    """
    if table.texts < FEW:
        return f"it rests on {phrases.count(table.texts, 'text')}, of at least {FEW}"
    if not any(_name(row.method) == BASE for row in table.rows):
        return f"{_name(chosen)} was not compared with {BASE}, which auto falls back on"
    return ""


def passes(amount: float) -> str:
    """1 pass, 20 passes; a mean is rounded."""
    return f"{amount:,.0f} {'pass' if round(amount) == 1 else 'passes'}"


def share(value: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * value:.0f} %"


def count_of(row: Scores, metric: str) -> MetricScores:
    """A row's scores by COMPREHENSIVE or SUFFICIENT, whatever replaces removed units."""
    return row[next((one.metric for one in row.metrics if _name(one.metric) == metric), metric)]


def faithfulness(row: Scores) -> list[float]:
    """Comprehensiveness minus sufficiency of each text."""
    pairs = zip(count_of(row, COMPREHENSIVE).values, count_of(row, SUFFICIENT).values, strict=True)
    return [more - less for more, less in pairs]


def _keeps(row: Scores, best: Scores, random: Scores) -> bool:
    """Whether a method is surely above the required minimum, text by text, on each count and on both."""
    counts = zip(_higher_is_better(row), _higher_is_better(best), _higher_is_better(random), strict=True)
    # The lead is itself an estimate: taken as constant, its own error would be left out of the interval.
    gaps = (difference(own[:, None], (KEPT * most + (1 - KEPT) * least)[:, None]) for own, most, least in counts)
    return all(finding_of(gap, "above") == "holds" for gap in gaps)


def _higher_is_better(row: Scores) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Comprehensiveness, sufficiency with its sign changed, and their sum, text by text."""
    more, less = (np.array(count_of(row, count).values, dtype=np.float64) for count in (COMPREHENSIVE, SUFFICIENT))
    return more, -less, more - less


def _name(method: str) -> str:
    return method.partition("(")[0]
