"""From a study file to plans of comparisons: loading, and all that only the models and the data can tell."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from raison.attribution import Settings, check, prepare
from raison.compare import Plan, plan_rows
from raison.core.errors import DataError, InputError, RaisonError, UnsupportedError
from raison.core.method import Method
from raison.core.metric import Need
from raison.core.model import LanguageModel, asked_of
from raison.core.target import TargetSpec
from raison.core.unit import Granularity
from raison.data import Dataset
from raison.data.named import shared
from raison.evaluate import check_metrics, create_metrics
from raison.methods import CATALOGUE
from raison.models.loading.load import as_classifier
from raison.models.loading.load import load as load_model
from raison.studies.kinds.comparison.check import run_name
from raison.studies.kinds.comparison.spec import Study, StudyModel
from raison.studies.made import card_of, made_folder
from raison.studies.rows import load_rows as load_rows


def load_named_model(entry: StudyModel) -> LanguageModel:
    """A study's model; one that the study makes itself is trained now if it is not there yet. Raises RaisonError."""
    folder = None if entry.made is None else made_folder(entry)
    loaded = as_classifier(
        load_model(
            entry.name if folder is None else folder,
            prompt=entry.prompt,
            explained=entry.explained,
            calibrate=entry.calibrate,
            device=entry.device,
            dtype=entry.dtype,
        )
    )
    # Where the cache lies is nothing that a record should name.
    loaded.name = loaded.name if folder is None else entry.name
    return loaded


def plans(study: Study, data: dict[str, Dataset]) -> Iterator[tuple[str, Plan]]:
    """Every run's name and plan, with one model in memory at a time."""
    loaded: tuple[str, LanguageModel] | None = None
    for model, source in study.runs:
        if loaded is None or loaded[0] != model:
            # Let go of the last one before the next is read.
            loaded = None
            loaded = (model, load_named_model(study.models[model]))
        yield run_name(model, source), plan_of(study, loaded[1], (model, source), data[source])


def plan_of(study: Study, model: LanguageModel, run: tuple[str, str], data: Dataset) -> Plan:
    """One run, the keys of model and data. Raises InputError where labels are asked for that are not the model's."""
    asked, target = study.settings, _target(study, model, study.models[run[0]], data)
    unit = _unit(study, run[1])
    removal = study.models[run[0]].removal or asked.removal
    settings = Settings(unit, target, asked_of(model, asked.of), removal, asked.seeds[0], asked.truncate)
    methods = [CATALOGUE.create(method) for method in study.methods_of(run)]
    return Plan(
        model=model,
        texts=data.texts,
        rationales=data.rationales if data.has_rationales else (),
        rows=plan_rows(methods, create_metrics(study.select), asked.seeds),
        metrics=tuple(create_metrics(study.metrics)),
        settings=settings,
        data=data.name,
    )


def reasons_against(study: Study, model: LanguageModel, run: tuple[str, str], data: Dataset) -> list[str]:
    """Why a run, the keys of model and data, cannot be: every reason, one line each."""
    reasons = [*_unfit_labels(study, model, run[0], data), *_unfit_metrics(study, model, data)]
    reasons += learned_from(study.models[run[0]], data)
    unreadable = _unreadable(study, model, run[1], data)
    if reasons or unreadable:
        return reasons + unreadable
    try:
        # The target, what is explained and the removal meet the model here.
        plan = plan_of(study, model, run, data)
        target = plan.settings.target
        first = replace(plan.settings, target=target[:1]) if isinstance(target, list) else plan.settings
        prepare(model, plan.texts[:1], first)
    except RaisonError as error:
        return [str(error)]
    return []


def learned_from(entry: StudyModel, data: Dataset) -> list[str]:
    """Why a model may not be tested on data, for it learned from texts among them; as far as its card says."""
    trained = card_of(entry).get("data", {}).get("train", {}).get("name", "")
    reason = shared(trained, data.name)
    return [] if reason is None else [reason]


