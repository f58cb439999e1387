"""Plans for one model on one data set of a study, and the checks that need both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.errors import DataError, InputError, RaisonError, UnsupportedError
from raison.core.inputs.unit import PART, Granularity
from raison.core.method import Method
from raison.core.metric import Need
from raison.core.model import LanguageModel, asked_of
from raison.core.targets.target import TargetSpec
from raison.data import Dataset
from raison.data.dataset import unnamed_classes
from raison.data.named import shared
from raison.explaining.answers import Judged, judged
from raison.explaining.attribution import check
from raison.explaining.batch import prepare
from raison.explaining.each_prediction import sought_by, without_prediction
from raison.explaining.given_texts import InputOptions
from raison.explaining.measuring import create_metrics
from raison.explaining.settings import Settings
from raison.judging.evaluate import check_metrics
from raison.judging.plan import Plan, plan_rows
from raison.methods import CATALOGUE
from raison.models.adapters.writing.writer import Writer
from raison.models.loading.load import as_classifier
from raison.models.loading.load import load as load_model
from raison.models.served.request_settings import Served
from raison.studies.entries import StudyModel, StudySettings
from raison.studies.made import card_of, made_folder


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for one model, which the study calls `key`, on one data set."""

    key: str
    model: StudyModel
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    settings: StudySettings
    select: tuple[str, ...] = ()
    template: str | None = None


def load_entry(entry: StudyModel) -> LanguageModel | Writer:
    """The model of an entry; one that a study trains itself is trained now if necessary. Raises RaisonError."""
    folder = None if entry.made is None else made_folder(entry)
    loaded = load_model(
        entry.name if folder is None else folder,
        prompt=entry.prompt,
        explained=entry.explained,
        calibrate=entry.calibrate,
        similarity=entry.similarity,
        pooling=entry.pooling,
        aggregation=entry.aggregation,
        device=entry.device,
        dtype=entry.dtype,
        served=_served(entry),
    )
    # A record should not contain the location of the cache.
    loaded.name = loaded.name if folder is None else entry.name
    return loaded


def _served(entry: StudyModel) -> Served | None:
    """The settings for a server; None if the entry has none."""
    served = Served(
        model=entry.served,
        max_requests=entry.max_requests,
        max_tokens=entry.max_tokens,
        max_cost=entry.max_cost,
        price_in=entry.price_in,
        price_out=entry.price_out,
    )
    return None if served == Served() else served


def load_named_model(entry: StudyModel) -> LanguageModel:
    """The model of an entry that classifies, or gives a number. Raises RaisonError."""
    return as_classifier(load_entry(entry))


class Models:
    """A study's models, one in memory at a time: the last one is released before the next is loaded."""

    def __init__(self) -> None:
        self._known: tuple[StudyModel, LanguageModel | Writer] | None = None

    def of(self, entry: StudyModel) -> LanguageModel | Writer:
        """The model of an entry. Raises RaisonError."""
        if self._known is None or self._known[0] != entry:
            self._known = None
            self._known = (entry, load_entry(entry))
        return self._known[1]

    def predicting(self, entry: StudyModel) -> LanguageModel:
        """The model of an entry that classifies, or gives a number. Raises RaisonError."""
        return as_classifier(self.of(entry))


def judged_on(request: RunRequest, model: LanguageModel | Writer, data: Dataset) -> Judged:
    """The texts that a model explains; a generative language model answers the data's questions. Raises RaisonError."""
    unit = request.settings.unit
    if isinstance(model, Writer):
        return judged(model, data, InputOptions(unit), request.template)
    if data.questions:
        raise InputError(f"{data.name} has questions with sources, which need a generative language model.")
    return Judged(model, data.parted if unit == PART else data.texts, unit)


def plan_of(request: RunRequest, model: LanguageModel | Writer, data: Dataset) -> Plan:
    """A comparison. Raises InputError if requested labels are not the model's."""
    stated, explained = request.settings, judged_on(request, model, data)
    target = _target(request, explained.model, data)
    removal = request.model.removal or stated.removal
    of = asked_of(explained.model, stated.of)
    return Plan(
        model=explained.model,
        texts=explained.texts,
        rationales=explained.gold or (data.rationales if data.has_rationales else ()),
        rows=plan_rows(_created(request.methods), create_metrics(request.select), request.settings.seeds),
        metrics=tuple(create_metrics(request.metrics)),
        settings=Settings(stated.unit, target, of, removal, stated.seeds[0], stated.truncate),
        data=data.name,
    )


