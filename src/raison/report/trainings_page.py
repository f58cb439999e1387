"""The page of a study of trainings."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from raison.report import study_tables
from raison.report.colours import SIGNED
from raison.report.html_tables import breakable, grid, minus
from raison.report.markup import document, escape
from raison.report.tables import Cell
from raison.report.trainings_plots import loss_plots, seconds_plots
from raison.report.trainings_tables import (
    Grid,
    accuracy_grid,
    cost_grids,
    gain_grids,
    metric_grids,
    rate_grids,
)
from raison.runs.study import FILE
from raison.runs.trainings import Trainings
from raison.runs.trainings_claims import training_verdicts

STYLES = ("explanation.css", "page.css", "study.css")
_MARKS = {1: "<strong>{}</strong>", 2: "<u>{}</u>"}


def sections(study: Trainings) -> list[tuple[str, list[Grid]]]:
    """The tables under their headings; a heading without tables is left out."""
    found = [
        ("Criteria", metric_grids(study)),
        ("Accuracy", [accuracy_grid(study)]),
        ("Gains", gain_grids(study)),
        ("Learning rates", rate_grids(study)),
        ("On other tasks' data", metric_grids(study, transfers=True)),
        ("Costs", cost_grids(study)),
    ]
    return [(title, grids) for title, grids in found if grids]


def page(study: Trainings, draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    shown = sections(study)
    parts = [
        f"<h1>{escape(study.title)}</h1>",
        _about(study),
        warnings_box(warnings(study)),
        contents([title for title, _ in shown]),
        *(section(title, grids) for title, grids in shown),
        # One for each task and claim: many, and read after what they are about.
        study_tables.claims(training_verdicts(study)),
        plots_section("Losses", loss_plots(study), _LOSSES) if draw else "",
        plots_section("Time and texts", seconds_plots(study), _SECONDS) if draw else "",
        _file(study),
    ]
    return document(study.title, "\n".join(part for part in parts if part), STYLES)


_LOSSES = "Mean loss of each epoch of training, mean over seeds; the band is from the lowest to the highest seed."
_SECONDS = "Seconds of trainings that differ in the number of texts; the band is from the fastest to the slowest seed."


def warnings(study: Trainings) -> list[str]:
    """Everything that makes these numbers other than those of the whole study, one sentence each."""
    found = []
    limit = study.header["limit"]
    if limit is not None:
        found.append(f"This study was run with --limit {limit}: at most so many rows of each part of the data.")
    missing = [key for key in study.wanted if key not in study.records]
    if missing:
        task, test, row, seed = missing[0]
        found.append(
            f"Unfinished: {len(study.wanted) - len(missing):,} of {len(study.wanted):,} records. The first that is "
            f"missing: {task} on {test}, {row}, seed {seed}. Means are over the seeds that there are; --resume goes on."
        )
    if study.dropped:
        found.append(f"{study.dropped} broken lines of the records were left out; --resume does their work again.")
    return found


def _about(study: Trainings) -> str:
    file, header = study.file, study.header
    about = "\n".join(f"<p>{escape(' '.join(part.split()))}</p>" for part in str(file.get("about", "")).split("\n\n"))
    facts = {
        "Source": file.get("source"),
        "Reference": file.get("reference"),
        "Size": file.get("size"),
        "Tasks": "; ".join(_task(task) for task in header["tasks"]),
        "Seeds": ", ".join(map(str, header["seeds"])),
        "Digest": header["digest"],
        "Versions": ", ".join(f"{name} {version}" for name, version in header["versions"].items()),
    }
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>\n" for name, value in facts.items() if value)
    files = '<dt>Tables</dt><dd><a href="tables.md">Markdown</a>, <a href="tables.tex">LaTeX</a></dd>\n'
    return f'<article class="raison">\n{about}\n<dl>\n{items}{files}</dl></article>'


def _task(task: dict[str, object]) -> str:
    data: dict[str, dict[str, object] | None] = task["data"]  # type: ignore[assignment]
    parts = [f"{part['rows']} of {part['name']}" for part in data.values() if part]
    return f"{task['name']} ({task['base']}; {', '.join(parts)})"


def warnings_box(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in sentences)
    return (
        f'<article class="raison">\n<h2>Before you read the numbers</h2>\n<ul class="warnings">\n{items}</ul></article>'
    )


def contents(titles: Sequence[str]) -> str:
    items = "".join(f'<li><a href="#{anchor(title)}">{escape(title)}</a></li>\n' for title in titles)
    return f'<nav aria-label="Contents"><ol>\n{items}</ol></nav>'


def section(title: str, grids: Sequence[Grid]) -> str:
    # Tables that share a caption stand beside each other, where the page is wide enough, above it.
    body = []
    for caption, shared in groupby(grids, key=lambda one: one.caption):
        tables = "\n".join(f"<div><h4>{escape(one.title)}</h4>\n{_table(one)}</div>" for one in shared)
        gap = ' style="margin-top:1.4rem"' if body else ""
        body.append(f'<div class="beside"{gap}>\n{tables}</div>\n<p class="caption">{escape(caption)}</p>')
    inner = "\n".join(body)
    return f'<article class="raison" id="{anchor(title)}">\n<h2>{escape(title)}</h2>\n{inner}</article>'


def _table(one: Grid) -> str:
    shades = one.shades or tuple((math.nan,) * len(cells) for _, cells in one.rows)
    body = [
        [breakable(name), *(_cell(cell, level) for cell, level in zip(cells, levels, strict=True))]
        for (name, cells), levels in zip(one.rows, shades, strict=True)
    ]
    return grid(one.title, [breakable(name) for name in one.head], body)


def _cell(cell: Cell, level: float) -> str:
    mean = _MARKS.get(cell.rank, "{}").format(minus(cell.mean))
    lines = [minus(line) for line in (cell.interval, cell.seeds) if line]
    if math.isnan(level):
        return f"<td>{mean}{''.join(f'<small>{line}</small>' for line in lines)}</td>"
    # The soft colour of small print would not be read on a shade.
    below = "".join(f'<small style="color:inherit">{line}</small>' for line in lines)
    return f'<td class="shade" style="{SIGNED.css(level)}">{mean}{below}</td>'


def plots_section(title: str, drawn: Iterable[str], caption: str) -> str:
    figures = "\n".join(f"<figure>{svg}</figure>" for svg in drawn)
    if not figures:
        return ""
    return (
        f'<article class="raison" id="{anchor(title)}">\n<h2>{escape(title)}</h2>\n<div class="plots">\n{figures}'
        f'</div>\n<p class="caption">{escape(caption)}</p></article>'
    )


def anchor(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())


def _file(study: Trainings) -> str:
    return (
        f'<article class="raison">\n<details><summary>{FILE}, digest {escape(study.header["digest"])}</summary>\n'
        f'<pre tabindex="0">{escape(study.text)}</pre></details></article>'
    )
