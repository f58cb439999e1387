"""raison methods, raison metrics, raison bibtex. The pages in docs/ are made from the same rows and references."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.cli import options
from raison.cli.listing import CatalogueEntry, entry, names
from raison.core.errors import DataError, RaisonError, UnknownNameError
from raison.core.nicknames import NICKNAMES
from raison.core.registry import summary_of
from raison.core.settings.reading import dump

if TYPE_CHECKING:
    from rich.table import Table

BETTER = {True: "higher", False: "lower", None: "neither"}
BIBLIOGRAPHY = "references.bib"
LEGEND = "Passes count single sequences, for a text of n units and t tokens; other names are the method's settings."

Names = Annotated[list[str], typer.Argument(metavar="NAMES...", help="Names of methods or metrics, or all.")]


def methods(json: options.Json = False) -> None:
    """List the methods with requirements, guarantees, costs and sources."""
    rows = _usable("methods", _method_row)
    note = f"{LEGEND} --json shows more; `raison bibtex METHOD` prints the reference."
    _print(rows, {"passes": "passes per text"}, ("below zero", "settings", "reference"), json, note)


def metrics(json: options.Json = False) -> None:
    """List the metrics with direction, requirements, settings and sources."""
    _print(_usable("metrics", _metric_row), {}, ("reference",), json)


def references(wanted: Names, json: options.Json = False) -> None:
    """Print the BibTeX entries of methods and metrics."""
    cited: dict[str, list[str]] = {}
    kinds = {name: kind for kind in ("methods", "metrics") for name in names(kind)}
    for name in kinds if "all" in wanted else dict.fromkeys(wanted):
        # A call with settings is also accepted.
        known = name.partition("(")[0].strip()
        if known not in kinds:
            raise UnknownNameError("method or metric", name, kinds, NICKNAMES)
        for key in references_of(entry(kinds[known], known)):
            cited.setdefault(key, []).append(known)
    if json:
        entries = [{"key": key, "cited_by": by, "bibtex": bibtex(key)} for key, by in cited.items()]
        typer.echo(dump(entries, 1))
    else:
        typer.echo("\n\n".join(map(bibtex, cited)))


def method_rows() -> list[dict[str, Any]]:
    """The catalogue's row for each method, as plain values. Raises a RaisonError for a file that cannot be used."""
    return [_method_row(name) for name in names("methods")]


def metric_rows() -> list[dict[str, Any]]:
    """The catalogue's row for each metric, likewise."""
    return [_metric_row(name) for name in names("metrics")]


def _usable(kind: str, row_of: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the files that can be used. Each other one is named on stderr: it stops no list."""
    rows = []
    for name in names(kind):
        try:
            rows.append(row_of(name))
        except RaisonError as error:
            path, reason = f"raison/{kind}/{name}.py", str(error)
            typer.echo(f"raison: {reason if path in reason else f'{path}: {reason}'}", err=True)
    return rows


def _method_row(name: str) -> dict[str, Any]:
    known = entry("methods", name)
    return {
        "method": name,
        "about": summary_of(known.doc),
        "needs": _needs(known),
        "properties": sorted(known.facts["properties"]),
        "below zero": _below_zero(known),
        "passes": known.facts["passes"],
        "settings": dict(known.settings),
        "reference": known.facts["reference"],
        "paper": paper(known.facts["reference"]),
    }


def _metric_row(name: str) -> dict[str, Any]:
    known = entry("metrics", name)
    return {
        "metric": name,
        "about": summary_of(known.doc),
        "better": BETTER[known.facts["higher_is_better"]],
        "needs": sorted(known.facts["needs"]),
        "settings": dict(known.settings),
        "reference": known.facts["reference"],
        "paper": paper(known.facts["reference"]),
    }


def _needs(method: CatalogueEntry) -> list[str]:
    """Required capabilities, and "classes" if a single number cannot be explained."""
    return sorted({*method.facts["needs"], *(() if "number" in method.facts["outputs"] else ("classes",))})


def _below_zero(method: CatalogueEntry) -> str:
    """Whether scores can be negative; a method that computes this fact depends on its settings."""
    if "unsigned" in method.facts["properties"]:
        return "never"
    return "depends on its settings" if "signed" in method.functions else "yes"


def references_of(known: CatalogueEntry) -> list[str]:
    """Keys of all entries that a method or metric names: its own first, then those of its docstring's last line."""
    first = known.facts["reference"]
    named = re.findall(r"[a-z]+\d{4}\w+", known.doc.rpartition("Reference:")[2])
    return list(dict.fromkeys([first, *(key for key in named if key in bibliography())]))


def bibtex(key: str) -> str:
    """An entry of the bibliography. Raises DataError for an unknown key."""
    if key not in bibliography():
        raise DataError(f"{BIBLIOGRAPHY} has no entry '{key}': add it to docs/{BIBLIOGRAPHY}.")
    return bibliography()[key]


def paper(key: str) -> str:
    """Authors and year of an entry, "Lundberg and Lee 2017"; its title if it has no author."""
    entry = " ".join(bibtex(key).split())
    year = re.search(r"year ?= ?[{\"]?(\d{4})", entry)
    written = _field(entry, "author").split(" and ")
    names = [name.partition(",")[0].strip() for name in written]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names) or _field(entry, "title") or key
    return f"{who} {year[1]}" if year else who


