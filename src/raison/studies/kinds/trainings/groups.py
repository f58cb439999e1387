"""Rows of trainings that differ in a few settings only."""

import json
from typing import Any

from raison.studies.kinds.trainings.results import Trainings
from raison.studies.kinds.trainings.tables import rows


def ways(study: Trainings, *varied: str) -> dict[str, list[dict[str, Any]]]:
    """The trainings by all of their settings but those `varied`; a group is called by what tells it from the others."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows(study, "training"):
        groups.setdefault(json.dumps(_way(row, varied), sort_keys=True), []).append(row)
    found = [(_way(group[0], varied), group) for group in groups.values()]
    telling = [key for key in (found[0][0] if found else {}) if len({json.dumps(way.get(key)) for way, _ in found}) > 1]
    return {", ".join(f"{_word(key)}{said(way.get(key))}" for key in telling): group for way, group in found}


def said(value: Any) -> str:
    """A setting's value in a few words."""
    if isinstance(value, list):
        return "+".join(map(said, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "all" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _way(row: dict[str, Any], varied: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in row["settings"].items() if key not in varied}


def _word(key: str) -> str:
    """Names of criteria, forms and norms speak for themselves."""
    return "" if key in ("criteria", "form", "norm") else f"{key.replace('_', ' ')} "
