"""A page for every text of a run, with all methods' explanations of it, and a page that lists the texts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from raison.core.explanation import Explanation
from raison.data.records import write_whole
from raison.numerics.bootstrap import pool_of
from raison.report import phrases
from raison.report.html import compact, excerpt, headline
from raison.report.html_tables import breakable, grid, minus
from raison.report.markup import asset, document, escape
from raison.report.shown import Shown
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
    first = shown[0].explanation
    articles = "\n".join(
        compact(one.explanation, one.record.row, f"row-{number}", _scores_line(one.record, metrics))
        for number, one in enumerate(shown, 1)
    )
    top = f'<article class="raison">\n{headline(first)}\n{_table(shown, metrics)}</article>'
    body = (
        f"<h1>{escape(title)}</h1>\n{_links(around)}\n{top}\n{articles}\n{_links(around)}\n"
        '<div id="tip" role="tooltip" hidden></div>'
    )
    return document(title, body, STYLES, asset("page.js"))


def _table(shown: Sequence[Shown], metrics: Sequence[MetricInfo]) -> str:
    arrows = {True: " ↑", False: " ↓", None: ""}
    head = ["method", *(escape(metric.label) + arrows[metric.higher_is_better] for metric in metrics)]
    rows = [
        [f'<a href="#row-{number}">{breakable(one.record.row)}</a>', *map(_number, _values(one.record, metrics))]
        for number, one in enumerate(shown, 1)
    ]
    return grid("Scores on this text", [*head, "evaluations", "gradients"], [
        [*row, f"{one.record.costs.evaluations:,.0f}", f"{one.record.costs.gradients:,.0f}"]
        for row, one in zip(rows, shown, strict=True)
    ])  # fmt: skip


def _scores_line(record: Record, metrics: Sequence[MetricInfo]) -> str:
    values = zip(metrics, _values(record, metrics), strict=True)
    return " · ".join(f"{escape(metric.label)} {_number(value)}" for metric, value in values)


def _values(record: Record, metrics: Sequence[MetricInfo]) -> Iterator[float]:
    return (value_of(metric, value) for metric, value in zip(metrics, record.scores, strict=True))


def _number(value: float) -> str:
    return minus(phrases.number(value, 3 if math.isfinite(value) and abs(value) < 100 else 1))


def _links(around: tuple[int | None, int | None]) -> str:
    before, after = around
    previous = f'<a rel="prev" href="{file_of(before)}">← previous</a>' if before is not None else "<span></span>"
    following = f'<a rel="next" href="{file_of(after)}">next →</a>' if after is not None else "<span></span>"
    middle = '<a href="index.html">all texts</a> <a href="../../index.html">report</a>'
    return f'<nav class="steps" aria-label="Texts">{previous}<span>{middle}</span>{following}</nav>'


def _list(title: str, texts: Mapping[int, Sequence[Shown]]) -> str:
    rows = "".join(_item(number, shown[0].explanation) for number, shown in texts.items())
    name, share = _HEADS[next(iter(texts.values()))[0].explanation.outputs]
    table = (
        f'<table class="results texts">\n<thead><tr><th scope="col">text</th><th scope="col">{name}</th>'
        f'<th scope="col">{share}</th><th scope="col">explained</th><th scope="col">units</th>'
        f'<th scope="col">begins</th></tr></thead>\n<tbody>\n{rows}</tbody></table>'
    )
    body = (
        f"<h1>{escape(title)}: {phrases.count(len(texts), 'text')}</h1>\n"
        '<nav class="steps" aria-label="Report"><a href="../../index.html">report</a></nav>\n'
        '<article class="raison">\n<label class="filter">Show texts with <input type="search" id="filter"></label>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Texts">{table}</div></article>'
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


def _item(number: int, e: Explanation) -> str:
    name, share, sure = _said(e)
    target = phrases.target(e) if e.against is None else f"{phrases.target(e)} over {e.against}"
    return (
        f'<tr><th scope="row"><a href="{file_of(number)}">{number + 1}</a></th><td>{escape(name)}</td>'
        f'<td data-value="{sure}">{escape(share)}</td><td>{escape(target)}</td>'
        f'<td>{len(e.units):,}</td><td class="begin"><bdi>{escape(excerpt(e, 100))}</bdi></td></tr>\n'
    )


def file_of(number: int) -> str:
    """The name of a text's page in the folder of its run."""
    return f"{number + 1:04d}.html"
