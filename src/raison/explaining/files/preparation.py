"""Preparation before any row is explained: invalid settings are found, and the rows are surveyed."""

import math
import time
from pathlib import Path

from raison.core.errors import InputError, RaisonError
from raison.data import BrokenLine
from raison.explaining.files.explained_rows import OF_A_ROW, M, RowExplainer
from raison.explaining.files.survey import Input, survey
from raison.explaining.files.work import FileWork, refuse_other
from raison.jobs.folder import EXPLANATIONS, refuse_others
from raison.jobs.loadable import Loadable
from raison.runs.files import shards
from raison.runs.files.folder import Folder, is_folder

READ = 1000
"""Number of first rows of which at least one must be readable."""
TRIED = 5
"""Number of readable rows to try one after the other, before further ones, each twice as far away as the last, up to
READ: if none can be explained, something is wrong with all rows."""


def begun(model: M, given: Input, how: RowExplainer[M], folder: Folder) -> FileWork[M]:
    """The work, after all checks. Raises RaisonError; touches nothing."""
    refuse_others(folder.path, EXPLANATIONS)
    # Of work that goes on, a row was tried when it began.
    if not is_folder(folder.path):
        _try_one(model, given, how)
    work = FileWork(Loadable(model), survey(given), how, folder)
    refuse_other(work)
    return work


def folder_of(out: str | Path, form: shards.Format) -> Folder:
    """The folder for shards of a format. Raises InputError, or DataError where it cannot be written here."""
    if form not in shards.FORMATS:
        raise InputError(f"format={form!r:.40} is unknown: give one of {', '.join(shards.FORMATS)}.")
    shards.require(form)
    return Folder(Path(out), form)


def until(hours: float | None) -> float | None:
    """The clock time after which nothing new is started. Raises InputError."""
    if hours is not None and not 0 < hours < math.inf:
        raise InputError(f"budget_hours is {hours}: give a number above 0.")
    return None if hours is None else time.time() + 3600 * hours


def _try_one(model: M, given: Input, how: RowExplainer[M]) -> None:
    """Explain a readable row, so that a wrong target or setting is found at once. Raises RaisonError."""
    unreadable: list[RaisonError] = []
    failed: list[RaisonError] = []
    following = 0
    for item in given.items():
        if item.row >= READ:
            break
        if isinstance(item.entry, BrokenLine) or item.row < following:
            continue
        try:
            how.check(model, item.entry)
        except OF_A_ROW as refused:
            unreadable.append(refused)
            continue
        try:
            how.try_one(model, item.entry)
        except OF_A_ROW as error:
            failed.append(error)
            following = item.row + 2 ** max(0, len(failed) - TRIED)
            continue
        return
    if failed:
        raise failed[0]
    if unreadable:
        tried = "row" if len(unreadable) == 1 else f"{len(unreadable):,} rows"
        raise InputError(f"none of the first {tried} that can be read can be explained; the first: {unreadable[0]}")
