"""The report of an audit: its page, a page for every method, the verdicts as Markdown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from raison.data.records import write_whole
from raison.report import phrases, plots
from raison.report.audit_page import STYLES, file_of, of_method, page
from raison.report.audit_words import LIGHTS, QUESTIONS, answer, title
from raison.report.html import compact
from raison.report.markup import asset, document, escape
from raison.report.shown import Shown, shown_texts
from raison.report.study import MARKDOWN, PAGE
from raison.report.tables import escape_markdown
from raison.runs.audit import FAITHFULNESS, Audit, MethodAudit, read_audit
from raison.runs.run import read_run
from raison.runs.trust import Substituted
from raison.runs.trust_study import substituted

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
    advice = f"**Recommended: `{audit.recommended}`**" if audit.recommended else "**No method can be recommended.**"
    head = ["method", "verdict", *QUESTIONS.values(), "passes per text"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- |" + " --- |" * len(QUESTIONS) + " ---: |"]
    for one in audit.methods:
        cells = [f"`{one.method}`", LIGHTS[one.light], *map(answer, one.evidence), f"{one.passes:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    parts = [f"# {escape_markdown(title(audit))}", f"{advice} {escape_markdown(audit.reason)}", "\n".join(lines)]
    for one in audit.methods:
        answers = "\n".join(f"- {QUESTIONS[found.question]} {escape_markdown(found.says)}" for found in one.evidence)
        parts += [f"## `{one.method}`: {LIGHTS[one.light]}", answers]
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
    return "\n".join([*lines, "", f"{advice} {audit.reason}"]) + "\n"


def _method_page(
    audit: Audit, one: MethodAudit, texts: Mapping[int, Sequence[Shown]], attacked: Substituted | None
) -> str:
    shown = [found for rows in texts.values() for found in rows if found.record.row == one.method][:EXAMPLES]
    examples = "\n".join(
        compact(found.explanation, f"Text {found.record.text + 1}", f"text-{found.record.text + 1}") for found in shown
    )
    heading = f"{one.method} on {audit.header['model']}"
    others = " · ".join(
        f'<a href="{file_of(other.method)}">{escape(other.method)}</a>' for other in audit.methods if other is not one
    )
    body = (
        f"<h1>{escape(heading)}</h1>\n"
        f'<nav class="steps" aria-label="Pages"><a href="{PAGE}">the whole audit</a></nav>\n'
        f"{of_method(audit, one)}\n"
        + (f'<article class="raison"><h2>How it explains</h2>\n<p>{_said(shown)}</p></article>\n' if shown else "")
        + f"{examples}\n{_attacked(attacked)}"
        f'<article class="raison"><h2>Other methods</h2><p>{others}</p></article>\n'
        '<div id="tip" role="tooltip" hidden></div>'
    )
    return document(heading, body, STYLES, asset("page.js"))


def _attacked(found: Substituted | None) -> str:
    """The text whose explanation exchanged words changed most, before and after."""
    if found is None:
        return ""
    words = phrases.count(found.record.steps, "word")
    was, now = (e.probabilities[e.classes.index(e.target)] for e in (found.before, found.after))
    said = (
        f"Text {found.record.text + 1} with {words} exchanged. The prediction stays {found.before.target} "
        f"({was:.3f} before, {now:.3f} after), and of the {phrases.count(found.record.k, 'top rank')} "
        f"{found.record.rank_change:.0%} go to other units."
    )
    head = '<article class="raison" id="attacked"><h2>What exchanged words do to it</h2>'
    return (
        f"{head}\n<p>{escape(said)}</p></article>\n"
        f"{compact(found.before, 'Before', 'attacked-before')}\n{compact(found.after, 'After', 'attacked-after')}\n"
    )


def _said(shown: Sequence[Shown]) -> str:
    texts = phrases.count(len(shown), "text")
    kinds = {one.explanation.signed for one in shown}
    red = " Red speaks for the predicted class, blue against it." if True in kinds else ""
    purple = " Purple says how much a unit matters, and not for what." if False in kinds else ""
    return f"The first {texts} of the data.{red}{purple}"
