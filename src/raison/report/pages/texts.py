"""A page for every text of a run, with all methods' explanations of it, and a page that lists the texts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from raison.core.explanation import Explanation
from raison.jobs.store import write_whole
from raison.numerics.statistics.bootstrap import pool_of
from raison.report.explanations.html import compact, excerpt, headline
from raison.report.pages.shown import Shown
from raison.report.style import phrases
from raison.report.style.markup import Markup, asset, document, html, joined, lines
from raison.report.tables.html import breakable, grid, minus
from raison.runs.run import Record, Run
from raison.runs.summary import MetricInfo, Value

STYLES = ("explanation.css", "page.css", "study.css")


def write_texts(run: Run, texts: Mapping[int, Sequence[Shown]], title: str, folder: Path) -> bool:
    """Write the pages of a run's texts, index.html the list; False, and nothing, where there is none."""
    metrics = [MetricInfo(**metric) for metric in run.header["metrics"] if not metric["grouped"]]
    numbers = list(texts)
    for place, number in enumerate(numbers):
        around = (numbers[place - 1] if place else None, numbers[place + 1] if place + 1 < len(numbers) else None)
        write_whole(folder / file_of(number), _page(f"Text {number + 1}: {title}", texts[number], metrics, around))
    if texts:
        write_whole(folder / "index.html", _list(title, texts))
    return bool(texts)


def value_of(info: MetricInfo, value: Value) -> float:
    """What a metric says about one text, where it measured the parts of a pooled value too."""
    parts = np.array([value if isinstance(value, tuple) else (value,)], dtype=np.float64)
    return float(pool_of(info.pool)(parts)[0])


def _page(
    title: str, shown: Sequence[Shown], metrics: Sequence[MetricInfo], around: tuple[int | None, int | None]
) -> str:
    articles = lines(
        compact(one.explanation, one.record.row, f"row-{number}", _scores_line(one.record, metrics))
        for number, one in enumerate(shown, 1)
    )
    body = html(
        '<h1>{}</h1>\n{}\n<article class="raison">\n{}\n{}</article>\n{}\n{}\n'
        '<div id="tip" role="tooltip" hidden></div>',
        title,
        _links(around),
        headline(shown[0].explanation),
        _table(shown, metrics),
        articles,
        _links(around),
    )
    return document(title, body, STYLES, asset("page.js"))


def _table(shown: Sequence[Shown], metrics: Sequence[MetricInfo]) -> Markup:
    arrows = {True: " ↑", False: " ↓", None: ""}
    head = ["method", *(metric.label + arrows[metric.higher_is_better] for metric in metrics)]
    rows = [
        [
            html('<a href="#row-{}">{}</a>', number, breakable(one.record.row)),
            *map(_number, _values(one.record, metrics)),
        ]
        for number, one in enumerate(shown, 1)
    ]
    return grid("Scores on this text", [*head, "evaluations", "gradients"], [
        [*row, f"{one.record.costs.evaluations:,.0f}", f"{one.record.costs.gradients:,.0f}"]
        for row, one in zip(rows, shown, strict=True)
    ])  # fmt: skip


def _scores_line(record: Record, metrics: Sequence[MetricInfo]) -> Markup:
    values = zip(metrics, _values(record, metrics), strict=True)
    return joined((html("{} {}", metric.label, _number(value)) for metric, value in values), " · ")


def _values(record: Record, metrics: Sequence[MetricInfo]) -> Iterator[float]:
    return (value_of(metric, value) for metric, value in zip(metrics, record.scores, strict=True))


def _number(value: float) -> str:
    return minus(phrases.number(value, 3 if math.isfinite(value) and abs(value) < 100 else 1))


def _links(around: tuple[int | None, int | None]) -> Markup:
    before, after = around
    nothing = html("<span></span>")
    return html(
        '<nav class="steps" aria-label="Texts">{}<span><a href="index.html">all texts</a> '
        '<a href="../../index.html">report</a></span>{}</nav>',
        nothing if before is None else html('<a rel="prev" href="{}">← previous</a>', file_of(before)),
        nothing if after is None else html('<a rel="next" href="{}">next →</a>', file_of(after)),
    )


def _list(title: str, texts: Mapping[int, Sequence[Shown]]) -> str:
    name, share = _HEADS[next(iter(texts.values()))[0].explanation.outputs]
    table = html(
        '<table class="results texts">\n<thead><tr><th scope="col">text</th><th scope="col">{}</th>'
        '<th scope="col">{}</th><th scope="col">explained</th><th scope="col">units</th>'
        '<th scope="col">begins</th></tr></thead>\n<tbody>\n{}</tbody></table>',
        name,
        share,
        joined(_item(number, shown[0].explanation) for number, shown in texts.items()),
    )
    body = html(
        '<h1>{}: {}</h1>\n<nav class="steps" aria-label="Report"><a href="../../index.html">report</a></nav>\n'
        '<article class="raison">\n<label class="filter">Show texts with <input type="search" id="filter"></label>\n'
        '<div class="scroll" tabindex="0" role="region" aria-label="Texts">{}</div></article>',
        title,
        phrases.count(len(texts), "text"),
        table,
    )
    return document(title, body, STYLES, asset("texts.js"))


_HEADS = {"classes": ("predicted", "probability"), "labels": ("labels", "highest"), "number": ("output", "score")}
"""Columns of what the model says, by what it gives."""


def _said(e: Explanation) -> tuple[str, str, float]:
    """The cells of these columns, and the number by which the second is sorted."""
    told = phrases.verdict(e)
    if e.outputs == "number":
        return e.target, told.said, e.value_full
    if e.outputs == "labels":
        return ", ".join(e.decided) or "none", phrases.percent(max(e.probabilities)), max(e.probabilities)
    return told.said, told.rest, max(e.probabilities) if e.answer is None else e.probabilities[0]


def _item(number: int, e: Explanation) -> Markup:
    name, share, sure = _said(e)
    return html(
        '<tr><th scope="row"><a href="{}">{}</a></th><td>{}</td><td data-value="{}">{}</td><td>{}</td><td>{:,}</td>'
        '<td class="begin"><bdi>{}</bdi></td></tr>\n',
        file_of(number),
        number + 1,
        name,
        sure,
        share,
        phrases.target(e) if e.against is None else f"{phrases.target(e)} over {e.against}",
        len(e.units),
        excerpt(e, 100),
    )


def file_of(number: int) -> str:
    """The name of a text's page in the folder of its run."""
    return f"{number + 1:04d}.html"