def checked_plan(
    request: RunRequest, model: LanguageModel | Writer, data: Dataset
) -> tuple[Plan | None, tuple[str, ...]]:
    """A comparison, and why it is impossible: every reason, one line each."""
    if isinstance(model, Writer) or data.questions:
        return _plan_of_answers(request, model, data)
    reasons = [*_unfit_labels(request, model, data), *_unfit_metrics(request, model, data)]
    reasons += learned_from(request.model, data)
    reasons += unreadable_texts(model, data, request.settings.unit, request.settings.truncate)
    if reasons:
        return None, tuple(reasons)
    try:
        # The target, the explained quantity and the removal are checked against the model here.
        plan = plan_of(request, model, data)
        target = plan.settings.target
        first = replace(plan.settings, target=target[:1]) if isinstance(target, list) else plan.settings
        empty = without_prediction(model, plan.texts, plan.settings)
        if not empty:
            prepare(model, plan.texts[:1], first)
    except RaisonError as error:
        return None, (str(error),)
    if empty:
        # The rows of a study's data are known by their numbers.
        some = f"{len(empty):,} of {len(plan.texts):,} texts, the first of them {str(plan.texts[empty[0]])!r:.60}"
        return None, (f"the model finds no {sought_by(model)} in {some}: leave them out of the data.",)
    return plan, ()


def _plan_of_answers(
    request: RunRequest, model: LanguageModel | Writer, data: Dataset
) -> tuple[Plan | None, tuple[str, ...]]:
    """`checked_plan` for a language model, which writes the answers that the data do not give."""
    try:
        plan = plan_of(request, model, data)
        check_metrics(
            plan.model,
            [*plan.metrics, *create_metrics(request.select)],
            has_rationales=bool(plan.rationales),
            texts=len(plan.texts),
        )
        prepare(plan.model, plan.texts[:1], plan.settings)
    except UnsupportedError as error:
        return None, error.reasons
    except RaisonError as error:
        return None, (str(error),)
    return plan, tuple(learned_from(request.model, data))


def learned_from(entry: StudyModel, data: Dataset) -> list[str]:
    """Why a model must not be tested on data: its card names training data with some of the texts."""
    trained = card_of(entry).get("data", {}).get("train", {}).get("name", "")
    reason = shared(trained, data.name)
    return [] if reason is None else [reason]


def unable(model: LanguageModel, methods: Sequence[Method]) -> list[str]:
    """Why some methods do not work on the model."""
    reasons = []
    for method in methods:
        try:
            check(model, method)
        except RaisonError as error:
            reasons.append(str(error))
    return list(dict.fromkeys(reasons))


def to_compute(request: RunRequest, known: set[str]) -> list[Method]:
    """The methods without a known row."""
    methods = _created(request.methods)
    rows = plan_rows(methods, create_metrics(request.select), request.settings.seeds)
    return [method for method in methods if any(row.method is method for row in rows if row.label not in known)]


def unreadable_texts(model: LanguageModel, data: Dataset, unit: Granularity, truncate: bool) -> list[str]:
    """The texts that the model cannot read, in one line."""
    reasons = []
    for row, text in zip(data.rows, data.parted if unit == PART else data.texts, strict=True):
        # One at a time: a large data set's tokens need not be in memory together.
        try:
            model.tokenized([text], unit, truncate)
        except InputError as error:
            reasons.append(f"row {row.number}: {error}")
    if not reasons:
        return []
    return [f"{len(reasons)} of {len(data)} texts of {data.name} cannot be explained, the first being {reasons[0]}"]


def _created(methods: Sequence[str]) -> list[Method]:
    return [CATALOGUE.create(method) for method in methods]


def _unfit_metrics(request: RunRequest, model: LanguageModel, data: Dataset) -> list[str]:
    metrics = create_metrics((*request.metrics, *request.select))
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
    return f"{data.name} has no rows."


def _unfit_labels(request: RunRequest, model: LanguageModel, data: Dataset) -> list[str]:
    """Why the data's labels are not the model's classes. Data without any label fits, unless they are the target."""
    names, key = request.model.labels, request.key
    way_out = f"Name the model's classes as in the data: labels in [models.{key}]."
    if names and len(names) != len(model.classes):
        return [
            f"labels of [models.{key}] names {len(names)} classes, and {model.name} has {len(model.classes)}: "
            f"{', '.join(model.classes)}."
        ]
    lacking = [row.number for row in data.rows if row.label is None]
    if lacking:
        lacks = "has no labels" if len(lacking) == len(data) else f"has no label in row {lacking[0]}"
        unlabelled = f'{data.name} {lacks}, and target = "label" needs one in every row.'
        return [unlabelled] if request.settings.target == "label" else []
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
    """Whether every label is a class. Unnamed classes are identified by their numbers."""
    lowered = {name.lower() for name in classes}
    unnamed = lowered == {*unnamed_classes(len(labels))}
    return unnamed or all(label.lower() in lowered for label in labels)


def _target(request: RunRequest, model: LanguageModel, data: Dataset) -> TargetSpec:
    target = request.settings.target
    if target == "predicted":
        return None
    return list(data.class_indices(request.model.labels or model.classes)) if target == "label" else target
