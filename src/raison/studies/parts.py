"""Parts shared by several kinds of study files, checked: models, data, settings, runs, claims.

Each function takes a part of the file and its location, and returns its mistakes, one line each.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.metric import Metric
from raison.core.registry import Catalogue, label_of
from raison.core.removals import REMOVALS
from raison.core.targets.target import Of
from raison.data import Dataset
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.report.pages.examples import ExamplesAsked
from raison.studies.data_loading import with_features
from raison.studies.entries import Grid, StudyData, StudyModel, StudySettings
from raison.studies.folder import Claim
from raison.text.prompts import find as find_prompt
from raison.training.recipes.scratch import mistakes_in

C = TypeVar("C", bound=Claim)
E = TypeVar("E", StudyModel, StudyData)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*")
"""Names allowed in a run's folder, where "--" separates a model from its data."""
CHOICE = " by "
"""Separates a method from the metric that selects its maps, in the label of a row."""


def canonical_row(label: str) -> str:
    """A row's label as the records write it: without settings that are defaults. Raises InputError."""
    method, is_chosen, metric = label.partition(CHOICE)
    return label_of(METHODS.create(method)) + (f"{CHOICE}{label_of(METRICS.create(metric))}" if is_chosen else "")


def canonical_metric(label: str) -> str:
    """A metric's label as the records write it. Raises InputError."""
    return label_of(METRICS.create(label))


def attempt(where: str, work: Callable[[], object]) -> list[str]:
    """Turn an error of the work into a mistake."""
    try:
        work()
    except RaisonError as error:
        return [f"{where}: {error}"]
    return []


def _pooled(claim: Claim, where: str) -> list[str]:
    """The mistake of a claimed difference in a metric whose values are parts of one value over all texts."""
    if claim.by is None or attempt(where, lambda: METRICS.create(claim.measured)):
        return []
    metric = METRICS.create(claim.measured)
    pooled = isinstance(metric, Metric) and metric.pool != "mean"
    return [f"{where}: {claim.measured} has one value for all texts together: leave by out."] if pooled else []


def unknown(where: str, kind: str, name: str | None, known: Iterable[str] | None) -> list[str]:
    """The mistake of a name that is not among the known ones; none if these are unknown or the name is empty."""
    return [] if known is None or not name or name in known else [f"{where}: {UnknownNameError(kind, name, known)}"]


def twice(where: str, names: Sequence[str]) -> list[str]:
    """The mistake of a name that a list has more than once."""
    return [f"{where}: {name} is named twice; remove one." for name in sorted(set(names)) if names.count(name) > 1]


def settings_mistakes(settings: StudySettings | Settings) -> list[str]:
    """The mistakes in the values of [settings]."""
    return unknown("[settings]", "of", settings.of, get_args(Of)) + unknown(
        "[settings]", "removal", settings.removal, REMOVALS
    )


def unread(table: Mapping[str, Any], key: str) -> bool:
    """Whether a list is missing, or no list: the reading of the file reports this."""
    return not isinstance(table.get(key), list)


def read_claims(claims: Sequence[C], mistakes: Sequence[str]) -> Iterator[tuple[str, C]]:
    """The claims of a file that were read without mistakes, each with its place in the file.

    A key that could not be read has its default: what would be said of that value is not about the file.
    """
    for number, claim in enumerate(claims, start=1):
        where = f"[[claims]] number {number}"
        if not any(mistake.startswith(f"{where}:") for mistake in mistakes):
            yield where, claim


def labels_in(
    specs: Sequence[str], where: str, catalogue: Catalogue[Any], empty: bool = False
) -> tuple[set[str] | None, list[str]]:
    """The labels of methods or metrics (None if unknown), and their mistakes."""
    labels, mistakes = [], []
    for spec in specs:
        try:
            labels.append(label_of(catalogue.create(spec)))
        except RaisonError as error:
            mistakes.append(f"{where}: {error}")
    mistakes += twice(where, labels)
    if not specs and not empty:
        mistakes.append(f"{where}: the list is empty; name at least one.")
    return (None if mistakes else set(labels)), mistakes


