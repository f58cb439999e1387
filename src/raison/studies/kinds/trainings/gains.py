"""The gain or loss from training for several criteria, or on other data: average relative gains (IvRA, figures 5,
8)."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raison.numerics.statistics.gains import Gain, average_relative_gain
from raison.studies.kinds.trainings.records import TrainingHead, TrainingRuns
from raison.studies.kinds.trainings.tables import ColumnKey, info_of, of_seeds, places, rows

NONE = Gain(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True, slots=True)
class GainTable:
    """`gains[i][j]` is the gain of row j for criterion i by `metrics[i]`. The caller defines the reference."""

    name: str
    criteria: tuple[str, ...]
    metrics: tuple[str, ...]
    columns: tuple[str, ...]
    gains: tuple[tuple[Gain, ...], ...]


def mixed(study: TrainingRuns) -> list[GainTable]:
    """For every way of training: rows against the one trained for the criterion alone, over all tasks and seeds.

    A way of training is all of a row's settings except its criteria. It has a table if one of its rows has a single
    criterion with a metric, and there is another row. The former row itself has no gain.
    """
    tables = []
    for name, family in ways(study, "criteria").items():
        alone = {row.criteria[0]: row.name for row in family if len(row.criteria) == 1}
        criteria = [criterion for criterion in study.header.gains if criterion in alone]
        if not criteria or len(family) < 2:
            continue
        columns = [row.name for row in family]
        where = places(study)
        gains = [
            tuple(
                NONE if row == alone[a] else _gain(study, study.header.gains[a], where, row, alone[a])
                for row in columns
            )
            for a in criteria
        ]
        tables.append(GainTable(name, *_named(study, criteria), tuple(columns), tuple(gains)))
    return tables


def transferred(study: TrainingRuns) -> list[GainTable]:
    """For every move to another task's data: rows trained there, over the same rows trained elsewhere.

    Judged by the metrics of the criteria that some row was trained for.
    """
    tables = []
    trained = {criterion for row in rows(study, "training") for criterion in row.criteria}
    criteria = [criterion for criterion in study.header.gains if criterion in trained]
    for place in places(study, transferred=True):
        there = [row.name for row in rows(study, "training") if {place.task, place.test} <= set(row.tasks)]
        if not (there and criteria):
            continue
        home = ColumnKey(place.test, place.test)
        gains = [
            tuple(_moved(study, study.header.gains[criterion], name, home, place) for name in there)
            for criterion in criteria
        ]
        tables.append(GainTable(place.title, *_named(study, criteria), tuple(there), tuple(gains)))
    return tables


def _named(study: TrainingRuns, criteria: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(criteria), tuple(study.header.gains[criterion] for criterion in criteria)


def _gain(study: TrainingRuns, metric: str, where: Sequence[ColumnKey], row: str, alone: str) -> Gain:
    """The gain of a row over another one, in every place."""
    return _average(
        study, metric, [tuple(of_seeds(study, name, place, metric) for name in (row, alone)) for place in where]
    )


def _moved(study: TrainingRuns, metric: str, row: str, home: ColumnKey, away: ColumnKey) -> Gain:
    """The gain of a row on its own data over the same row on other data."""
    return _average(study, metric, [tuple(of_seeds(study, row, place, metric) for place in (home, away))])


def _average(study: TrainingRuns, metric: str, pairs: Sequence[tuple[dict[int, float], ...]]) -> Gain:
    higher = info_of(study, metric).higher_is_better
    if higher is None:
        return NONE
    seeds = study.header.seeds
    values, references = (
        np.array([[pair[side].get(seed, math.nan) for seed in seeds] for pair in pairs], dtype=np.float64)
        for side in (0, 1)
    )
    return average_relative_gain(values, references, higher)


def ways(study: TrainingRuns, *varied: str) -> dict[str, list[TrainingHead]]:
    """The trainings in groups by all of their settings except those `varied`; a group is named by the settings that
    distinguish it from the others.
    """
    groups: dict[str, list[TrainingHead]] = {}
    for row in rows(study, "training"):
        groups.setdefault(json.dumps(_way(row, varied), sort_keys=True), []).append(row)
    pairs = [(_way(group[0], varied), group) for group in groups.values()]
    telling = [key for key in (pairs[0][0] if pairs else {}) if len({json.dumps(way.get(key)) for way, _ in pairs}) > 1]
    return {", ".join(f"{_word(key)}{value_text(way.get(key))}" for key in telling): group for way, group in pairs}


def value_text(value: Any) -> str:
    """A setting's value in a few words."""
    if isinstance(value, list):
        return "+".join(map(value_text, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "all" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _way(row: TrainingHead, varied: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in row.settings.items() if key not in varied}


def _word(key: str) -> str:
    """Names of criteria, forms and norms are shown without their key."""
    return "" if key in ("criteria", "form", "norm") else f"{key.replace('_', ' ')} "
