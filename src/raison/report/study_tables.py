"""The small tables of a study's report: differences, what choosing costs, agreement, claims."""

import math
from collections.abc import Sequence

from raison.core.results import Comparison
from raison.numerics.paired import Difference
from raison.report import phrases
from raison.report.colours import SIGNED, peak
from raison.report.html_tables import breakable, grid, minus
from raison.report.markup import escape
from raison.runs.agreement import PairAgreement
from raison.runs.judging import RULE, Verdict
from raison.runs.statistics import Contrast, Selection, contrasts, directed, mean_ranks, selection

LEVEL = 0.05
"""Adjusted p-values below this tell two methods apart."""

_MEASURES = {"spearman": "Spearman", "top_k_overlap": "overlap of the top 20 %", "cosine": "cosine"}


def differences(comparison: Comparison) -> str:
    """Each method against the best of each column, by mean rank; "" where no metric has a direction."""
    directions = directed(comparison)
    if not directions:
        return ""
    found = {metric: {one.method: one for one in listed} for metric, listed in contrasts(comparison).items()}
    ranks = mean_ranks(comparison)
    order = sorted(ranks, key=lambda method: (math.isnan(ranks[method]), ranks[method]))
    head = ["method", "mean rank", *(f"{escape(name)} {'↑' if up else '↓'}" for name, up in directions.items())]
    places = {name: _places(*(one.difference.mean for one in column.values())) for name, column in found.items()}
    rows = [
        [
            breakable(method),
            phrases.number(ranks[method], 2),
            *(_contrast(found[name].get(method), places[name]) for name in directions),
        ]
        for method in order
    ]
    return (
        f"<h3>Against the best</h3>\n{grid('Differences from the best', head, rows)}\n"
        '<p class="caption">Method minus the best of the column on the same texts, with its 95 % interval; p from a '
        "paired permutation test, corrected by Holm's method for all methods and metrics of this table. Grey: not told "
        f"apart from the best (p of {LEVEL} or more). The best is found on the same texts, which favours it a little. "
        "Mean rank: over the metrics with a direction, 1 is best.</p>"
    )


def selections(comparison: Comparison) -> str:
    """What choosing maps by a metric costs elsewhere, controls beside; "" where nothing was chosen."""
    found = selection(comparison)
    if not found:
        return ""
    tables = "\n".join(f"<div><h4>{escape(one.method)}</h4>\n{_matrix(one)}</div>" for one in found)
    return (
        f'<h3>Chosen by one metric, judged by another</h3>\n<div class="beside">\n{tables}</div>\n'
        '<p class="caption">Rows: the metric that chose each text\'s map. Columns: the metric that judges it. Below a '
        "value: its difference from choosing by the judge itself, with the 95 % interval. A row of random maps chosen "
        "the same way is the control: what choosing alone gains.</p>"
    )


def agreements(pairs: Sequence[PairAgreement]) -> str:
    """Matrices of how alike the methods' scores are; "" without pairs."""
    if not pairs:
        return ""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    tables = "\n".join(_square(names, pairs, measure) for measure in _MEASURES)
    return (
        f'<h3>How alike the methods explain</h3>\n<div class="beside">\n{tables}</div>\n'
        '<p class="caption">Means over texts; a text on which a measure is undefined is left out. Columns are numbered '
        "as the rows are.</p>"
    )


def claims(verdicts: Sequence[Verdict]) -> str:
    """What the study states and what the records say; "" without claims."""
    if not verdicts:
        return ""
    head = ["claim", "finding", "Holm", "run", "metric", "compared", "difference", "n"]
    whole = grid("Claims", head, [_claim(verdict) for verdict in verdicts])
    if len({verdict.run for verdict in verdicts}) > 1:
        whole = (
            f"{_findings(verdicts)}\n<details><summary>The numbers behind all {len(verdicts)} findings</summary>\n"
            f"{whole}</details>"
        )
    return (
        f'<article class="raison" id="claims">\n<h2>Claims</h2>\n{whole}\n'
        f'<p class="caption">{escape(RULE)} Holm: whether it stands after Holm\'s correction over all claims.</p>'
        "</article>"
    )


