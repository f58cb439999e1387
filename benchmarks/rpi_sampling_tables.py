"""Tables of rpi_sampling.py: paired gains, above 0 is better, with 95 % bootstrap intervals over texts."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from raison.numerics.statistics.paired import difference

METRICS = ("comprehensiveness", "sufficiency", "aopc_comprehensiveness")
PUBLISHED = "uniform, n = 30"
SHORT = "both, up to 16 words"
SPENT = {"maps": "maps", "passes": "passes", "new": "new passes"}
PAIRS = (
    ("uniform, n = 1", PUBLISHED),
    ("mixture, n = 30", PUBLISHED),
    ("mixture, n = 10", "uniform, n = 10"),
    ("mixture, n = 3", "uniform, n = 3"),
    ("mixture, n = 1", "uniform, n = 1"),
    ("mixture, n = 3", "spread t, n = 3"),
    ("cross-entropy, n = 3", "uniform, n = 3"),
    ("cross-entropy, n = 1", "uniform, n = 1"),
    ("halving, n = 1 to 8", "uniform, n = 1"),
    (PUBLISHED, "random, as many as n = 30"),
    ("uniform, n = 3", "random, as many as n = 3"),
    ("uniform, n = 1", "random, as many as n = 1"),
    ("cross-entropy, n = 1", "random, as many as n = 1"),
)
FINDINGS = """Findings, from the tables below (what they mean: [rpi_sampling.py](../rpi_sampling.py)):

- More baselines with fewer steps beat the published 24 x 30, under both formulas: by far with the paper's, by a little
  (clearly on the short texts only) with the code's. With n = 1 the paper's path is a single point, the attention
  itself: all its maps are one gradient weighted by random numbers, and of all R and n tried they are the best that the
  formula gives. `baselines` and `steps` are settings already.
- Much of it is the choice alone. The paper's formula at 24 x 30 is worse than the best of 24 random maps, the code's
  better. On short texts, by comprehensiveness, the best uniform sampling is no better than as many random maps; by the
  mean over shares it is, a little.
- The mixture of baselines helps the paper's formula at n = 30 and 10: its three fixed baselines do, evenly spaced t
  does not. But at equal passes it stays below more uniform baselines, and where these are best it adds nothing. The
  code's formula it does not help. Not in the library.
- Cross-entropy at the best R and n gains about a hundredth of mean comprehensiveness over uniform sampling, not on
  every set, and nothing clear by comprehensiveness at 20 %. Successive halving is no better than uniform, or worse.
  Neither is in the library: both need the metric's answers while they draw, and so little does not pay for that.
"""
Record = dict[str, object]
Cells = dict[tuple[str, str, str, str], dict[str, Record]]
"""By texts, formula, sampler and metric: each text's record."""


def cells_of(records: Sequence[Record]) -> Cells:
    """The sets, and the two of short texts together."""
    cells: Cells = defaultdict(dict)
    for record in records:
        name = str(record["set"])
        for texts in (name, SHORT) if "up to" in name else (name,):
            place = (texts, str(record["formula"]), str(record["sampler"]), str(record["metric"]))
            cells[place][f"{name} {record['text']}"] = record
    return cells


def column(cell: dict[str, Record], what: str = "good") -> np.ndarray:
    return np.array([[float(str(cell[text][what]))] for text in sorted(cell)])


def gain(cells: Cells, where: tuple[str, str], samplers: tuple[str, str], metric: str) -> str:
    """The first sampler's paired gain over the second, empty where one of them was not measured."""
    first, second = (cells.get((*where, sampler, metric)) for sampler in samplers)
    if first is None or second is None:
        return ""
    found = difference(column(first), column(second))
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def samplers_of(cells: Cells) -> list[str]:
    return list(dict.fromkeys(place[2] for place in cells))


def best_uniform(cells: Cells, where: tuple[str, str], metric: str) -> str:
    uniform = [name for name in samplers_of(cells) if name.startswith("uniform")]
    return max(uniform, key=lambda name: column(cells[*where, name, metric]).mean())


def tabulated(cells: Cells) -> list[Record]:
    """Every sampler on every set: what it spends, its value, and its gains."""
    rows = []
    for where in dict.fromkeys(place[:2] for place in cells if place[0] != SHORT):
        for sampler in samplers_of(cells):
            spent = cells[*where, sampler, METRICS[0]]
            row: Record = {"texts": f"{where[0]} ({len(spent)})", "formula": where[1], "sampler": sampler}
            row |= {title: round(float(column(spent, what).mean())) for what, title in SPENT.items()}
            for metric in METRICS:
                known, sign = cells.get((*where, sampler, metric)), -1 if metric == "sufficiency" else 1
                row[metric] = "" if known is None else f"{sign * float(column(known).mean()):.3f}"
                row[f"{metric}: gain over 24 x 30"] = gain(cells, where, (sampler, PUBLISHED), metric)
                best = best_uniform(cells, where, metric)
                row[f"{metric}: gain over best uniform"] = gain(cells, where, (sampler, best), metric)
            rows.append(row)
    return rows


def paired(cells: Cells) -> list[Record]:
    """The comparisons that decide, the short texts of both sets together."""
    rows: list[Record] = []
    for where in dict.fromkeys(place[:2] for place in cells if place[0] == SHORT or "up to" not in place[0]):
        count = len(cells[*where, PUBLISHED, METRICS[0]])
        for pair in PAIRS:
            row: Record = {"texts": f"{where[0]} ({count})", "formula": where[1], "sampler": pair[0], "over": pair[1]}
            rows.append(row | {metric: gain(cells, where, pair, metric) for metric in METRICS})
    return rows


def markdown(rows: Sequence[Record]) -> str:
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
