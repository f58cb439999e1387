"""A table as Markdown and as LaTeX, and text escaped for both."""

import re
from collections.abc import Callable, Iterator, Sequence

from raison.core.results.printable import OVERRIDES
from raison.report.style import phrases
from raison.report.tables.records import Cell, Table
from raison.runs.judging import Verdict

_LATEX = {
    "\\": r"\textbackslash{}", "|": r"\textbar{}", "`": "`{}", "'": "'{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "[": "{[}", "–": r"\textendash{}",
    "†": r"\dag{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip
_UNPRINTABLE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), *map(ord, OVERRIDES)], "\ufffd")


def markdown_table(table: Table) -> str:
    """A table in pipes; the best of a column is bold, the second underlined."""
    lines = [
        [escape_markdown(name) for name in table.head],
        ["---", *("---:" for _ in table.head[1:])],
        *_body(table, escape_markdown, ("{}", "**{}**", "<u>{}</u>")),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex_table(table: Table) -> str:
    """A table that needs the package booktabs, with the same marks."""
    caption = ". ".join(part for part in (table.title, table.caption) if part)
    body = _body(table, escape_latex, ("{}", r"\textbf{{{}}}", r"\underline{{{}}}"))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
            r"\toprule",
            " & ".join(map(escape_latex, table.head)) + r" \\",
            r"\midrule",
            *(" & ".join([name, *(cell.replace("-", "$-$") for cell in cells)]) + r" \\" for name, *cells in body),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escape_latex(caption)}}}",
            r"\end{table}",
            "",
        ]
    )


def _body(table: Table, escaped: Callable[[str], str], marks: Sequence[str]) -> Iterator[list[str]]:
    """Rows of text; `marks` are the formats of a cell without rank, as the best and as the second."""

    def told(cell: Cell) -> str:
        mean = marks[cell.rank].format(escaped(cell.marked))
        return " ".join(part for part in (cell.lead, mean, cell.interval, cell.seeds) if part)

    for name, cells in table.rows:
        yield [escaped(name), *map(told, cells)]


def claim_text(verdict: Verdict) -> str:
    """A claim with the run, the difference that was found, and whether it survives Holm's correction."""
    gap, places = verdict.difference, phrases.places(verdict.mean, verdict.than_mean)
    known = (
        f"difference {phrases.signed(gap.mean, places)} {phrases.interval(gap.low, gap.high, places)}, n = {gap.count}"
    )
    stands = {None: "", True: "also after Holm's correction", False: "not after Holm's correction"}[verdict.survives]
    without = verdict.finding == "too few" or verdict.differing
    power = "" if without else phrases.power(verdict.detectable, verdict.needed, places)
    seen = ", ".join(part for part in (verdict.run, known if gap.count else "", power, stands) if part)
    told = "; ".join(part for part in (seen, verdict.note, verdict.caveat) if part)
    return f"{verdict.says} ({told})"


def one_line(text: str) -> str:
    """Text with one space for all white space; control characters and lone surrogates are replaced."""
    return " ".join(text.split()).translate(_UNPRINTABLE)


def comments(lines: Sequence[str]) -> str:
    """Lines as LaTeX comments."""
    return "".join(f"% {one_line(line)}\n" for line in lines)


def escape_markdown(text: str) -> str:
    """One line of text as Markdown that shows it."""
    flat = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    plain = "".join(f"\\{character}" if character in "\\|*_`" else character for character in flat)
    # A link would need both brackets side by side.
    return plain.replace("](", "]\\(")


def escape_latex(text: str) -> str:
    """One line of text as LaTeX that prints it."""
    shown = "".join(_LATEX.get(character, character) for character in one_line(text))
    return re.sub("-(?=-)", "-{}", shown)
