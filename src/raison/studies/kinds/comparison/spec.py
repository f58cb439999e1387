"""The file of a comparison: which models explain which data, by which methods, judged by which metrics.

schema = 1
title = "..."
methods = ["integrated_gradients(steps=20)", "lime"]
metrics = ["token_f1", "auroc"]
[models.sst2]
name = "demo/sst2"
[data.movies]
source = "eraser_movies"
[examples]
top = 3
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError, UnknownNameError
from raison.explaining.measuring import create_metrics
from raison.judging.plan import plan_rows
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.studies import parts, schema
from raison.studies.entries import StudySettings
from raison.studies.file import MistakesError, entries_of
from raison.studies.folder import Claim
from raison.studies.parts import Grid, RunKey, canonical_metric, canonical_row
from raison.studies.plans import Asked
from raison.studies.schema import Key, Keys, fitting

KEYS: Keys = {
    "methods": Key(schema.TEXTS, True),
    "metrics": Key(schema.TEXTS, True),
    "select": Key(schema.TEXTS),
    "agreement": Key(schema.FLAG),
    "settings": Key(schema.TABLE),
    "models": Key(schema.TABLE, True),
    "data": Key(schema.TABLE, True),
    "runs": Key(schema.TABLES),
    "examples": Key(schema.TABLE),
    "figure": Key(schema.TABLE),
}
EXAMPLES: Keys = {"top": Key(schema.COUNT), "rows": Key(schema.TEXTS), "texts": Key(schema.COUNT)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A file without mistakes."""

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    select: tuple[str, ...]
    agreement: bool
    settings: StudySettings
    grid: Grid
    claims: tuple[Claim, ...]

    def asked(self, run: RunKey) -> Asked:
        """What is asked of one run."""
        model, data = run
        left_out = self.grid.without.get(run, ())
        unit = self.grid.data[data].unit or self.settings.unit
        return Asked(
            model,
            self.grid.models[model],
            tuple(method for method in self.methods if method not in left_out),
            self.metrics,
            replace(self.settings, unit=unit),
            self.select,
        )


def tools() -> None:
    """The functions of a comparison, as raison.compare calls them."""


def parse(table: Mapping[str, Any], place: Path, _tools: None) -> Comparison:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(table, KEYS)
    settings, wrong = fitting(study.get("settings", {}), schema.SETTINGS, "[settings]")
    mistakes += wrong + parts.settings_mistakes(settings)
    rows, wrong = _rows(study, tuple(settings.get("seeds", (0,))))
    mistakes += wrong
    metrics, wrong = _labels(study, "metrics")
    mistakes += wrong
    runs, wrong = parts.grid_mistakes(study)
    mistakes += wrong
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim_mistakes(claim, f"[[claims]] number {number}", _Known(rows, metrics, runs))
    if "examples" in study:
        mistakes += _examples(study["examples"], rows)
    if mistakes:
        raise MistakesError(mistakes)
    return Comparison(
        tuple(table["methods"]),
        tuple(table["metrics"]),
        tuple(table.get("select", ())),
        table.get("agreement", False),
        parts.settings_of(table),
        parts.grid_of(table, place),
        tuple(_claim(entry) for entry in table.get("claims", ())),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    rows: set[str] | None
    metrics: set[str] | None
    runs: set[str] | None


def _labels(study: Mapping[str, Any], key: str) -> tuple[set[str] | None, list[str]]:
    """The labels of the methods or metrics under a key, None where they cannot be told, and what is wrong with them."""
    catalogue = METHODS if key == "methods" else METRICS
    return parts.labels_in(study[key], key, catalogue, empty=key == "select") if key in study else (None, [])


def _rows(study: Mapping[str, Any], seeds: tuple[int, ...]) -> tuple[set[str] | None, list[str]]:
    """The labels of the table's rows, None where they cannot be told, and what is wrong with methods and select."""
    methods, mistakes = _labels(study, "methods")
    choosers, wrong = _labels(study, "select")
    if wrong:
        return None, mistakes + wrong
    # Mistakes in the selection are reported even if the methods are not known yet.
    specs: Sequence[str] = ["random(draws=2)"] if methods is None else study["methods"]
    try:
        rows = plan_rows([METHODS.create(spec) for spec in specs], create_metrics(sorted(choosers or ())), seeds)
    except RaisonError as error:
        return None, [*mistakes, f"select: {error}"]
    return (None if methods is None else {row.label for row in rows}), mistakes


def _claim_mistakes(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, schema.CLAIM, where)
    mistakes += parts.sides_mistakes(table, where)
    named = [("row", label) for label in parts.rows_named(fit)]
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


def _claim(entry: Claim) -> Claim:
    return {**parts.claim_of(entry, canonical_row), "metric": canonical_metric(entry["metric"])}


def _examples(table: Mapping[str, Any], rows: set[str] | None) -> list[str]:
    """What is wrong with [examples]; `rows` are the table's, None where they cannot be told."""
    fit, mistakes = fitting(table, EXAMPLES, "[examples]")
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
