"""Shared by commands that work on files: their options, and the display of results so far."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raison.core.errors import InputError
from raison.core.settings.fields import Setting
from raison.data.streams import Reading
from raison.jobs.engine import Sharing
from raison.runs.files.shards import Format

if TYPE_CHECKING:
    from raison.runs.files.folder import WrittenShards


@dataclass(frozen=True, slots=True)
class Files:
    """Options for the output of explanations of files."""

    out: Annotated[Path | None, Setting("With --data: the folder for the explanations; run again to resume.")] = None
    format: Annotated[Format, Setting("With --data: parquet, or jsonl, which needs no further package.")] = "parquet"
    budget_hours: Annotated[float | None, Setting("With --data: start no new part after this many hours.", above=0)] = (
        None
    )


@dataclass(frozen=True, slots=True)
class InFiles:
    """Options of the command that apply only to files."""

    reading: Reading
    files: Files
    sharing: Sharing

    def refuse_without_data(self, way_out: str = "name them with --data") -> None:
        """Raise InputError if one was given for a single text."""
        given = [
            f"--{name.replace('_', '-')}"
            for record in (self.reading, self.files, self.sharing)
            for name, value in asdict(record).items()
            if value != asdict(type(record)())[name]
        ]
        if given:
            raise InputError(f"{', '.join(given)} is for files: {way_out}, or leave it out.")


def refuse_beside_data(for_texts: Mapping[str, object]) -> None:
    """Raise InputError if an option was given that applies to one text."""
    given = [name for name, value in for_texts.items() if value]
    if given:
        raise InputError(f"{', '.join(given)} is for one text, and --data explains files: leave it out.")


def write_page(html: Path, content: str | bytes) -> None:
    """Write a page, and report it on stderr."""
    from raison.jobs.disk import write_named

    write_named(html, content)
    typer.echo(f"raison: wrote the page to {html}", err=True)


def show(written: "WrittenShards", json: bool) -> None:
    """Print the results so far, as tables or as JSON."""
    from json import dumps

    from raison.report.pages import writing
    from raison.report.pages.explained_files import sections
    from raison.runs.files import summary

    folder = written.folder.path
    if json:
        done = {"folder": str(folder), "complete": written.is_complete, **asdict(summary.of(written))}
        typer.echo(dumps(done, ensure_ascii=False, indent=1, allow_nan=False))
        return
    writing.show(sections(written))
    if not written.is_complete:
        rows = written.manifest.rows
        typer.echo(f"{written.done:,} of {rows:,} rows are complete; run the same command again to continue.", err=True)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")
