"""Parts shared by several kinds of study files: models, data, settings, runs, claims; read, or all mistakes found.

Each reader takes its part of the file and where it stands, and adds what is wrong with it to `mistakes`, a line each.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import Catalogue, label_of
from raison.core.target import Of
from raison.data import Dataset, Wanted, known_features
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.models.passes.removal import REMOVALS
from raison.runs.models_figure import AXES
from raison.studies import schema
from raison.studies.entries import StudyData, StudyModel, StudySettings
from raison.studies.folder import Claim
from raison.studies.schema import Keys, fitting
from raison.text.prompts import find as find_prompt
from raison.training.recipes.scratch import ScratchSettings, mistakes_in

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*")
"""What may be part of a run's folder: "--" stands between a model and its data."""
_SIDES: tuple[Literal["above", "below", "than"], ...] = ("above", "below", "than")
CHOICE = " by "
"""Between a method and the metric that chooses its maps, in the label of a row."""

RunKey = tuple[str, str]
"""The study's keys of a model and of data."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The models and data of a study, and the runs of one on the other.

    `without` has the methods that a run leaves out, such as one that its model does not allow.
    """

    models: Mapping[str, StudyModel]
    data: Mapping[str, StudyData]
    runs: tuple[RunKey, ...]
    without: Mapping[RunKey, tuple[str, ...]] = field(default_factory=dict)

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs' folders."""
        return tuple(run_name(*run) for run in self.runs)

    def of_model(self, key: str) -> list[str]:
        """The keys of the data that a model is run on."""
        return [data for model, data in self.runs if model == key]

    @property
    def model_keys(self) -> list[str]:
        """The models that are run, in the file's order."""
        return list(dict.fromkeys(model for model, _ in self.runs))

    @property
    def data_keys(self) -> list[str]:
        """The data that is used."""
        return list(dict.fromkeys(data for _, data in self.runs))


def run_name(model: str, data: str) -> str:
    """The name of a run and its folder."""
    return f"{model}--{data}"


def canonical_row(label: str) -> str:
    """A row's label as the records write it: without settings that are defaults. Raises InputError."""
    method, is_chosen, metric = label.partition(CHOICE)
    return label_of(METHODS.create(method)) + (f"{CHOICE}{label_of(METRICS.create(metric))}" if is_chosen else "")


def canonical_metric(label: str) -> str:
    """The same of a metric."""
    return label_of(METRICS.create(label))


def attempt(where: str, work: Callable[[], object]) -> list[str]:
    """Turn an error of the work into a mistake."""
    try:
        work()
    except RaisonError as error:
        return [f"{where}: {error}"]
    return []


