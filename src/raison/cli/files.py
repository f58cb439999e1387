"""raison explain --data: every row of files, into a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.core.errors import InputError
from raison.core.settings.fields import Setting
from raison.data.streams import Reading
from raison.jobs.engine import Sharing
from raison.runs.files.shards import Format

if TYPE_CHECKING:
    from raison.cli.cite import Citing
    from raison.cli.explain import Explaining
    from raison.explaining.generation import Contrast
    from raison.runs.files.folder import WrittenShards
    from raison.studies.entries import StudyModel


@dataclass(frozen=True, slots=True)
class Files:
    """Where the explanations of files go."""

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
        """Raise InputError where one was given for a single text."""
        given = [
            f"--{name.replace('_', '-')}"
            for record in (self.reading, self.files, self.sharing)
            for name, value in asdict(record).items()
            if value != asdict(type(record)())[name]
        ]
        if given:
            raise InputError(f"{', '.join(given)} is for files: {way_out}, or leave it out.")


def refuse_beside_data(for_texts: Mapping[str, object]) -> None:
    """Raise InputError where an option was given that is about one text."""
    given = [name for name, value in for_texts.items() if value]
    if given:
        raise InputError(f"{', '.join(given)} is for one text, and --data explains files: leave it out.")


def explain_files(
    data: Sequence[str], entry: "StudyModel", how: "Explaining", contrast: "Contrast", files: InFiles
) -> "WrittenShards":
    """Explain the files. Raises RaisonError."""
    from raison.explaining.files.front import explain_file
    from raison.explaining.generation import Writing
    from raison.studies.plans import load_judged

    writing = Writing(how.writing.output, how.writing.max_new_tokens, contrast, how.writing.earlier)
    if files.files.out is None:
        raise InputError("--data needs a folder for the explanations: give --out DIR.")
    return explain_file(
        load_judged(entry),
        list(data),
        files.files.out,
        how.method,
        reading=files.reading,
        unit=how.settings.unit,
        units=how.texts.units,
        language=how.texts.language,
        target=how.settings.target,
        of=how.settings.of,
        removal=how.settings.removal,
        seed=how.settings.seed,
        truncate=how.settings.truncate,
        precision=how.settings.precision,
        select=how.select,
        budget=how.budget,
        threshold=how.threshold,
        writing=writing,
        chat=how.writing.chat,
        format=files.files.format,
        budget_hours=files.files.budget_hours,
        sharing=files.sharing,
        load=partial(load_judged, entry),
    )


def cite_files(data: Sequence[str], citing: "Citing", files: InFiles) -> "WrittenShards":
    """Cite for every question of files. Raises RaisonError."""
    from raison.explaining.files.front import cite_file
    from raison.studies.plans import load_entry

    assert files.files.out is not None
    load: partial[Any] = partial(load_entry, citing.entry)
    return cite_file(
        load(),
        list(data),
        files.files.out,
        reading=files.reading,
        format=files.files.format,
        budget_hours=files.files.budget_hours,
        sharing=files.sharing,
        load=load,
        **citing.options(),
    )


def show(written: "WrittenShards", json: bool) -> None:
    """What has been written so far, as tables or as JSON."""
    from json import dumps

    from rich.console import Console

    from raison.report.pages.explained_files import sections
    from raison.report.pages.writing import shown
    from raison.runs.files import summary

    folder = written.folder.path
    if json:
        done = {"folder": str(folder), "complete": written.is_complete, **asdict(summary.of(written))}
        typer.echo(dumps(done, ensure_ascii=False, indent=1, allow_nan=False))
        return
    parts = sections(written)
    console = Console(highlight=False)
    for part in shown(parts):
        console.print(part)
    if not written.is_complete:
        rows = written.manifest.rows
        typer.echo(f"{written.done:,} of {rows:,} rows are complete; run the same command again to continue.", err=True)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")
