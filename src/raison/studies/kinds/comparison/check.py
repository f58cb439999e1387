"""Everything that is wrong with a study file, before a model or a data set is touched."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from raison.compare import plan_rows
from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import Catalogue, label_of
from raison.core.target import Of
from raison.core.unit import check_unit
from raison.data import Dataset, known_features
from raison.evaluate import create_metrics
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.models.loading.load import DTYPES, EXPLAINED
from raison.models.passes.removal import REMOVALS
from raison.runs.models_figure import AXES
from raison.runs.run import SCHEMA
from raison.studies import schema as shape
from raison.studies.schema import fitting
from raison.text.prompts import find as find_prompt
from raison.training.scratch import ScratchSettings, mistakes_in

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*")
"""What may be part of a run's folder: "--" stands between a model and its data."""

CHOICE = " by "
"""Between a method and the metric that chooses its maps, in the label of a row."""


def check(table: Mapping[str, Any]) -> list[str]:
    """One line for each mistake in a parsed study file; none if it can be run as far as the file alone tells."""
    study, mistakes = fitting(table, shape.STUDY, "the study")
    if study.get("schema", SCHEMA) != SCHEMA:
        return [f"the study: schema is {study['schema']}, and this version of raison reads {SCHEMA}."]
    settings, wrong = fitting(study.get("settings", {}), shape.SETTINGS, "[settings]")
    mistakes += wrong + _settings(settings)
    rows, wrong = _rows(study, tuple(settings.get("seeds", (0,))))
    mistakes += wrong
    metrics, wrong = _labels(study, "metrics", METRICS)
    mistakes += wrong
    mistakes += _entries(study.get("models"), "models", shape.MODEL, _model)
    mistakes += _entries(study.get("data"), "data", shape.DATA, _data)
    runs, wrong = _runs(study)
    mistakes += wrong
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim(claim, f"[[claims]] number {number}", _Known(rows, metrics, runs))
    if "examples" in study:
        mistakes += _examples(study["examples"], rows)
    if "figure" in study:
        fit, wrong = fitting(study["figure"], shape.FIGURE, "[figure]")
        unknown = [str(UnknownNameError("x", fit["x"], AXES))] if fit.get("x", AXES[0]) not in AXES else []
        mistakes += wrong + [f"[figure]: {line}" for line in unknown]
    return mistakes


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    rows: set[str] | None
    metrics: set[str] | None
    runs: set[str] | None


def canonical_row(label: str) -> str:
    """A row's label as the records write it: without settings that are defaults. Raises InputError."""
    method, found, metric = label.partition(CHOICE)
    return label_of(METHODS.create(method)) + (f"{CHOICE}{label_of(METRICS.create(metric))}" if found else "")


def canonical_metric(label: str) -> str:
    """The same of a metric."""
    return label_of(METRICS.create(label))


