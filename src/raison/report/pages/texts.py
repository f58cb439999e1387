"""A page for every text of a run, with all methods' explanations of it, and a page that lists the texts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from raison.jobs.disk import write_whole
from raison.numerics.statistics.bootstrap import pool_of
from raison.report.explanations.layout import layout
from raison.report.explanations.listed import HEADS, listed
from raison.report.pages.shown import Shown
from raison.report.style import phrases
from raison.report.style.markup import document, rendered
from raison.report.tables.records import ARROWS, Cell, Table
from raison.runs.run import Run
from raison.runs.summary import MetricInfo, Value

STYLES = ("explanation.css", "page.css", "study.css")


def write_texts(run: Run, texts: Mapping[int, Sequence[Shown]], title: str, folder: Path) -> bool:
    """Write the pages of a run's texts, index.html the list; returns False and writes nothing if there are none."""
    metrics = run.header.single
    files = ["", *map(file_of, texts), ""]
    for place, (number, shown) in enumerate(texts.items()):
        values = {"title": f"Text {number + 1}: {title}", "before": files[place], "after": files[place + 2]}
        write_whole(folder / file_of(number), _page(shown, metrics, values))
    if texts:
        first = next(iter(texts.values()))[0].explanation
        rows = [(file_of(number), listed(number, shown[0].explanation)) for number, shown in texts.items()]
        heads = ("text", *HEADS[first.outputs], "explained", "units", "begins")
        body = rendered("texts.html", {"title": title, "heads": heads, "texts": rows})
        write_whole(folder / "index.html", document(title, body, (*STYLES, "texts.css"), ("listing.js",)))
    return bool(texts)


def value_of(info: MetricInfo, value: Value) -> float:
    """The value of a metric for one text, also if it measured the parts of a pooled value."""
    parts = np.array([value if isinstance(value, tuple) else (value,)], dtype=np.float64)
    return float(pool_of(info.pool)(parts)[0])


def file_of(number: int) -> str:
    """The name of a text's page in the folder of its run."""
    return f"{number + 1:04d}.html"


def _page(shown: Sequence[Shown], metrics: Sequence[MetricInfo], around: Mapping[str, str]) -> str:
    scores = [list(_scores(one, metrics)) for one in shown]
    values = {
        "shown": [layout(one.explanation) for one in shown],
        "scores": _table(shown, metrics, scores),
        "lines": [
            " · ".join(f"{metric.label} {score}" for metric, score in zip(metrics, row, strict=True)) for row in scores
        ],
    }
    return document(around["title"], rendered("text.html", {**around, **values}), STYLES, ("page.js",))


def _table(shown: Sequence[Shown], metrics: Sequence[MetricInfo], scores: Sequence[Sequence[str]]) -> Table:
    """Methods x metrics with their costs; a method leads to its explanation."""
    head = [f"{metric.label} {ARROWS[metric.higher_is_better]}".strip() for metric in metrics]
    costs = [(one.record.costs.evaluations, one.record.costs.gradients) for one in shown]
    cells = [[*row, *(f"{cost:,.0f}" for cost in pair)] for row, pair in zip(scores, costs, strict=True)]
    rows = tuple((one.record.row, tuple(map(Cell, row))) for one, row in zip(shown, cells, strict=True))
    links = tuple(f"#row-{number}" for number in range(1, len(shown) + 1))
    return Table("", ("method", *head, "evaluations", "gradients"), rows, links=links)


def _scores(one: Shown, metrics: Sequence[MetricInfo]) -> Iterator[str]:
    for metric, score in zip(metrics, one.record.scores, strict=True):
        value = value_of(metric, score)
        yield phrases.number(value, 3 if math.isfinite(value) and abs(value) < 100 else 1)