def _findings(verdicts: Sequence[Verdict]) -> str:
    """Claims x runs: what was found and by how much; a claim that is not about a run leaves its cell empty."""
    runs = list(dict.fromkeys(verdict.run for verdict in verdicts))
    found: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.says, {})[verdict.run] = verdict
    rows = [
        [escape(says), *(_finding(of_run[run]) if run in of_run else "" for run in runs)]
        for says, of_run in found.items()
    ]
    return grid("Findings", ["claim", *map(breakable, runs)], rows)


def _finding(verdict: Verdict) -> str:
    places = _places(verdict.mean, verdict.than_mean)
    gap = minus(phrases.signed(verdict.difference.mean, places)) if verdict.difference.count else ""
    return f"{_named(verdict)}<small>{gap}</small>"


def _named(verdict: Verdict) -> str:
    """The finding, with why where it is not one; classes of a style have no blanks."""
    why = f' title="{escape(verdict.note)}"' if verdict.note else ""
    return f'<span class="{verdict.finding.replace(" ", "-")}"{why}>{verdict.finding}</span>'


def _claim(verdict: Verdict) -> list[str]:
    places = _places(verdict.mean, verdict.than_mean)
    than = verdict.than if isinstance(verdict.than, str) else f"{verdict.than:g}"
    values = f"{phrases.number(verdict.mean, places)} against {phrases.number(verdict.than_mean, places)}"
    compared = f"{breakable(verdict.row)} {verdict.side} {breakable(than)}"
    known = verdict.difference.count > 0
    return [
        escape(verdict.says),
        f"{_named(verdict)}<small>{escape(verdict.note)}</small>",
        {None: "", True: "yes", False: "no"}[verdict.survives],
        breakable(verdict.run),
        breakable(verdict.metric),
        f'<td class="says">{compared}<small>{minus(values)}</small></td>',
        _gap(verdict.difference, places) if known else "",
        f"{verdict.difference.count:,}" if known else "",
    ]


def _contrast(found: Contrast | None, places: int) -> str:
    if found is None:
        return "–"
    if found.method == found.best:
        return "<strong>best</strong>"
    p = "n/a" if math.isnan(found.p) else "p &lt; 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"
    shown = f'<span class="p">{p}</span> {_gap(found.difference, places)}'
    return f'<td class="soft">{shown}</td>' if not found.p < LEVEL else shown


def _gap(gap: Difference, places: int) -> str:
    """A difference with its interval below."""
    shown = minus(phrases.signed(gap.mean, places))
    if math.isnan(gap.low):
        return shown
    return f"{shown}<small>{minus(f'[{phrases.number(gap.low, places)}, {phrases.number(gap.high, places)}]')}</small>"


def _matrix(found: Selection) -> str:
    head = ["chosen by", *map(escape, found.judges)]
    places = [_places(*(row[column].summary.mean for row in found.values)) for column in range(len(found.judges))]
    rows = []
    for chooser, values, gaps in zip(found.choosers, found.values, found.differences, strict=True):
        cells = []
        for judge, scores, gap, digits in zip(found.judges, values, gaps, places, strict=True):
            mean = minus(phrases.number(scores.summary.mean, digits))
            mean = f"<strong>{mean}</strong>" if judge == chooser else mean
            cells.append(f"{mean}<small>{_gap_line(gap, digits)}</small>" if gap else mean)
        rows.append(["<em>not chosen</em>" if chooser is None else breakable(chooser), *cells])
    return grid(f"Chosen and judged: {found.method}", head, rows)


def _gap_line(gap: Difference, places: int) -> str:
    """A difference and its interval in one line."""
    return _gap(gap, places).replace("<small>", " ").replace("</small>", "")


def _square(names: Sequence[str], pairs: Sequence[PairAgreement], measure: str) -> str:
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
            cells.append("<td></td>" if summary is None else _shaded(summary.mean, title))
        rows.append([f"{number} {breakable(row)}", *cells])
    head = ["", *map(str, range(1, len(names) + 1))]
    return f"<div><h4>{_MEASURES[measure]}</h4>\n{grid(_MEASURES[measure], head, rows)}</div>"


def _shaded(value: float, title: str) -> str:
    if math.isnan(value):
        return f'<td title="{escape(title)}">n/a</td>'
    return (
        f'<td class="shade" style="{SIGNED.css(value)}" title="{escape(title)}">{minus(phrases.number(value, 2))}</td>'
    )


def _places(*values: float) -> int:
    return max(3, min(6, phrases.decimals(peak(values))))