def grid_mistakes(grid: Grid, methods: Sequence[str]) -> list[str]:
    """The mistakes in models, data and runs; `methods` are the study's, which a run may leave out."""
    mistakes = _named("models", grid.models, model_mistakes) + _named("data", grid.data, data_mistakes)
    for number, run in enumerate(grid.runs or (), start=1):
        where = f"[[runs]] number {number}"
        mistakes += unknown(where, "model", run.model, grid.models or None)
        mistakes += unknown(where, "data", run.data, grid.data or None)
        mistakes += [line for name in run.without for line in unknown(where, "method", name, methods)]
        if methods and set(methods) <= set(run.without):
            mistakes.append(f"{where}: without excludes every method of the study; leave out the run.")
    pairs = [f"model '{run.model}' on data '{run.data}'" for run in grid.wanted]
    mistakes += twice("[[runs]]", pairs)
    if grid.runs == ():
        mistakes.append("[[runs]]: the list is empty; leave it out to run every model on all data.")
    return mistakes


def _named(name: str, entries: Mapping[str, E], further: Callable[[E, str], list[str]]) -> list[str]:
    """The mistakes in the tables [models.x], or [data.x]."""
    mistakes = []
    for key, entry in entries.items():
        where = f"[{name}.{key}]"
        if not _NAME.fullmatch(key):
            mistakes.append(
                f"{where}: a name may contain only letters, digits and single - _ . because it names a folder."
            )
        mistakes += further(entry, where)
    return mistakes


def model_mistakes(model: StudyModel, where: str) -> list[str]:
    """The mistakes in the values of a model's table."""
    mistakes = unknown(where, "removal", model.removal, REMOVALS)
    if model.prompt is not None:
        mistakes += attempt(where, lambda: find_prompt(str(model.prompt)))
    elif model.explained != "input" or model.calibrate:
        mistakes.append(f"{where}: explained and calibrate belong to a prompt; give prompt as well.")
    if model.made is not None:
        if model.prompt is not None:
            mistakes.append(
                f"{where}: a trained model is a classifier, and a prompt needs a language model; leave one of them out."
            )
        inner = f"{where[:-1]}.made"
        parts = {"train": model.made.train, "held_out": model.made.held_out}
        for name, part in parts.items():
            mistakes += [] if part is None else data_mistakes(part, f"{inner}.{name}]")
        mistakes += [f"{inner}]: {line}" for line in mistakes_in(model.made.settings)]
    labels = [label.lower() for label in model.labels]
    if len(set(labels)) < len(labels):
        mistakes.append(f"{where}: labels names a class twice; give each class a name of its own.")
    return mistakes