def grid(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The model and data of every run: those that the file names, else all pairs."""
    if "runs" in table:
        return [(run["model"], run["data"]) for run in table["runs"]]
    return [(model, data) for model in table["models"] for data in table["data"]]


def run_name(model: str, data: str) -> str:
    """The name of a run and its folder."""
    return f"{model}--{data}"


def _attempt(where: str, work: Callable[[], object]) -> list[str]:
    try:
        work()
    except RaisonError as error:
        return [f"{where}: {error}"]
    return []


def _settings(settings: Mapping[str, Any]) -> list[str]:
    mistakes = _attempt("[settings]", lambda: check_unit(settings.get("unit", "word")))
    for name, known in (("of", get_args(Of)), ("removal", REMOVALS)):
        if settings.get(name, known[0]) not in known:
            mistakes.append(f"[settings]: {UnknownNameError(name, settings[name], known)}")
    return mistakes


def _labels(study: Mapping[str, Any], key: str, catalogue: Catalogue[Any]) -> tuple[set[str] | None, list[str]]:
    """The labels of the methods or metrics under a key, None where they cannot be told, and what is wrong with them."""
    labels, mistakes = [], []
    for spec in study.get(key, ()):
        try:
            labels.append(label_of(catalogue.create(spec)))
        except RaisonError as error:
            mistakes.append(f"{key}: {error}")
    mistakes += [f"{key}: {label} is named twice." for label in sorted(set(labels)) if labels.count(label) > 1]
    if study.get(key) == [] and key != "select":
        mistakes.append(f"{key}: the list is empty; name at least one.")
    return (None if mistakes or key not in study else set(labels)), mistakes


def _rows(study: Mapping[str, Any], seeds: tuple[int, ...]) -> tuple[set[str] | None, list[str]]:
    """The labels of the table's rows, None where they cannot be told, and what is wrong with methods and select."""
    methods, mistakes = _labels(study, "methods", METHODS)
    choosers, wrong = _labels(study, "select", METRICS)
    if wrong:
        return None, mistakes + wrong
    # What is wrong with the choice is said even where the methods are not known yet.
    specs = ["random(draws=2)"] if methods is None else study["methods"]
    try:
        rows = plan_rows([METHODS.create(spec) for spec in specs], create_metrics(sorted(choosers or ())), seeds)
    except RaisonError as error:
        return None, [*mistakes, f"select: {error}"]
    return (None if methods is None else {row.label for row in rows}), mistakes


def _entries(
    tables: Mapping[str, Any] | None, name: str, keys: shape.Keys, further: Callable[[dict[str, Any], str], list[str]]
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


def _model(table: dict[str, Any], where: str) -> list[str]:
    mistakes = []
    if table.get("dtype", "auto") not in DTYPES:
        mistakes.append(f"{where}: {UnknownNameError('dtype', table['dtype'], DTYPES)}")
    if table.get("explained", "input") not in EXPLAINED:
        mistakes.append(f"{where}: {UnknownNameError('value of explained', table['explained'], EXPLAINED)}")
    if table.get("removal", REMOVALS[0]) not in REMOVALS:
        mistakes.append(f"{where}: {UnknownNameError('removal', table['removal'], REMOVALS)}")
    if "prompt" in table:
        mistakes += _attempt(where, lambda: find_prompt(table["prompt"]))
    elif "explained" in table or "calibrate" in table:
        mistakes.append(f"{where}: explained and calibrate belong to a prompt; give prompt as well.")
    if "made" in table:
        mistakes += _made(table, where)
    labels = [label.lower() for label in table.get("labels", ())]
    if len(set(labels)) < len(labels):
        mistakes.append(f"{where}: labels names a class twice.")
    return mistakes


def _made(table: dict[str, Any], where: str) -> list[str]:
    """What is wrong with a model that the study makes itself."""
    mistakes = []
    if "prompt" in table:
        mistakes.append(f"{where}: a made model is a classifier, and a prompt is for language models; leave one out.")
    where = f"{where[:-1]}.made]"
    fit, wrong = fitting(table["made"], shape.MADE, where)
    mistakes += wrong
    for name in ("train", "held_out"):
        if name in fit:
            data, wrong = fitting(fit[name], shape.DATA, f"{where} {name}")
            mistakes += wrong + _data(data, f"{where} {name}")
    return mistakes + [f"{where}: {line}" for line in mistakes_in(settings_of(fit))]


def settings_of(made: Mapping[str, Any]) -> ScratchSettings:
    """How the model of a table [models.x.made] is trained."""
    return ScratchSettings(**{key: value for key, value in made.items() if key not in ("train", "held_out")})


def _data(table: dict[str, Any], where: str) -> list[str]:
    mistakes = []
    if "text" in table and "pair" in table:
        mistakes.append(f"{where}: text and pair exclude each other; name one text, or the two of a pair.")
    if "sample" in table and "limit" not in table:
        mistakes.append(f"{where}: sample draws `limit` rows, so it needs limit.")
    mistakes += _attempt(where, lambda: check_unit(table.get("unit", "word")))
    if "known_features" in table:
        fit, wrong = fitting(table["known_features"], shape.KNOWN_FEATURES, f"{where} known_features")
        mistakes += wrong
        # On no row at all: only the settings are looked at.
        mistakes += _attempt(f"{where} known_features", lambda: known_features(Dataset("", ()), **fit))
    return mistakes


def _runs(study: Mapping[str, Any]) -> tuple[set[str] | None, list[str]]:
    """The names of the runs, None where they cannot be told, and what is wrong with [[runs]]."""
    known = {"model": study.get("models"), "data": study.get("data")}
    mistakes: list[str] = []
    pairs = []
    for number, table in enumerate(study.get("runs", ()), start=1):
        where = f"[[runs]] number {number}"
        fit, wrong = fitting(table, shape.RUN, where)
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
    return {run_name(*pair) for pair in grid(study)}, mistakes


def _without(names: Sequence[str], methods: object, where: str) -> list[str]:
    """What is wrong with the methods that a run leaves out, which are written as the study's own."""
    known = [method for method in methods if isinstance(method, str)] if isinstance(methods, list) else []
    mistakes = [f"{where}: {UnknownNameError('method', name, known)}" for name in names if name not in known]
    if known and set(known) <= set(names):
        mistakes.append(f"{where}: without names every method of the study; leave out the run.")
    return mistakes


def _claim(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, shape.CLAIM, where)
    if ("above" in table) == ("below" in table):
        mistakes.append(f"{where}: give one of above and below.")
    named = [("row", fit[key]) for key in ("above", "below", "than") if isinstance(fit.get(key), str)]
    named += [("metric", fit["metric"])] if "metric" in fit else []
    labels = []
    for kind, label in named:
        canonical, there = (canonical_row, known.rows) if kind == "row" else (canonical_metric, known.metrics)
        try:
            labels.append(canonical(label))
        except RaisonError as error:
            mistakes.append(f"{where}: {error}")
            continue
        if there is not None and labels[-1] not in there:
            mistakes.append(f"{where}: {UnknownNameError(kind, label, there)}")
    if not mistakes and len(set(labels)) < len(labels):
        mistakes.append(f"{where}: it compares {labels[0]} with itself.")
    if "run" in fit and known.runs is not None and fit["run"] not in known.runs:
        mistakes.append(f"{where}: {UnknownNameError('run', fit['run'], known.runs)}")
    return mistakes


def _examples(table: Mapping[str, Any], rows: set[str] | None) -> list[str]:
    """What is wrong with [examples]; `rows` are the table's, None where they cannot be told."""
    fit, mistakes = fitting(table, shape.EXAMPLES, "[examples]")
    labels = fit.get("rows", [])
    if "rows" in fit and not labels:
        mistakes.append("[examples]: rows is empty; leave it out to show all rows but random.")
    mistakes += [f"[examples]: rows names {label} twice." for label in sorted(set(labels)) if labels.count(label) > 1]
    for label in dict.fromkeys(labels):
        try:
            canonical = canonical_row(label)
        except RaisonError as error:
            mistakes.append(f"[examples]: {error}")
            continue
        if rows is not None and canonical not in rows:
            mistakes.append(f"[examples]: {UnknownNameError('row', label, rows)}")
        elif canonical != label:
            # The report compares with the records, and has no catalogue to know settings that are defaults.
            mistakes.append(f"[examples]: the records call the row '{label}' '{canonical}'; write it so.")
    return mistakes
