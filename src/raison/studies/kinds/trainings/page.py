"""The page of a study of trainings."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from raison.report import study_tables
from raison.report.colours import SIGNED
from raison.report.html_tables import breakable, grid, marked, minus
from raison.report.markup import NOTHING, Markup, document, html, joined, lines
from raison.report.parts import about, figures, study_file, warnings_box
from raison.report.tables import Cell
from raison.studies.kinds.trainings.claims import training_verdicts
from raison.studies.kinds.trainings.plots import loss_plots, seconds_plots
from raison.studies.kinds.trainings.results import Trainings
from raison.studies.kinds.trainings.sections import (
    Grid,
    accuracy_grid,
    cost_grids,
    gain_grids,
    metric_grids,
    rate_grids,
)

STYLES = ("explanation.css", "page.css", "study.css")


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
        html("<h1>{}</h1>", study.title),
        _about(study),
        warnings_box(warnings(study)),
        contents([title for title, _ in shown]),
        *(section(title, grids) for title, grids in shown),
        # One for each task and claim: many, and read after what they are about.
        study_tables.claims(training_verdicts(study)),
        plots_section("Losses", loss_plots(study), _LOSSES) if draw else NOTHING,
        plots_section("Time and texts", seconds_plots(study), _SECONDS) if draw else NOTHING,
        study_file(study.text, study.header["digest"]),
    ]
    return document(study.title, lines(parts), STYLES)


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


def _about(study: Trainings) -> Markup:
    header = study.header
    facts = {
        "Tasks": "; ".join(_task(task) for task in header["tasks"]),
        "Seeds": ", ".join(map(str, header["seeds"])),
        "Digest": header["digest"],
        "Versions": ", ".join(f"{name} {version}" for name, version in header["versions"].items()),
    }
    return about(study.file, facts)


def _task(task: dict[str, object]) -> str:
    data: dict[str, dict[str, object] | None] = task["data"]  # type: ignore[assignment]
    parts = [f"{part['rows']} of {part['name']}" for part in data.values() if part]
    return f"{task['name']} ({task['base']}; {', '.join(parts)})"


def contents(titles: Sequence[str]) -> Markup:
    items = joined(html('<li><a href="#{}">{}</a></li>\n', anchor(title), title) for title in titles)
    return html('<nav aria-label="Contents"><ol>\n{}</ol></nav>', items)


def section(title: str, grids: Sequence[Grid], above: Markup | None = None) -> Markup:
    """Tables under a heading; `above` (figures) stands between the two, even where it is empty."""
    # Tables that share a caption stand beside each other, where the page is wide enough, above it.
    body: list[Markup] = []
    for caption, shared in groupby(grids, key=lambda one: one.caption):
        tables = lines(html("<div><h4>{}</h4>\n{}</div>", one.title, _table(one)) for one in shared)
        gap = html(' style="margin-top:1.4rem"') if body else NOTHING
        body.append(html('<div class="beside"{}>\n{}</div>\n<p class="caption">{}</p>', gap, tables, caption))
    return html(
        '<article class="raison" id="{}">\n<h2>{}</h2>\n{}{}</article>',
        anchor(title),
        title,
        NOTHING if above is None else html("{}\n", above),
        lines(body),
    )


def _table(one: Grid) -> Markup:
    shades = one.shades or tuple((math.nan,) * len(cells) for _, cells in one.rows)
    body = [
        [breakable(name), *(_cell(cell, level) for cell, level in zip(cells, levels, strict=True))]
        for (name, cells), levels in zip(one.rows, shades, strict=True)
    ]
    return grid(one.title, [breakable(name) for name in one.head], body)


def _cell(cell: Cell, level: float) -> Markup:
    mean = marked(minus(cell.mean), cell.rank)
    below = [minus(line) for line in (cell.interval, cell.seeds) if line]
    if math.isnan(level):
        return html("<td>{}{}</td>", mean, joined(html("<small>{}</small>", line) for line in below))
    # The soft colour of small print would not be read on a shade.
    small = joined(html('<small style="color:inherit">{}</small>', line) for line in below)
    return html('<td class="shade" style="{}">{}{}</td>', SIGNED.css(level), mean, small)


def plots_section(title: str, drawn: Iterable[Markup], caption: str) -> Markup:
    found = figures(drawn)
    if not found:
        return NOTHING
    return html(
        '<article class="raison" id="{}">\n<h2>{}</h2>\n{}\n<p class="caption">{}</p></article>',
        anchor(title),
        title,
        found,
        caption,
    )


def anchor(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())