def unable_methods(
    study: Study, model: LanguageModel, key: str, known: Mapping[tuple[str, str], set[str]]
) -> list[str]:
    """Why some methods do not work on the model of this key, in whose runs they are.

    `known` has the rows of a run that need not be computed: methods of which there are no others may be unable.
    """
    reasons = []
    for method in (one for run in study.runs if run[0] == key for one in _asked(study, run, known.get(run, set()))):
        try:
            check(model, method)
        except RaisonError as error:
            reasons.append(str(error))
    return list(dict.fromkeys(reasons))


def _asked(study: Study, run: tuple[str, str], known: set[str]) -> list[Method]:
    """The methods of a run that have a row to compute."""
    methods = [CATALOGUE.create(method) for method in study.methods_of(run)]
    rows = plan_rows(methods, create_metrics(study.select), study.settings.seeds)
    return [method for method in methods if any(row.method is method for row in rows if row.label not in known)]


def _unfit_metrics(study: Study, model: LanguageModel, data: Dataset) -> list[str]:
    metrics = create_metrics((*study.metrics, *study.select))
    try:
        check_metrics(model, metrics, has_rationales=data.has_rationales, texts=len(data))
    except UnsupportedError as error:
        lacking = any(Need.RATIONALES in metric.needs for metric in metrics) and not data.has_rationales
        return [*error.reasons, *([_lacking_rationales(data)] if lacking else [])]
    return []


def _lacking_rationales(data: Dataset) -> str:
    try:
        data.require_rationales()
    except DataError as error:
        return str(error)
    return f"{data.name} has no row."


def _unit(study: Study, source: str) -> Granularity:
    return study.data[source].unit or study.settings.unit


def _unreadable(study: Study, model: LanguageModel, source: str, data: Dataset) -> list[str]:
    """The texts that the model cannot read, in one line."""
    found = []
    for row in data.rows:
        # One at a time: a large data set's tokens need not be in memory together.
        try:
            model.encode([row.text], _unit(study, source), study.settings.truncate)
        except InputError as error:
            found.append(f"row {row.number}: {error}")
    if not found:
        return []
    return [f"{len(found)} of {len(data)} texts of {data.name} cannot be explained, the first being {found[0]}"]


def _unfit_labels(study: Study, model: LanguageModel, key: str, data: Dataset) -> list[str]:
    """Why the data's labels are not the model's classes. Data without any label fits, unless they are the target."""
    names, way_out = study.models[key].labels, f"Name the model's classes as the data does: labels in [models.{key}]."
    if names and len(names) != len(model.classes):
        return [
            f"labels of [models.{key}] names {len(names)} classes, and {model.name} has {len(model.classes)}: "
            f"{', '.join(model.classes)}."
        ]
    if all(row.label is None for row in data.rows):
        unlabelled = f'{data.name} has no labels, and target = "label" asks for them.'
        return [unlabelled] if study.settings.target == "label" else []
    classes = names or model.classes
    if not _same_names(data.labels, classes):
        return [
            f"the labels of {data.name} ({', '.join(data.labels)}) are not the classes of {model.name} "
            f"({', '.join(classes)}). {way_out}"
        ]
    try:
        data.class_indices(classes)
    except InputError as error:
        return [f"{error} {way_out}"]
    return []


def _same_names(labels: tuple[str, ...], classes: tuple[str, ...]) -> bool:
    """Whether every label is a class. Classes that were never named are told by their number."""
    lowered = {name.lower() for name in classes}
    unnamed = lowered == {f"label_{number}" for number in range(len(labels))}
    return unnamed or all(label.lower() in lowered for label in labels)


def _target(study: Study, model: LanguageModel, entry: StudyModel, data: Dataset) -> TargetSpec:
    if study.settings.target == "predicted":
        return None
    if study.settings.target == "label":
        return list(data.class_indices(entry.labels or model.classes))
    return study.settings.target