def data_mistakes(data: StudyData, where: str) -> list[str]:
    """The mistakes in the values of a table of data."""
    mistakes = []
    if data.wanted.text is not None and data.wanted.pair is not None:
        mistakes.append(f"{where}: text and pair exclude each other; give text, or the two columns of a pair.")
    if data.sample is not None and data.limit is None:
        mistakes.append(f"{where}: sample draws `limit` rows, so also give limit.")
    if (features := data.known_features) is not None:
        # An empty data set, because only the settings are checked.
        mistakes += attempt(f"{where[:-1]}.known_features]", lambda: with_features(Dataset("", ()), features))
    return mistakes


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The names that claims of a study may use, by kind of name; None if mistakes elsewhere leave them unknown.

    `canonical` writes a name as the records do, or raises InputError. `lists` says to which list of the file a name of
    the catalogue is added, so that claims may use it.
    """

    names: Mapping[str, Collection[str] | None]
    canonical: Mapping[str, Callable[[str], str]]
    lists: Mapping[str, str] = field(default_factory=dict)

    def rows(self, claim: Claim, where: str, kind: str) -> list[str]:
        """The mistakes in the two sides of a claim; a row is a `kind` of name."""
        rows = claim.labels
        mistakes = claim.mistakes(where) + [line for label in rows for line in self.name(where, kind, label)]
        mistakes += _pooled(claim, where)
        if not mistakes and len({self.canonical[kind](label) for label in rows}) < len(rows):
            return [f"{where}: it compares {rows[0]} with itself."]
        return mistakes

    def name(self, where: str, kind: str, name: str | None) -> list[str]:
        """The mistakes in a name, if there is one."""
        if name is None:
            return []
        known = self.names[kind]
        try:
            written = self.canonical.get(kind, str)(name)
        except RaisonError as error:
            if _is_number(name):
                return [f"{where}: {name!r} is a text: write a number without quotes."]
            if known is not None and isinstance(error, UnknownNameError) and "(" not in name:
                # The rows of the study, and not the whole catalogue.
                error = UnknownNameError(kind, name, known)
            return [f"{where}: {error}"]
        if known is None or written in known:
            return []
        return [f"{where}: {self._left_out(kind, name, known) or UnknownNameError(kind, name, known)}"]

    def _left_out(self, kind: str, name: str, known: Collection[str]) -> str:
        """What is wrong with a name of the catalogue that the study leaves out; "" for a name of something else."""
        canonical = canonical_metric if kind == "metric" else canonical_row
        if kind not in self.lists or attempt("", lambda: canonical(name)):
            return ""
        verb = "does not measure" if kind == "metric" else f"has no {kind}"
        lists = self.lists[kind] + (" and select" if kind != "metric" and CHOICE in name else "")
        return f"the study {verb} '{name}': add it to {lists}, or name one of {', '.join(sorted(known))}."


def claim_of(claim: C, canonical: Callable[[str], str]) -> C:
    """A claim with its rows written as the records do."""

    def written(side: str | None) -> str | None:
        return canonical(side) if side else side

    than = canonical(claim.than) if isinstance(claim.than, str) and claim.than else claim.than
    return replace(claim, above=written(claim.above), below=written(claim.below), than=than)


def examples_mistakes(
    examples: ExamplesAsked | None, rows: set[str] | None, canonical: Callable[[str], str]
) -> list[str]:
    """The mistakes in [examples]; `rows` are the table's, None if they are unknown."""
    if examples is None:
        return []
    where, labels = "[examples]", examples.rows or ()
    mistakes = [f"{where}: rows is empty; leave it out to show all rows but random."] if examples.rows == () else []
    mistakes += twice(f"{where}: rows", labels)
    known = ClaimNames({"row": rows}, {"row": canonical})
    for label in dict.fromkeys(labels):
        wrong = known.name(where, "row", label)
        if not wrong and (written := canonical(label)) != label:
            # The report compares names with the records, without a catalogue that knows default settings.
            wrong = [f"{where}: the records call the row '{label}' '{written}'; write it so."]
        mistakes += wrong
    return mistakes


def beside(folder: Path, data: StudyData) -> StudyData:
    """Data with its file relative to the study's folder, whatever the working directory."""
    there = folder / data.source
    return replace(data, source=str(there)) if there.is_file() else data


def model_beside(folder: Path, model: StudyModel) -> StudyModel:
    """A model with the files of its training data relative to the study's folder."""
    if model.made is None:
        return model
    held_out = None if model.made.held_out is None else beside(folder, model.made.held_out)
    return replace(model, made=replace(model.made, train=beside(folder, model.made.train), held_out=held_out))


def grid_beside(folder: Path, grid: Grid) -> Grid:
    """Models and data with their files relative to the study's folder."""
    models = {key: model_beside(folder, model) for key, model in grid.models.items()}
    return replace(grid, models=models, data={key: beside(folder, data) for key, data in grid.data.items()})


def _is_number(name: str) -> bool:
    try:
        return math.isfinite(float(name))
    except ValueError:
        return False
