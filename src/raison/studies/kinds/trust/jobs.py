"""What only the models and the data of a study of trust can tell, and the work on one of its runs."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from raison.attribution import Settings
from raison.attribution import check as check_method
from raison.core.errors import InputError, RaisonError
from raison.core.model import LanguageModel
from raison.data import Dataset
from raison.jobs.store import RecordStore
from raison.methods import CATALOGUE
from raison.progress import progress_bar
from raison.studies.kinds.comparison.check import run_name
from raison.studies.kinds.trust.spec import TrustStudy
from raison.studies.made import described
from raison.studies.plans import learned_from
from raison.trust.records import Attacked, Similarity, Substituted
from raison.trust.results import ATTACKS, SIMILARITIES, SUBSTITUTIONS, TrustRun, plain, read_run, store_of
from raison.trust.works import Job, Kind, Works


@dataclass(frozen=True, slots=True)
class Run:
    """One model on one data set: their keys, and the texts that the study may use."""

    model: str
    data: str
    texts: Dataset

    @property
    def name(self) -> str:
        """The run's folder."""
        return run_name(self.model, self.data)


def about_model(study: TrustStudy, key: str, model: LanguageModel, works: Works) -> dict[str, Any]:
    """What figures and tables say of a model. Raises UnsupportedError for one whose blocks cannot be told apart."""
    blocks = None if study.randomisation is None else works.blocks(model)
    return {**described(study.models[key], model), "blocks": blocks}


def reasons(study: TrustStudy, works: Works, model: LanguageModel, run: Run) -> list[str]:
    """Why a run cannot be: methods that the model does not allow, texts that it cannot read."""
    found = learned_from(study.models[run.model], run.texts)
    for method in study.methods:
        try:
            check_method(model, CATALOGUE.create(method))
        except RaisonError as error:
            found.append(str(error))
    settings, unreadable = study.settings, []
    for row in run.texts.rows:
        try:
            model.encode([row.text], study.data[run.data].unit or settings.unit, settings.truncate)
        except InputError as error:
            unreadable.append(f"row {row.number}: {error}")
    if unreadable:
        found.append(
            f"{len(unreadable)} of {len(run.texts)} texts of {run.texts.name} cannot be explained, the first being "
            f"{unreadable[0]}"
        )
    return list(dict.fromkeys(found)) or _refused(study, works, model, run)


def _refused(study: TrustStudy, works: Works, model: LanguageModel, run: Run) -> list[str]:
    """What the attacks refuse before they begin: a k above a text's units, a model without word embeddings."""
    asked, job = study.attacks, _job(study, model, run, "embedding")
    found = []
    for kind in _kinds(study):
        left_out = works.unable[kind](job)
        some = replace(job, methods=tuple(method for method in study.methods if method not in left_out))
        try:
            if asked is not None and kind == "embedding" and some.methods:
                works.attacked(some, asked.plans, ())
            elif asked is not None and kind == "substitution":
                works.substituted(some, asked.substitution, ())
        except RaisonError as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


