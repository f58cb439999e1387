"""Claims and what the records say to them, as a table of a page."""

from collections.abc import Sequence

from raison.numerics.statistics.paired import Difference
from raison.report.style import phrases
from raison.report.style.colours import peak
from raison.report.style.markup import NOTHING, Markup, html
from raison.report.tables.html import breakable, grid, minus
from raison.report.tables.records import interval
from raison.runs.judging import RULE, Verdict


def claims_grid(verdicts: Sequence[Verdict]) -> Markup:
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
        '{}\n<p class="caption">{} Holm: whether it stands after Holm\'s correction over all claims.</p>', whole, RULE
    )


def _findings(verdicts: Sequence[Verdict]) -> Markup:
    """Claims x runs: what was found and by how much; a claim that is not about a run leaves its cell empty."""
    runs = list(dict.fromkeys(verdict.run for verdict in verdicts))
    claims: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        claims.setdefault(verdict.says, {})[verdict.run] = verdict
    rows = [
        [says, *(_finding(of_run[run]) if run in of_run else "" for run in runs)] for says, of_run in claims.items()
    ]
    return grid("Findings", ["claim", *map(breakable, runs)], rows)


def _finding(verdict: Verdict) -> Markup:
    places = _places(verdict.mean, verdict.than_mean)
    gap = minus(phrases.signed(verdict.difference.mean, places)) if verdict.difference.count else ""
    return html("{}<small>{}</small>", _named(verdict), gap)


def _named(verdict: Verdict) -> Markup:
    """The finding, with the reason if there is none; CSS classes have no spaces."""
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


def _gap(gap: Difference, places: int) -> Markup:
    """A difference with its interval below."""
    small = minus(interval(gap.low, gap.high, places))
    return html("{}{}", minus(phrases.signed(gap.mean, places)), html("<small>{}</small>", small) if small else NOTHING)


def _places(*values: float) -> int:
    return max(3, min(6, phrases.decimals(peak(values))))
