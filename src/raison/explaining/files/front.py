"""Explain every row of files of any size: the front door."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from raison.core.errors import InputError
from raison.core.inputs.unit import Granularity
from raison.core.internals.precision import Precision
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel, asked_of
from raison.core.targets.target import TargetSpec
from raison.data import BrokenLine
from raison.data.streams import Reading, sources_of, stream
from raison.explaining.attribution import Settings, check, check_model
from raison.explaining.explain import within_budget
from raison.explaining.files.rows import How
from raison.explaining.files.survey import survey
from raison.explaining.files.work import FileWork, refuse_other
from raison.explaining.texts import Side
from raison.jobs.crew import perform
from raison.jobs.engine import ALONE, Sharing
from raison.jobs.folder import EXPLANATIONS, refuse_others
from raison.methods import CATALOGUE
from raison.progress import Advance
from raison.runs.files import shards
from raison.runs.files.folder import Folder, Written, read

TRIED = 1000
"""Rows among which one has to be readable, so that a mistake in the request is found before the work begins."""


def explain_file(
    model: LanguageModel,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    method: str | Method = "auto",
    *,
    reading: Reading | None = None,
    unit: Granularity = "word",
    units: Side | None = None,
    language: str | None = None,
    target: TargetSpec = None,
    of: str | None = None,
    removal: str | None = None,
    seed: int = 0,
    truncate: bool = False,
    precision: Precision = "float32",
    select: str | Metric | None = None,
    budget: int | None = None,
    threshold: float | None = None,
    format: shards.Format = "parquet",
    budget_hours: float | None = None,
    sharing: Sharing = ALONE,
    load: Callable[[], LanguageModel] | None = None,
    progress: bool | Advance = True,
) -> Written:
    """Explain every row of files, in constant memory; started again, it goes on where it was stopped.

    Args:
        model: from `raison.load`; one that predicts.
        data: files (csv, tsv, txt, jsonl, parquet), patterns of files, named data sets, or ids of data sets on the Hub.
        out: a folder for shards of one row per explanation, rejected.jsonl and a manifest; see docs/scale.md.
        reading: columns, delimiter, split, encoding, and `limit`, the number of rows.
        format: "parquet" (needs pyarrow) or "jsonl".
        budget_hours: begin nothing more after so long; a further start goes on.
        sharing: this process's share of the work, or how many processes to start; `load` is how these load the model,
            and one that can be sent to them needs none.
        progress: a bar on stderr, or a function that is told of finished rows.
        The others are those of `explain`, except that there is one target for all rows.

    Raises:
        InputError, UnknownNameError, UnsupportedError: before anything runs.
        DataError: no readable row, a folder that holds something else, or no space left (what was written stays).
    """
    check_model(model)
    _check(budget_hours, target, format)
    chosen = CATALOGUE.create(method) if budget is None else within_budget(method, budget)
    settings = Settings(unit, target, asked_of(model, of), removal, seed, truncate, precision)
    how = How(chosen, settings, units, language, select, threshold)
    sources = sources_of([data] if isinstance(data, str | Path) else data)
    work = _begun(model, sources, reading or Reading(), how, Folder(Path(out), format))
    until = None if budget_hours is None else time.time() + 3600 * budget_hours
    perform(replace(work, until=until, load=load), sharing, progress)
    return read(Path(out))


def _begun(model: LanguageModel, sources: Sequence[str], reading: Reading, how: How, folder: Folder) -> FileWork:
    """The work, once it is known that it can be done. Raises RaisonError; touches nothing."""
    refuse_others(folder.path, EXPLANATIONS)
    check(model, how.method)
    _try_one(model, sources, reading, how)
    work = FileWork(model, survey(sources, reading), how, folder)
    refuse_other(work)
    return work


def _check(hours: float | None, target: TargetSpec, form: shards.Format) -> None:
    if hours is not None and hours <= 0:
        raise InputError(f"budget_hours is {hours}: give hours above 0.")
    if isinstance(target, list):
        raise InputError("target= is one for all rows of a file: a list of targets belongs to explain(model, [...]).")
    if form not in shards.FORMATS:
        raise InputError(f"format={form!r:.40} is unknown: give one of {', '.join(shards.FORMATS)}.")
    shards.require(form)


def _try_one(model: LanguageModel, sources: Sequence[str], reading: Reading, how: How) -> None:
    """Explain the first readable row, so that a wrong target or setting is found at once. Raises RaisonError."""
    error: InputError | None = None
    for item in stream(sources, reading):
        if item.row >= TRIED:
            break
        if isinstance(item.entry, BrokenLine):
            continue
        try:
            how.check(model, item.entry.given)
        except InputError as refused:
            error = error or refused
            continue
        how.explained(model, [item.entry.given])
        return
    if error is not None:
        raise InputError(f"none of the first {TRIED} rows can be explained; the first: {error}")