def entry_of(study: TrustStudy, works: Works, model: LanguageModel, run: Run) -> dict[str, Any]:
    """A run's entry in trust.json: what is asked of which methods, and what is left out and why."""
    return {
        "name": run.name,
        "model": run.model,
        "data": run.data,
        "source": run.texts.name,
        "texts": hashlib.sha256("\n".join(map(str, run.texts.texts)).encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "randomisation": _randomisation(study, works, model, run),
        "attacks": _attacks(study, works, model, run),
    }


def do_run(
    study: TrustStudy, works: Works, model: LanguageModel, run: Run, place: tuple[Path, Mapping[str, Any], bool]
) -> None:
    """Do what a run lacks; `place` is the study's folder, the run's entry, and whether to show progress.

    Records are written as soon as a part of the work is finished, so that a kill loses no more than one part.
    """
    folder, entry, progress = place
    known = read_run(folder, entry)
    if study.randomisation is not None:
        _randomise(study, works, _job(study, model, run, "randomisation"), (folder, known, progress))
    if study.attacks is not None:
        _attack(study, works, _job(study, model, run, "embedding"), (folder, known, progress))


def _randomise(study: TrustStudy, works: Works, job: Job, place: tuple[Path, TrustRun, bool]) -> None:
    folder, known, progress = place
    wanted = set(known.wanted_similarities())
    left = wanted - known.similarities.keys()
    if not left or study.randomisation is None:
        return
    job = replace(job, methods=known.randomised)
    found = works.similarities(job, study.randomisation.plan, known.similarities)
    _write(found, (folder, known.name, SIMILARITIES), (f"randomisation, {known.name}", len(left), progress))


def _attack(study: TrustStudy, works: Works, job: Job, place: tuple[Path, TrustRun, bool]) -> None:
    folder, known, progress = place
    asked = study.attacks
    if asked is None:
        return
    left = [key for key in known.wanted_attacks() if key not in known.attacks]
    for substituted in (False, True):
        count = sum((attack == "substitution") == substituted for _, attack, _, _ in left)
        if not count:
            continue
        some = replace(job, methods=_methods(known, substituted))
        if substituted:
            parts = works.substituted(some, asked.substitution, known.attacks)
            found = _kept(parts, store_of(folder, known.name, SUBSTITUTIONS))
        else:
            found = works.attacked(some, asked.plans, known.attacks)
        title = f"{'substitution' if substituted else 'attacks'}, {known.name}"
        _write(found, (folder, known.name, ATTACKS), (title, count, progress))


def _kept(parts: Iterable[list[Substituted]], store: RecordStore) -> Iterator[list[Attacked]]:
    """The records, whose explanations are written first: a text that has a record has everything."""
    for part in parts:
        store.append(one.to_dict() for one in part if one.record.steps)
        yield [one.record for one in part]


def _methods(run: TrustRun, substituted: bool) -> tuple[str, ...]:
    found = [names for one, names in run.variants.items() if (one.attack == "substitution") == substituted]
    return tuple(dict.fromkeys(name for names in found for name in names))


def _write(
    parts: Iterable[list[Similarity]] | Iterable[list[Attacked]],
    file: tuple[Path, str, str],
    bar: tuple[str, int, bool],
) -> None:
    store = store_of(*file)
    with progress_bar(*bar) as advance:
        for records in parts:
            store.append(plain(record) for record in records)
            advance(len(records))


def _job(study: TrustStudy, model: LanguageModel, run: Run, kind: Kind) -> Job:
    """The part of a study's texts that a kind of work takes; `methods` are all of the study's."""
    part = study.randomisation if kind == "randomisation" else study.attacks
    texts = run.texts.texts[: part.texts if part is not None else 0]
    return Job(model, texts, study.methods, _settings(study, run))


def _settings(study: TrustStudy, run: Run) -> Settings:
    return replace(
        study.settings,
        unit=study.data[run.data].unit or study.settings.unit,
        removal=study.models[run.model].removal or study.settings.removal,
    )


def _randomisation(study: TrustStudy, works: Works, model: LanguageModel, run: Run) -> dict[str, Any] | None:
    if study.randomisation is None:
        return None
    job = _job(study, model, run, "randomisation")
    left_out = works.unable["randomisation"](job)
    plan = asdict(study.randomisation.plan)
    return {
        **plan,
        "texts": len(job.texts),
        "blocks": works.blocks(model),
        "methods": [method for method in study.methods if method not in left_out],
        "left_out": left_out,
    }


def _attacks(study: TrustStudy, works: Works, model: LanguageModel, run: Run) -> dict[str, Any] | None:
    asked = study.attacks
    if asked is None:
        return None
    job = _job(study, model, run, "embedding")
    left_out = {kind: works.unable[kind](job) for kind in _kinds(study)}
    variants = []
    for plan in asked.plans:
        methods = [method for method in study.methods if method not in left_out["embedding"]]
        variants += [{"attack": a, "objective": plan.objective, "methods": methods} for a in ("embedding", "noise")]
    if asked.substitution is not None:
        methods = [method for method in study.methods if method not in left_out["substitution"]]
        variants.append({"attack": "substitution", "objective": "constrained", "methods": methods})
    return {
        "texts": len(job.texts),
        "boundary": works.boundary(job),
        "variants": variants,
        "left_out": left_out,
        "plans": [asdict(plan) for plan in asked.plans],
        "substitution": None if asked.substitution is None else asdict(asked.substitution),
    }


def _kinds(study: TrustStudy) -> list[Kind]:
    kinds: list[Kind] = ["embedding"] if study.attacks and study.attacks.plans else []
    return [*kinds, "substitution"] if study.attacks and study.attacks.substitution is not None else kinds
