"""The report of an audit: its page, a page for every method, the verdicts as Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from raison.jobs.store import write_whole
from raison.report import phrases, plots
from raison.report.html import compact
from raison.report.markup import NOTHING, Markup, asset, document, html, joined, lines
from raison.report.shown import Shown, shown_texts
from raison.report.tables import code_markdown, escape_markdown, warnings
from raison.runs.run import read_run
from raison.studies.kinds.audit.page import STYLES, file_of, of_method, page
from raison.studies.kinds.audit.results import FAITHFULNESS, Audit, MethodAudit, read_audit
from raison.studies.kinds.audit.words import LIGHTS, QUESTIONS, answer, title
from raison.studies.kinds.comparison.report import MARKDOWN, PAGE
from raison.trust.records import Substituted
from raison.trust.results import substituted

EXAMPLES = 3
"""Texts that a method's page shows."""


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report of an audit, by default into its folder `report`; the page's path.

    Raises DataError where the folder holds no audit with finished texts, or matplotlib is missing for plots.
    """
    if draw:
        plots.require()
    audit = read_audit(folder)
    target = folder / "report" if out is None else out
    texts = shown_texts(read_run(folder / FAITHFULNESS))
    for one in audit.methods:
        attacked = substituted(folder, audit.trust, one.method)
        write_whole(target / file_of(one.method), _method_page(audit, one, texts, attacked))
    write_whole(target / MARKDOWN, markdown(audit))
    write_whole(target / PAGE, page(audit, draw))
    return target / PAGE


def markdown(audit: Audit) -> str:
    """The verdicts as Markdown."""
    advice = (
        f"**Recommended: {code_markdown(audit.recommended)}**"
        if audit.recommended
        else "**No method can be recommended.**"
    )
    head = ["method", "verdict", *QUESTIONS.values(), "passes per text"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- |" + " --- |" * len(QUESTIONS) + " ---: |"]
    for one in audit.methods:
        cells = [
            code_markdown(one.method).replace("|", "\\|"),
            LIGHTS[one.light],
            *map(answer, one.evidence),
            f"{one.passes:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    parts = [f"# {escape_markdown(title(audit))}", f"{advice} {escape_markdown(audit.reason)}"]
    parts += [f"**{escape_markdown(warning)}**" for warning in warnings(audit.table)]
    parts.append("\n".join(lines))
    for one in audit.methods:
        answers = "\n".join(f"- {QUESTIONS[found.question]} {escape_markdown(found.says)}" for found in one.evidence)
        parts += [f"## {code_markdown(one.method)}: {LIGHTS[one.light]}", answers]
    if audit.left_out:
        parts += ["## Left out", "\n".join(f"- {escape_markdown(f'{what}: {why}')}" for what, why in audit.left_out)]
    return "\n\n".join(parts) + "\n"


def plain(audit: Audit) -> str:
    """The verdicts for a terminal."""
    rows = [["method", "verdict", "faithful", "depends", "steady", "attacks", "passes"]]
    rows += [[one.method, LIGHTS[one.light], *map(answer, one.evidence), f"{one.passes:,.0f}"] for one in audit.methods]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    advice = f"Recommended: {audit.recommended}." if audit.recommended else "No method can be recommended."
    return "\n".join([*lines, "", *warnings(audit.table), f"{advice} {audit.reason}"]) + "\n"


def _method_page(
    audit: Audit, one: MethodAudit, texts: Mapping[int, Sequence[Shown]], attacked: Substituted | None
) -> str:
    shown = [found for rows in texts.values() for found in rows if found.record.row == one.method][:EXAMPLES]
    heading = f"{one.method} on {audit.header['model']}"
    body = html(
        '<h1>{}</h1>\n<nav class="steps" aria-label="Pages"><a href="{}">the whole audit</a></nav>\n{}\n{}{}\n{}'
        '<article class="raison"><h2>Other methods</h2><p>{}</p></article>\n'
        '<div id="tip" role="tooltip" hidden></div>',
        heading,
        PAGE,
        of_method(audit, one),
        _examples_head(shown),
        lines(
            compact(found.explanation, f"Text {found.record.text + 1}", f"text-{found.record.text + 1}")
            for found in shown
        ),
        _attacked(attacked),
        joined(
            (html('<a href="{}">{}</a>', file_of(o.method), o.method) for o in audit.methods if o is not one), " · "
        ),
    )
    return document(heading, body, STYLES, asset("page.js"))


def _attacked(found: Substituted | None) -> Markup:
    """The text whose explanation exchanged words changed most, before and after."""
    if found is None:
        return NOTHING
    words = phrases.count(found.record.steps, "word")
    was, now = (e.probabilities[e.classes.index(e.target)] for e in (found.before, found.after))
    said = (
        f"Text {found.record.text + 1} with {words} exchanged. The prediction stays {found.before.target} "
        f"({was:.3f} before, {now:.3f} after), and of the {phrases.count(found.record.k, 'top rank')} "
        f"{found.record.rank_change:.0%} go to other units."
    )
    return html(
        '<article class="raison" id="attacked"><h2>What exchanged words do to it</h2>\n<p>{}</p></article>\n{}\n{}\n',
        said,
        compact(found.before, "Before", "attacked-before"),
        compact(found.after, "After", "attacked-after"),
    )


def _examples_head(shown: Sequence[Shown]) -> Markup:
    if not shown:
        return NOTHING
    return html('<article class="raison"><h2>How it explains</h2>\n<p>{}</p></article>\n', _said(shown))


def _said(shown: Sequence[Shown]) -> str:
    texts = phrases.count(len(shown), "text")
    kinds = {one.explanation.signed for one in shown}
    red = " Red speaks for the predicted class, blue against it." if True in kinds else ""
    purple = " Purple says how much a unit matters, and not for what." if False in kinds else ""
    return f"The first {texts} of the data.{red}{purple}"