def _field(entry: str, name: str) -> str:
    """A field of an entry on one line, without inner braces; "" if missing."""
    match = re.search(rf"\b{name} ?= ?\{{(.*?)\}} ?,? ?(?=\w+ ?=|\}}$)", entry)
    return re.sub(r"[{}]", "", match[1]) if match else ""


@cache
def bibliography() -> dict[str, str]:
    """The entries by key. An installed package contains the file; a checkout has it in docs/."""
    package = Path(__file__).parents[1]
    for path in (package / BIBLIOGRAPHY, package.parents[1] / "docs" / BIBLIOGRAPHY):
        if path.is_file():
            entries = re.split(r"\n(?=@)", path.read_text(encoding="utf-8").strip())
            return {entry.partition("{")[2].partition(",")[0].strip(): entry.strip() for entry in entries}
    raise DataError(f"{BIBLIOGRAPHY} is missing from the package: reinstall raison.")


def _print(
    rows: list[dict[str, Any]], titles: dict[str, str], leave_out: Sequence[str], json: bool, note: str = ""
) -> None:
    """A table as wide as the terminal, a list if that would break words, or everything as JSON."""
    if json:
        typer.echo(dump(rows, 1))
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    facts = [fact for fact in rows[0] if fact not in leave_out]
    console = Console(highlight=False)
    cells = [[_cell(row[fact]) for fact in facts] for row in rows]
    names = [titles.get(fact, fact) for fact in facts]
    if _least_width([names, *cells]) <= console.width:
        console.print(_table(names, cells))
    else:
        for name, *others in cells:
            console.print(Text(name, style="bold"))
            lines = [f"{title}: {cell}" for title, cell in zip(names[1:], others, strict=True) if cell]
            console.print(Padding(Text("\n".join(lines)), (0, 0, 0, 4), expand=False))
    if note:
        console.print(Text(note))


def _table(names: list[str], cells: list[list[str]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*names, box=box.SIMPLE, show_lines=True, pad_edge=False)
    for number, column in enumerate(table.columns):
        column.no_wrap = number == 0
        column.min_width = max(len(word) for row in cells for word in row[number].split() or [""])
    for name, *others in cells:
        table.add_row(Text(name, style="bold"), *map(Text, others))
    return table


def _least_width(rows: list[list[str]]) -> int:
    """The narrowest table that keeps names whole and breaks no word."""
    first, *others = zip(*rows, strict=True)
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in others]
    # A divider with two spaces between columns, and the edges.
    return max(map(len, first)) + sum(words) + 3 * len(words) + 2


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
