"""Which explanations can be trusted on this model: one suite of tests, resumable, with a verdict on every method."""

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
from raison.compare import begin, execute, header_of
from raison.core.model import LanguageModel
from raison.core.unit import Text
from raison.jobs.folder import AUDIT, read_marker, refuse_others, working_in, write_marker
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, Identity, check, digest_of
from raison.methods import CATALOGUE
from raison.models.derived.identity import files_identity, identity_of
from raison.studies.kinds.audit.cost import cost_of
from raison.studies.kinds.audit.results import TRUST, Audit, read_audit
from raison.studies.kinds.audit.spec import MODEL, AuditPlan, Job, comparisons, job_of, run_of, study_of
from raison.studies.kinds.trust.jobs import about_model, do_run, entry_of
from raison.trust import calls as trust_calls

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

    Four questions, see raison.studies.kinds.audit.results: is a method faithful, does it depend on the model's
    parameters, does it stay the same under harmless changes, does it withstand attacks. What was measured is written to
    the folder `out`; an audit that was interrupted goes on from there.

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
    asked = _identity(job)
    header = _known(job, asked) or _header(job, asked)
    with working_in(job.folder, AUDIT):
        header = _known(job, asked) or header
        write_marker(job.folder, AUDIT, header)
        for name, comparison in comparisons(job).items():
            with _timed(job, header, name):
                execute(comparison, begin(comparison, header_of(comparison), job.folder / name), job.progress)
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
        write_marker(job.folder, AUDIT, header)


def _known(job: Job, asked: Identity) -> dict[str, Any] | None:
    """The header of the same audit, which then goes on; None where none was begun. Raises DataError."""
    refuse_others(job.folder, AUDIT)
    known = read_marker(job.folder, AUDIT)
    if known is not None:
        check(job.folder, "audit", known, asked)
    return known


def _header(job: Job, asked: Identity) -> dict[str, Any]:
    works = trust_calls.works()
    study, run = study_of(job), run_of(job)
    about = about_model(study, MODEL, job.model, works)
    return {
        "schema": SCHEMA,
        IDENTITY: dict(asked),
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


def _identity(job: Job) -> dict[str, str]:
    """Of all that decides the numbers."""
    asked = [job.model.name, job.methods, asdict(job.settings), asdict(job.plan)]
    files = files_identity(job.model, map(CATALOGUE.create, job.methods))
    return {**identity_of(job.model), **files, DATA: digest_of(job.texts), SETTINGS: digest_of(asked)}


def _trust(job: Job, entry: Mapping[str, Any]) -> None:
    do_run(study_of(job), trust_calls.works(), job.model, run_of(job), (job.folder, entry, job.progress))
