"""raison methods, raison metrics, raison cite. The pages in docs/ are made from the same rows and references."""

import json as json_module
import re
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.cli import options
from raison.core.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

    from raison.core.registry import Catalogue

BETTER = {True: "higher", False: "lower", None: "neither"}
BIBLIOGRAPHY = "references.bib"
LEGEND = "Passes are of single sequences, for a text of n units and t tokens; other names are the method's settings."

Names = Annotated[list[str], typer.Argument(help="Names of methods or metrics; all stands for every one of them.")]


def methods(json: options.Json = False) -> None:
    """List the methods with what they need, what they promise, what they cost and where they come from."""
    rows = method_rows()
    note = f"{LEGEND} --json tells more; `raison cite METHOD` prints the reference."
    _print(rows, {"passes": "passes per text"}, ("about", "below zero", "settings", "reference"), json, note)


def metrics(json: options.Json = False) -> None:
    """List the metrics with their direction, what they need, their settings and where they come from."""
    _print(metric_rows(), {}, ("about", "reference"), json)


def cite(names: Names, json: options.Json = False) -> None:
    """Print the BibTeX entries of methods and metrics: the papers that they come from."""
    cited: dict[str, list[str]] = {}
    catalogues = {name: catalogue for catalogue in _catalogues() for name in catalogue.names}
    for name in catalogues if "all" in names else dict.fromkeys(names):
        # A call with settings is a method, too.
        known = name.partition("(")[0].strip()
        if known not in catalogues:
            raise UnknownNameError("method or metric", name, catalogues)
        for key in references_of(catalogues[known].get(known)):
            cited.setdefault(key, []).append(known)
    if json:
        found = [{"key": key, "cited_by": by, "bibtex": bibtex(key)} for key, by in cited.items()]
        typer.echo(json_module.dumps(found, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n\n".join(map(bibtex, cited)))


def method_rows() -> list[dict[str, Any]]:
    """What the catalogue says of each method, as plain values."""
    from raison.methods import CATALOGUE

    return [
        {
            "method": name,
            "about": summary(cls),
            "needs": sorted(cls.needs),
            "properties": sorted(cls.properties),
            "below zero": "yes" if CATALOGUE.create(name).signed else "never",
            "passes": cls.passes,
            "settings": settings(cls),
            "reference": cls.reference,
            "paper": paper(cls.reference),
        }
        for name in CATALOGUE.names
        for cls in [CATALOGUE.get(name)]
    ]


def metric_rows() -> list[dict[str, Any]]:
    """What the catalogue says of each metric, as plain values."""
    from raison.metrics import CATALOGUE

    return [
        {
            "metric": name,
            "about": summary(cls),
            "better": BETTER[cls.higher_is_better],
            "needs": sorted(cls.needs),
            "settings": settings(cls),
            "reference": cls.reference,
            "paper": paper(cls.reference),
        }
        for name in CATALOGUE.names
        for cls in [CATALOGUE.get(name)]
    ]


def settings(cls: type) -> dict[str, object]:
    """The settings with their defaults."""
    return {field.name: field.default for field in fields(cls)}


def summary(cls: type) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def references_of(cls: Any) -> list[str]:
    """Keys of all entries that a method or metric names: its own first, then those of its docstring's last line."""
    named = re.findall(r"[a-z]+\d{4}\w+", (cls.__doc__ or "").rpartition("Reference:")[2])
    return list(dict.fromkeys([cls.reference, *(key for key in named if key in bibliography())]))


def bibtex(key: str) -> str:
    """An entry of the bibliography. Raises DataError for a key that it does not have."""
    if key not in bibliography():
        raise DataError(f"{BIBLIOGRAPHY} has no entry '{key}': add it to docs/{BIBLIOGRAPHY}.")
    return bibliography()[key]


def paper(key: str) -> str:
    """Authors and year of an entry: "Lundberg and Lee 2017"."""
    entry = " ".join(bibtex(key).split())
    authors = re.search(r"author ?= ?\{(.*?)\} ?,? ?(?=\w+ ?=|\}$)", entry)
    year = re.search(r"year ?= ?[{\"]?(\d{4})", entry)
    written = authors[1].split(" and ") if authors else []
    names = [re.sub(r"[{}]", "", name).partition(",")[0].strip() for name in written]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names) or key
    return f"{who} {year[1]}" if year else who


@cache
def bibliography() -> dict[str, str]:
    """The entries by key. An installed package carries the file, a checkout has it among its documents."""
    package = Path(__file__).parents[1]
    for path in (package / BIBLIOGRAPHY, package.parents[1] / "docs" / BIBLIOGRAPHY):
        if path.is_file():
            entries = re.split(r"\n(?=@)", path.read_text(encoding="utf-8").strip())
            return {entry.partition("{")[2].partition(",")[0].strip(): entry.strip() for entry in entries}
    raise DataError(f"{BIBLIOGRAPHY} is missing beside the package: install raison again.")


def _catalogues() -> "tuple[Catalogue[Any], ...]":
    from raison.methods import CATALOGUE as METHODS
    from raison.metrics import CATALOGUE as METRICS

    return METHODS, METRICS


def _print(
    rows: list[dict[str, Any]], titles: dict[str, str], leave_out: Sequence[str], json: bool, note: str = ""
) -> None:
    """A table as wide as the terminal, a list where that would break words, or everything as JSON."""
    if json:
        typer.echo(json_module.dumps(rows, indent=1, ensure_ascii=False))
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
            told = [f"{title}: {cell}" for title, cell in zip(names[1:], others, strict=True) if cell]
            console.print(Padding(Text("\n".join(told)), (0, 0, 0, 4), expand=False))
    if note:
        console.print(Text(note))


def _table(names: list[str], cells: list[list[str]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*names, box=box.SIMPLE, show_lines=True, pad_edge=False)
    for number, column in enumerate(table.columns):
        column.no_wrap = number == 0
    for name, *others in cells:
        table.add_row(Text(name, style="bold"), *map(Text, others))
    return table


def _least_width(rows: list[list[str]]) -> int:
    """The narrowest table that keeps names whole and breaks no word."""
    first, *others = zip(*rows, strict=True)
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in others]
    return max(map(len, first)) + sum(words) + 2 * len(words)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
