"""The small tables of a study's report: differences, what choosing costs, agreement, claims."""

import math
from collections.abc import Sequence

from raison.core.results import Comparison
from raison.numerics.paired import Difference
from raison.report import phrases
from raison.report.colours import SIGNED, peak
from raison.report.html_tables import breakable, grid, minus
from raison.report.markup import NOTHING, Markup, html, lines
from raison.runs.agreement import PairAgreement
from raison.runs.judging import RULE, Verdict
from raison.runs.statistics import Contrast, Selection, contrasts, directed, mean_ranks, selection

LEVEL = 0.05
"""Adjusted p-values below this tell two methods apart."""

_MEASURES = {"spearman": "Spearman", "top_k_overlap": "overlap of the top 20 %", "cosine": "cosine"}


def differences(comparison: Comparison) -> Markup:
    """Each method against the best of each column, by mean rank; nothing where no metric has a direction."""
    directions = directed(comparison)
    if not directions:
        return NOTHING
    found = {metric: {one.method: one for one in listed} for metric, listed in contrasts(comparison).items()}
    ranks = mean_ranks(comparison)
    order = sorted(ranks, key=lambda method: (math.isnan(ranks[method]), ranks[method]))
    head = ["method", "mean rank", *(f"{name} {'↑' if up else '↓'}" for name, up in directions.items())]
    places = {name: _places(*(one.difference.mean for one in column.values())) for name, column in found.items()}
    rows = [
        [
            breakable(method),
            phrases.number(ranks[method], 2),
            *(_contrast(found[name].get(method), places[name]) for name in directions),
        ]
        for method in order
    ]
    return html(
        "<h3>Against the best</h3>\n{}\n"
        '<p class="caption">Method minus the best of the column on the same texts, with its 95 % interval; p from a '
        "paired permutation test, corrected by Holm's method for all methods and metrics of this table. Grey: not told "
        "apart from the best (p of {} or more). The best is found on the same texts, which favours it a little. "
        "Mean rank: over the metrics with a direction, 1 is best.</p>",
        grid("Differences from the best", head, rows),
        LEVEL,
    )


def selections(comparison: Comparison) -> Markup:
    """What choosing maps by a metric costs elsewhere, controls beside; nothing where nothing was chosen."""
    found = selection(comparison)
    if not found:
        return NOTHING
    return html(
        '<h3>Chosen by one metric, judged by another</h3>\n<div class="beside">\n{}</div>\n'
        '<p class="caption">Rows: the metric that chose each text\'s map. Columns: the metric that judges it. Below a '
        "value: its difference from choosing by the judge itself, with the 95 % interval. A row of random maps chosen "
        "the same way is the control: what choosing alone gains.</p>",
        lines(html("<div><h4>{}</h4>\n{}</div>", one.method, _matrix(one)) for one in found),
    )


def agreements(pairs: Sequence[PairAgreement]) -> Markup:
    """Matrices of how alike the methods' scores are; nothing without pairs."""
    if not pairs:
        return NOTHING
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    return html(
        '<h3>How alike the methods explain</h3>\n<div class="beside">\n{}</div>\n'
        '<p class="caption">Means over texts; a text on which a measure is undefined is left out. Columns are numbered '
        "as the rows are.</p>",
        lines(_square(names, pairs, measure) for measure in _MEASURES),
    )


def claims(verdicts: Sequence[Verdict]) -> Markup:
    """What the study states and what the records say; nothing without claims."""
    if not verdicts:
        return NOTHING
    head = ["claim", "finding", "Holm", "run", "metric", "compared", "difference", "n"]
    whole = grid("Claims", head, [_claim(verdict) for verdict in verdicts])
    if len({verdict.run for verdict in verdicts}) > 1:
        whole = html(
            "{}\n<details><summary>The numbers behind all {} findings</summary>\n{}</details>",
            _findings(verdicts),
            len(verdicts),
            whole,
        )
    return html(
        '<article class="raison" id="claims">\n<h2>Claims</h2>\n{}\n'
        '<p class="caption">{} Holm: whether it stands after Holm\'s correction over all claims.</p></article>',
        whole,
        RULE,
    )


def _findings(verdicts: Sequence[Verdict]) -> Markup:
    """Claims x runs: what was found and by how much; a claim that is not about a run leaves its cell empty."""
    runs = list(dict.fromkeys(verdict.run for verdict in verdicts))
    found: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.says, {})[verdict.run] = verdict
    rows = [[says, *(_finding(of_run[run]) if run in of_run else "" for run in runs)] for says, of_run in found.items()]
    return grid("Findings", ["claim", *map(breakable, runs)], rows)


