"""Runs a study of any kind: reads it, checks everything, does what its folder lacks; resumable, by shares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.jobs.engine import ALONE, Shard, Sharing, do
from raison.jobs.folder import beginning, working_in
from raison.jobs.workers import in_processes
from raison.progress import Advance
from raison.runs.reuse import runs_in
from raison.studies.file import Study, read
from raison.studies.folder import begin_study, check_folder, check_header
from raison.studies.kind import Examined
from raison.studies.labels import write_labels

FOLDER = Path("runs")
"""Where studies write unless told otherwise, one folder each."""


def run(
    path: str | Path,
    out: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    progress: bool | Advance = True,
    *,
    reuse: Sequence[Path] = (),
    sharing: Sharing = ALONE,
) -> Path:
    """Run a study file of any kind, and return the folder with its records.

    Args:
        path: the study file; see raison.studies.file.
        out: the folder; by default one in runs/ with the study's name.
        limit: use the first so many rows of every data set. Recorded: it is another study then.
        resume: go on with what `out` holds; the result equals that of a study that was never interrupted.
        progress: a progress bar on stderr, or a function that is told of finished parts.
        reuse: folders of runs or studies: rows of the same method on the same model, texts and settings are taken over
            from there, whole (raison.runs.reuse).
        sharing: this process's share of the work, or how many processes to start.

    Raises:
        StudyError: with every mistake of the file, or of what its models and data allow, before anything runs.
        DataError: a folder that holds something else, or this study without `resume`.
    """
    study = read(path)
    folder = folder_of(study, out)
    # With a shard, another process may already have started in this folder.
    check_folder(folder, study, limit, resume or sharing.shard.count > 1)
    sources = runs_in(reuse)
    return execute(study.kind.work.examine(study, limit, sources), folder, progress, sources=sources, sharing=sharing)


def folder_of(study: Study, out: str | Path | None) -> Path:
    """Where a study is written."""
    return FOLDER / study.name if out is None else Path(out)


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
    """Do what the folder lacks, or a share of it.

    Raises DataError where another process is at work, and where the work was begun with another model or other data.
    """
    study, shard = examined.study, sharing.shard
    kind = study.kind.folder
    check_header(folder, kind, examined.header, examined.parts)
    with working_in(folder, kind, shard.file):
        with beginning(folder, shard.file):
            begin_study(folder, kind, examined.header, study.text)
            if examined.labels:
                write_labels(folder, examined.labels, {})
            study.kind.work.begin(examined, folder, sources)
        if sharing.workers == 1:
            do(lambda: study.kind.work.jobs(examined, folder, shard.file), shard, progress)
    if sharing.workers > 1:
        with_workers(examined, folder, progress, sharing.workers)
    return folder


def with_workers(examined: Examined, folder: Path, progress: bool | Advance, workers: int) -> None:
    """The jobs by several processes, then, here, what comes last."""
    study = examined.study
    jobs = study.kind.work.jobs(examined, folder, None)
    total = sum(job.size for job in jobs if not job.last)
    # What a study calls is looked up again in each process.
    travelling = replace(examined, study=replace(study, tools=None))
    in_processes(_Share(travelling, folder), workers, folder, total, progress)
    with working_in(folder, study.kind.folder):
        do(lambda: study.kind.work.jobs(examined, folder, None), progress=progress is True)


@dataclass(frozen=True, slots=True)
class _Share:
    """A share of the work for another process."""

    examined: Any
    folder: Path

    def __call__(self, shard: Shard, advance: Advance) -> None:
        study = self.examined.study
        known = replace(self.examined, study=replace(study, tools=study.kind.spec.tools()))
        with working_in(self.folder, study.kind.folder, shard.file):
            do(lambda: study.kind.work.jobs(known, self.folder, shard.file), shard, advance)
