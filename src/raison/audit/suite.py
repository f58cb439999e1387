"""Which explanations can be trusted on this model: one suite of tests, resumable, with a verdict on every method."""

import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raison._version import __version__
from raison.attribution import Settings
from raison.audit.cost import cost_of
from raison.audit.job import MODEL, AuditPlan, Job, comparisons, job_of, run_of, study_of
from raison.compare import execute, header_of
from raison.core.errors import DataError
from raison.core.model import LanguageModel
from raison.core.unit import Text
from raison.data.records import write_whole
from raison.runs.audit import HEADER, TRUST, Audit, read_audit
from raison.runs.run import open_run
from raison.runs.study import digest_of
from raison.studies import trust_calls
from raison.studies.trust_jobs import about_model, do_run, entry_of

SCHEMA = 1
_LIBRARIES = ("torch", "transformers", "numpy")


def audit(
    model: LanguageModel,
    texts: Sequence[Text],
    methods: Sequence[str] | None = None,
    *,
    out: str | Path,
    plan: AuditPlan | None = None,
    settings: Settings | None = None,
    data: str = "texts",
    progress: bool = True,
) -> Audit:
    """Explain texts with several methods, test every explanation, and say which method can be trusted.

    Four questions, see raison.runs.audit: is a method faithful, does it depend on the model's parameters, does it stay
    the same under harmless changes, does it withstand attacks. What was measured is written to the folder `out`; an
    audit that was interrupted goes on from there.

    Args:
        methods: names or calls; by default those of `METHODS` that the model allows.
        plan: how much is tried.
        settings: what is explained; the class is the predicted one.
        data: what the texts are called in the report.

    Raises:
        InputError: fewer than two texts or no method.
        UnsupportedError: a method by name that the model does not allow, a model without blocks that can be told apart.
        DataError: `out` holds something else.
    """
    job = job_of(model, texts, methods, (plan or AuditPlan(), settings or Settings()), (Path(out), data, progress))
    header = _open(job)
    for name, comparison in comparisons(job).items():
        with _timed(job, header, name):
            execute(comparison, open_run(header_of(comparison), job.folder / name), job.progress)
    with _timed(job, header, TRUST):
        _trust(job, header["trust"])
    return read_audit(job.folder)


@contextmanager
def _timed(job: Job, header: dict[str, Any], part: str) -> Iterator[None]:
    """Write down what a part took, an interrupted one too; what several calls took adds up."""
    started = time.perf_counter()
    try:
        yield
    finally:
        spent = header.setdefault("spent", {})
        spent[part] = round(spent.get(part, 0.0) + time.perf_counter() - started, 1)
        _write(job.folder, header)


def _open(job: Job) -> dict[str, Any]:
    """The header: a new one, or that of the same audit, which then goes on."""
    path = job.folder / HEADER
    if not path.exists():
        if job.folder.exists() and any(job.folder.iterdir()):
            raise DataError(f"{job.folder} holds something else: choose another folder for the audit.")
        header = _header(job)
        _write(job.folder, header)
        return header
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}.") from None
    if known["digest"] != _digest(job):
        raise DataError(f"{job.folder} holds another audit: choose another folder, or delete this one.")
    return dict(known)


def _header(job: Job) -> dict[str, Any]:
    works = trust_calls.works()
    study, run = study_of(job), run_of(job)
    about = about_model(study, MODEL, job.model, works)
    return {
        "schema": SCHEMA,
        "digest": _digest(job),
        "model": job.model.name,
        "data": job.data,
        "texts": len(job.texts),
        "methods": list(job.methods),
        "unable": dict(job.unable),
        "unit": job.settings.unit,
        "of": job.settings.of,
        "parameters": about["parameters"],
        "blocks": about["blocks"],
        "plan": asdict(job.plan),
        "estimate": cost_of(job).to_dict(),
        "trust": entry_of(study, works, job.model, run) | {"name": TRUST, "model": job.model.name},
        "about": about,
        "versions": {
            "raison": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    }


def _digest(job: Job) -> str:
    """Of all that decides the numbers."""
    asked = [job.model.name, job.texts, job.methods, asdict(job.settings), asdict(job.plan)]
    return digest_of(json.dumps(asked, ensure_ascii=False))


def _trust(job: Job, entry: Mapping[str, Any]) -> None:
    do_run(study_of(job), trust_calls.works(), job.model, run_of(job), (job.folder, entry, job.progress))


def _write(folder: Path, header: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / HEADER, json.dumps(header, ensure_ascii=False, indent=1) + "\n")