def _finding(verdict: Verdict) -> Markup:
    places = _places(verdict.mean, verdict.than_mean)
    gap = minus(phrases.signed(verdict.difference.mean, places)) if verdict.difference.count else ""
    return html("{}<small>{}</small>", _named(verdict), gap)


def _named(verdict: Verdict) -> Markup:
    """The finding, with why where it is not one; classes of a style have no blanks."""
    why = html(' title="{}"', verdict.note) if verdict.note else NOTHING
    return html('<span class="{}"{}>{}</span>', verdict.finding.replace(" ", "-"), why, verdict.finding)


def _claim(verdict: Verdict) -> list[str]:
    places = _places(verdict.mean, verdict.than_mean)
    than = verdict.than if isinstance(verdict.than, str) else f"{verdict.than:g}"
    values = f"{phrases.number(verdict.mean, places)} against {phrases.number(verdict.than_mean, places)}"
    compared = html("{} {} {}", breakable(verdict.row), verdict.side, breakable(than))
    known = verdict.difference.count > 0
    return [
        verdict.says,
        html("{}<small>{}</small>", _named(verdict), verdict.note),
        {None: "", True: "yes", False: "no"}[verdict.survives],
        breakable(verdict.run),
        breakable(verdict.metric),
        html('<td class="says">{}<small>{}</small></td>', compared, minus(values)),
        _gap(verdict.difference, places) if known else "",
        f"{verdict.difference.count:,}" if known else "",
    ]


def _contrast(found: Contrast | None, places: int) -> str:
    if found is None:
        return "–"
    if found.method == found.best:
        return html("<strong>best</strong>")
    p = "n/a" if math.isnan(found.p) else "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    shown = html('<span class="p">{}</span> {}', p, _gap(found.difference, places))
    return html('<td class="soft">{}</td>', shown) if not found.p < LEVEL else shown


def _gap(gap: Difference, places: int) -> str:
    """A difference with its interval below."""
    shown = minus(phrases.signed(gap.mean, places))
    return shown if math.isnan(gap.low) else html("{}<small>{}</small>", shown, _interval(gap, places))


def _interval(gap: Difference, places: int) -> str:
    return minus(f"[{phrases.number(gap.low, places)}, {phrases.number(gap.high, places)}]")


def _matrix(found: Selection) -> Markup:
    places = [_places(*(row[column].summary.mean for row in found.values)) for column in range(len(found.judges))]
    rows = []
    for chooser, values, gaps in zip(found.choosers, found.values, found.differences, strict=True):
        cells = []
        for judge, scores, gap, digits in zip(found.judges, values, gaps, places, strict=True):
            mean = minus(phrases.number(scores.summary.mean, digits))
            mean = html("<strong>{}</strong>", mean) if judge == chooser else mean
            cells.append(html("{}<small>{}</small>", mean, _gap_line(gap, digits)) if gap else mean)
        rows.append([html("<em>not chosen</em>") if chooser is None else breakable(chooser), *cells])
    return grid(f"Chosen and judged: {found.method}", ["chosen by", *found.judges], rows)


def _gap_line(gap: Difference, places: int) -> str:
    """A difference and its interval in one line."""
    shown = minus(phrases.signed(gap.mean, places))
    return shown if math.isnan(gap.low) else f"{shown} {_interval(gap, places)}"


def _square(names: Sequence[str], pairs: Sequence[PairAgreement], measure: str) -> Markup:
    means = {}
    for pair in pairs:
        summary = {"spearman": pair.spearman, "top_k_overlap": pair.top_k_overlap, "cosine": pair.cosine}[measure]
        means[pair.first, pair.second] = means[pair.second, pair.first] = summary
    rows = []
    for number, row in enumerate(names, 1):
        cells = []
        for column in names:
            summary = means.get((row, column))
            title = (
                "" if summary is None else f"{row} and {column}: 95 % interval {summary.low:.2f} to {summary.high:.2f}"
            )
            cells.append(html("<td></td>") if summary is None else _shaded(summary.mean, title))
        rows.append([html("{} {}", number, breakable(row)), *cells])
    head = ["", *map(str, range(1, len(names) + 1))]
    return html("<div><h4>{}</h4>\n{}</div>", _MEASURES[measure], grid(_MEASURES[measure], head, rows))


def _shaded(value: float, title: str) -> Markup:
    if math.isnan(value):
        return html('<td title="{}">n/a</td>', title)
    shown = minus(phrases.number(value, 2))
    return html('<td class="shade" style="{}" title="{}">{}</td>', SIGNED.css(value), title, shown)


def _places(*values: float) -> int:
    return max(3, min(6, phrases.decimals(peak(values))))