def settings_mistakes(settings: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values of [settings]."""
    mistakes = []
    for name, known in (("of", get_args(Of)), ("removal", REMOVALS)):
        if settings.get(name, known[0]) not in known:
            mistakes.append(f"[settings]: {UnknownNameError(name, settings[name], known)}")
    return mistakes


def settings_of(table: Mapping[str, Any], seeds: Sequence[int] | None = None) -> StudySettings:
    """The settings of a file without mistakes."""
    settings = dict(table.get("settings", {}))
    if isinstance(settings.get("target"), list):
        settings["target"] = tuple(settings["target"])
    return StudySettings(**settings | {"seeds": tuple(settings.get("seeds", (0,)) if seeds is None else seeds)})


def labels_in(
    specs: Sequence[str], where: str, catalogue: Catalogue[Any], empty: bool = False
) -> tuple[set[str] | None, list[str]]:
    """The labels of methods or metrics, None where they cannot be told, and what is wrong with them."""
    labels, mistakes = [], []
    for spec in specs:
        try:
            labels.append(label_of(catalogue.create(spec)))
        except RaisonError as error:
            mistakes.append(f"{where}: {error}")
    mistakes += [f"{where}: {label} is named twice." for label in sorted(set(labels)) if labels.count(label) > 1]
    if not specs and not empty:
        mistakes.append(f"{where}: the list is empty; name at least one.")
    return (None if mistakes else set(labels)), mistakes


def grid_mistakes(study: Mapping[str, Any]) -> tuple[set[str] | None, list[str]]:
    """The names of the runs, None where they cannot be told, and what is wrong with models, data, runs and figure."""
    mistakes = _entries(study.get("models"), "models", schema.MODEL, model_mistakes)
    mistakes += _entries(study.get("data"), "data", schema.DATA, data_mistakes)
    runs, wrong = _runs(study)
    mistakes += wrong
    if "figure" in study:
        fit, wrong = fitting(study["figure"], schema.FIGURE, "[figure]")
        unknown = [str(UnknownNameError("x", fit["x"], AXES))] if fit.get("x", AXES[0]) not in AXES else []
        mistakes += wrong + [f"[figure]: {line}" for line in unknown]
    return runs, mistakes


def grid_of(table: Mapping[str, Any], place: Path) -> Grid:
    """Models, data and runs of a file without mistakes, which lies in the folder `place`."""
    return Grid(
        {key: model_of(entry, place) for key, entry in table["models"].items()},
        {key: data_of(entry, place) for key, entry in table["data"].items()},
        tuple(_pairs(table)),
        {(run["model"], run["data"]): tuple(run.get("without", ())) for run in table.get("runs", ())},
    )


def _pairs(table: Mapping[str, Any]) -> list[RunKey]:
    """The runs that the file names, else all pairs."""
    if "runs" in table:
        return [(run["model"], run["data"]) for run in table["runs"]]
    return [(model, data) for model in table["models"] for data in table["data"]]


def _entries(
    tables: Mapping[str, Any] | None, name: str, keys: Keys, further: Callable[[Mapping[str, Any], str], list[str]]
) -> list[str]:
    """What is wrong with the tables [models.x], or [data.x]."""
    if tables is None:
        return []
    mistakes = [] if tables else [f"[{name}]: it is empty; add one table [{name}.NAME]."]
    for key, table in tables.items():
        where = f"[{name}.{key}]"
        if not _NAME.fullmatch(key):
            mistakes.append(f"{where}: a name here is made of letters, digits and single - _ . for it names a folder.")
        if not isinstance(table, dict):
            mistakes.append(f"{where}: it is {table!r:.80}; give a table.")
            continue
        fit, wrong = fitting(table, keys, where)
        mistakes += wrong + further(fit, where)
    return mistakes


def model_mistakes(table: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with the values of a model's table."""
    mistakes = []
    if table.get("removal", REMOVALS[0]) not in REMOVALS:
        mistakes.append(f"{where}: {UnknownNameError('removal', table['removal'], REMOVALS)}")
    if "prompt" in table:
        mistakes += attempt(where, lambda: find_prompt(table["prompt"]))
    elif "explained" in table or "calibrate" in table:
        mistakes.append(f"{where}: explained and calibrate belong to a prompt; give prompt as well.")
    if "made" in table:
        mistakes += _made_mistakes(table, where)
    labels = [label.lower() for label in table.get("labels", ())]
    if len(set(labels)) < len(labels):
        mistakes.append(f"{where}: labels names a class twice.")
    return mistakes


def _made_mistakes(table: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with a model that the study makes itself."""
    mistakes = []
    if "prompt" in table:
        mistakes.append(f"{where}: a made model is a classifier, and a prompt is for language models; leave one out.")
    where = f"{where[:-1]}.made]"
    fit, wrong = fitting(table["made"], schema.MADE, where)
    mistakes += wrong
    for name in ("train", "held_out"):
        if name in fit:
            data, wrong = fitting(fit[name], schema.DATA, f"{where} {name}")
            mistakes += wrong + data_mistakes(data, f"{where} {name}")
    return mistakes + [f"{where}: {line}" for line in mistakes_in(made_settings(fit))]


def made_settings(made: Mapping[str, Any]) -> ScratchSettings:
    """How the model of a table [models.x.made] is trained."""
    return ScratchSettings(**{key: value for key, value in made.items() if key not in ("train", "held_out")})


def data_mistakes(table: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with the values of a table of data."""
    mistakes = []
    if "text" in table and "pair" in table:
        mistakes.append(f"{where}: text and pair exclude each other; name one text, or the two of a pair.")
    if "sample" in table and "limit" not in table:
        mistakes.append(f"{where}: sample draws `limit` rows, so it needs limit.")
    if "known_features" in table:
        fit, wrong = fitting(table["known_features"], schema.KNOWN_FEATURES, f"{where} known_features")
        mistakes += wrong
        # Without rows: only the settings are checked.
        mistakes += attempt(f"{where} known_features", lambda: known_features(Dataset("", ()), **fit))
    return mistakes


def _runs(study: Mapping[str, Any]) -> tuple[set[str] | None, list[str]]:
    """The names of the runs, None where they cannot be told, and what is wrong with [[runs]]."""
    known = {"model": study.get("models"), "data": study.get("data")}
    mistakes: list[str] = []
    pairs = []
    for number, table in enumerate(study.get("runs", ()), start=1):
        where = f"[[runs]] number {number}"
        fit, wrong = fitting(table, schema.RUN, where)
        for kind, names in known.items():
            if kind in fit and names is not None and fit[kind] not in names:
                wrong.append(f"{where}: {UnknownNameError(kind, fit[kind], names)}")
        wrong += _without(fit.get("without", []), study.get("methods", []), where)
        pairs += [] if wrong else [(fit["model"], fit["data"])]
        mistakes += wrong
    mistakes += [
        f"[[runs]]: model '{model}' on data '{data}' is named twice."
        for model, data in dict.fromkeys(pairs)
        if pairs.count((model, data)) > 1
    ]
    if study.get("runs") == []:
        mistakes.append("[[runs]]: the list is empty; leave it out to run every model on all data.")
    if mistakes or None in known.values():
        return None, mistakes
    return {run_name(*pair) for pair in _pairs(study)}, mistakes


def _without(names: Sequence[str], methods: object, where: str) -> list[str]:
    """What is wrong with the methods that a run leaves out, which are written as the study's own."""
    known = [method for method in methods if isinstance(method, str)] if isinstance(methods, list) else []
    mistakes = [f"{where}: {UnknownNameError('method', name, known)}" for name in names if name not in known]
    if known and set(known) <= set(names):
        mistakes.append(f"{where}: without names every method of the study; leave out the run.")
    return mistakes


def sides_mistakes(table: Mapping[str, Any], where: str) -> list[str]:
    """Check that a claim has exactly one of `above` and `below`."""
    return [f"{where}: give one of above and below."] if ("above" in table) == ("below" in table) else []


def rows_named(claim: Mapping[str, Any]) -> list[str]:
    """The rows that a claim compares, as the file calls them."""
    return [label for key in _SIDES if isinstance(label := claim.get(key), str)]


def claim_of(entry: Claim, canonical: Callable[[str], str]) -> Claim:
    """A claim with its rows written as the records do."""
    claim = entry.copy()
    for key in _SIDES:
        if isinstance(label := entry.get(key), str):
            claim[key] = canonical(label)
    return claim


def model_of(entry: Mapping[str, Any], folder: Path) -> StudyModel:
    """A model of a file without mistakes."""
    values = dict(entry) | {"labels": tuple(entry.get("labels", ()))}
    if "made" in entry:
        made = entry["made"]
        parts = {key: made[key] for key in ("train", "held_out") if key in made}
        # As for data: files that come with the study.
        values["made"] = made | {key: part | {"source": _source(part, folder)} for key, part in parts.items()}
    return StudyModel(**values)


def _source(entry: Mapping[str, Any], folder: Path) -> str:
    """A study that brings its data along can be run from anywhere."""
    beside = folder / entry["source"]
    return str(beside) if beside.is_file() else str(entry["source"])


def data_of(entry: Mapping[str, Any], folder: Path) -> StudyData:
    """Data of a file without mistakes."""
    columns: dict[str, Any] = {key: entry[key] for key in ("text", "label", "rationale") if key in entry}
    pair = tuple(entry["pair"]) if "pair" in entry else None
    wanted = Wanted(pair=pair, **columns) if columns or pair else None
    same = {key: value for key, value in entry.items() if key not in (*columns, "pair", "source")}
    return StudyData(source=_source(entry, folder), wanted=wanted, **same)
