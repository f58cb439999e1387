"""Explain every row of files of any size: the entry points for texts and prompts, and for questions with sources."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from raison.core.errors import InputError
from raison.core.inputs.unit import Granularity, Side
from raison.core.internals.precision import Precision
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel, asked_of
from raison.core.targets.target import TargetSpec
from raison.data.questions import stream_questions
from raison.data.streams import Reading, sources_of
from raison.explaining.attribution import check
from raison.explaining.batch import check_model
from raison.explaining.cite import check_generative
from raison.explaining.explain import check_unwritten, within_budget
from raison.explaining.files.citations import CitationRows
from raison.explaining.files.explained_rows import RowExplainer
from raison.explaining.files.outputs import OutputRows
from raison.explaining.files.preparation import begun, folder_of, until
from raison.explaining.files.survey import Input
from raison.explaining.files.texts import TextRows
from raison.explaining.files.work import FileWork
from raison.explaining.generation import Writing
from raison.explaining.settings import Settings
from raison.explaining.sources.citation_settings import CitationOptions, CitationSettings
from raison.jobs.engine import ALONE, Sharing
from raison.jobs.loadable import Loadable
from raison.jobs.runner import perform
from raison.models.adapters.writing.writer import Writer
from raison.progress import Advance
from raison.runs.files import shards
from raison.runs.files.folder import WrittenShards, read

_PASSES, _FEWEST = 2560, 4
"""The passes that an interruption may cost, and the rows that are explained together whatever they cost."""
_UNITS = 32
"""The length of a text for which the passes are counted."""
WRITTEN = 4
"""Rows of a part for generative models, where each row takes long: a kill loses at most this many."""


def explain_file(
    model: LanguageModel | Writer,
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
    writing: Writing | None = None,
    chat: bool = False,
    format: shards.Format = "parquet",
    budget_hours: float | None = None,
    sharing: Sharing = ALONE,
    load: Callable[[], LanguageModel | Writer] | None = None,
    progress: bool | Advance = True,
) -> WrittenShards:
    """Explain every row of files, in constant memory; when started again, it resumes where it stopped.

    Args:
        model: from `raison.load`. For a generative model, each row is a prompt, whose generated text is explained.
        data: files (csv, tsv, txt, jsonl, parquet), patterns of files, named data sets, or ids of data sets on the Hub.
        out: a folder for shards of one row per explanation, rejected.jsonl and a manifest; see docs/scale.md.
        reading: columns, delimiter, split, encoding, and `limit`, the number of rows. `output_column` names recorded
            outputs of a generative model, which are explained instead of its own.
        writing: `output`, `max_new_tokens`, `contrast` and `earlier` of `explain`; with `chat`, a row is a message.
        format: "parquet" (needs pyarrow) or "jsonl".
        budget_hours: no new part is started after this time; call again to resume.
        sharing: this process's share of the work, or the number of processes to start. These call `load` to load the
            model; a model that can be sent to them needs no `load`.
        progress: a bar on stderr, or a function called with the number of finished rows.
        The others are those of `explain`, except that there is one target for all rows.

    Raises:
        InputError, UnknownNameError, UnsupportedError: before anything runs.
        DataError: no readable row, a folder that holds something else, or no space left (what was written stays).
    """
    place, ends = folder_of(out, format), until(budget_hours)
    chosen = within_budget(method, budget)
    settings = Settings(unit, target, of, removal, seed, truncate, precision)
    how: RowExplainer[Any]
    if isinstance(model, Writer):
        _refuse_for_writers({"units": units, "select": select, "threshold": threshold})
        how = OutputRows(chosen, settings, writing or Writing(), language, chat)
    else:
        _check(model, chosen, target, writing or Writing(), chat)
        how = TextRows(chosen, replace(settings, of=asked_of(model, of)), units, language, select, threshold)
    work: FileWork[Any] = begun(model, _input(data, reading or Reading(), model, chosen), how, place)
    perform(replace(work, until=ends, model=Loadable(model, load)), sharing, progress)
    return read(place.path)


def cite_file(
    writer: Writer,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    reading: Reading | None = None,
    format: shards.Format = "parquet",
    budget_hours: float | None = None,
    sharing: Sharing = ALONE,
    load: Callable[[], Writer] | None = None,
    progress: bool | Advance = True,
    **options: Unpack[CitationOptions],
) -> WrittenShards:
    """Find the sources that led a language model to each statement of its answers, for all questions in files.

    Args:
        writer: as in `cite`.
        data: .jsonl or .parquet files, or patterns of files: a question with its sources in each row (docs/cite.md).
        out: a folder for shards of one row per statement, rejected.jsonl and a manifest; see docs/scale.md.
        reading: `limit`, the number of rows, and `id_column`.
        format, budget_hours, sharing, load, progress: as in `explain_file`. The others are those of `cite`.

    Raises InputError, UnknownNameError, UnsupportedError or DataError, as `explain_file` does.
    """
    rows = CitationRows(CitationSettings.from_options(**options))
    place, ends = folder_of(out, format), until(budget_hours)
    check_generative(writer)
    questions = Input(_sources(data), reading or Reading(), stream_questions, WRITTEN)
    work = begun(writer, questions, rows, place)
    perform(replace(work, until=ends, model=Loadable(writer, load)), sharing, progress)
    return read(place.path)


def _check(model: LanguageModel, method: Method, target: TargetSpec, writing: Writing, chat: bool) -> None:
    """Raise RaisonError for arguments that a model that predicts cannot take."""
    check_model(model)
    check(model, method)
    check_unwritten(writing, chat)
    if isinstance(target, list):
        raise InputError("target= applies to all rows of a file: for a list of targets use explain(model, [...]).")


def _input(
    data: str | Path | Sequence[str | Path], reading: Reading, model: LanguageModel | Writer, method: Method
) -> Input:
    """The input to read for a model. Raises InputError for recorded outputs if the model predicts."""
    if isinstance(model, Writer):
        return Input(_sources(data), reading, together=WRITTEN)
    if reading.output_column is not None:
        raise InputError("output_column applies to generative models, and this model is a classifier: leave it out.")
    return Input(_sources(data), reading, together=_together(method))


def _together(method: Method) -> int:
    """The rows of a part: few if each takes many passes, because an interruption loses the part that it meets."""
    return max(_FEWEST, _PASSES // max(1, method.total_cost(_UNITS).work))


def _sources(data: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return sources_of([data] if isinstance(data, str | Path) else data)


def _refuse_for_writers(given: Mapping[str, object]) -> None:
    """Raise InputError for arguments that only a model that predicts can take."""
    names = [f"{name}=" for name, value in given.items() if value is not None]
    if names:
        raise InputError(f"{', '.join(names)} does not apply to generative models: leave it out.")
