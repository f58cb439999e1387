"""Runs a study of any kind: reads it, checks everything, does the missing work; resumable and divisible into shares."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.engine import ALONE, Job, Shard, Sharing
from raison.jobs.folder import begun_in
from raison.jobs.origins import stores_in
from raison.jobs.runner import perform
from raison.progress import Advance
from raison.studies.file import Study, read
from raison.studies.folder import begin_study, check_folder, check_header
from raison.studies.kind import Examined
from raison.studies.labels import write_labels

FOLDER = Path("runs")
"""The default parent folder of studies."""


def run(
    path: str | Path,
    out: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    progress: bool | Advance = True,
    *,
    reuse: Sequence[Path] = (),
    sharing: Sharing = ALONE,
    on_start: Callable[[Examined], None] = lambda _examined: None,
) -> Path:
    """Run a study file of any kind, and return the folder with its records.

    Args:
        path: the study file; see raison.studies.file.
        out: the folder; by default one in runs/ with the study's name.
        limit: use only the first `limit` rows of every data set. It is recorded, and makes it another study.
        resume: continue the work in `out`; the result equals that of a study that was never interrupted.
        progress: a progress bar on stderr, or a function that is called with finished parts.
        reuse: folders of runs or studies. Their results for this study's work are taken over: rows of comparisons
            (raison.runs.reuse), otherwise single records of the same origin (raison.jobs.origins).
        sharing: this process's share of the work, or how many processes to start.
        on_start: is called with the checked study before it begins.

    Raises:
        StudyError: with every mistake of the file, or of what its models and data allow, before anything runs.
        DataError: a folder that holds something else, or this study without `resume`.
    """
    study = read(path)
    folder = FOLDER / study.name if out is None else Path(out)
    # With a shard, another process may already have started in this folder.
    check_folder(folder, study, limit, resume or sharing.shard.count > 1)
    sources = sources_of(study, reuse)
    examined = examine(study, limit, sources)
    on_start(examined)
    return execute(examined, folder, progress, sources=sources, sharing=sharing)


def sources_of(study: Study, reuse: Sequence[Path]) -> tuple[Path, ...]:
    """The folders whose records a study is to reuse. Raises DataError for one without any."""
    folders = tuple(map(Path, reuse))
    for folder in folders:
        if not any(stores_in(folder, name) for name in study.kind.work.REUSED):
            files = " or ".join(study.kind.work.REUSED)
            raise DataError(
                f"{folder} contains no {files}, so a study of kind {study.kind.name} can reuse nothing from there: "
                "give the folder of a run or a study with such a file."
            )
    return folders


def examine(study: Study, limit: int | None = None, sources: Sequence[Path] = ()) -> Any:
    """Check every model and all data of a study. Raises StudyError with every obstacle."""
    return study.kind.work.examine(study, limit, sources)


def execute(
    examined: Examined,
    folder: Path,
    progress: bool | Advance = True,
    *,
    sources: Sequence[Path] = (),
    sharing: Sharing = ALONE,
) -> Path:
    """Do the missing work, or a share of it.

    Raises DataError if another process is at work, or if the work was begun with another model or other data.
    """
    check_header(folder, examined.study.kind.folder, examined.header, examined.parts)
    perform(_Studied(examined, folder, tuple(sources)), sharing, progress)
    return folder


@dataclass(frozen=True)
class _Studied:
    """A study in a folder. Another process looks up its functions again, and need not begin it."""

    examined: Examined
    folder: Path
    sources: tuple[Path, ...]
    is_begun: bool = False

    def __getstate__(self) -> dict[str, Any]:
        study = replace(self.examined.study, tools=None)
        return self.__dict__ | {"examined": replace(self.examined, study=study), "is_begun": True}

    @contextmanager
    def opened(self, shard: Shard) -> Iterator[Callable[[], Sequence[Job]]]:
        """Inside, the folder is this process's, or its share of it. Raises DataError."""
        study, examined = self.examined.study, self.examined
        kind = study.kind
        if study.tools is None:
            examined = replace(examined, study=replace(study, tools=kind.spec.tools()))
        with begun_in(self.folder, kind.folder, shard.file, partial(self._begin, examined)):
            yield lambda: kind.work.jobs(examined, self.folder, shard.file)

    def _begin(self, examined: Examined) -> None:
        if self.is_begun:
            return
        study = examined.study
        begin_study(self.folder, study.kind.folder, examined.header, study.text)
        if examined.labels:
            write_labels(self.folder, examined.labels, {})
        if self.sources:
            study.kind.work.begin(examined, self.folder, self.sources)
