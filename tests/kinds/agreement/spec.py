"""The file of a study of agreement: how alike methods explain the texts of one data set.

schema = 1
kind = "agreement"
title = "..."
methods = ["occlusion", "saliency"]
[model]
name = "demo/sst2"
[data]
source = "sst2"
[[claims]]
says = "..."
above = "occlusion & saliency"
than = 0.2
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from raison.core.errors import UnknownNameError
from raison.methods import CATALOGUE
from raison.studies import parts, schema
from raison.studies.entries import StudyData, StudyModel
from raison.studies.file import MistakesError, entries_of
from raison.studies.schema import Key, Keys, fitting

KEYS: Keys = {
    "methods": Key(schema.TEXTS, True),
    "model": Key(schema.TABLE, True),
    "data": Key(schema.TABLE, True),
}
CLAIM: Keys = {key: schema.CLAIM[key] for key in ("says", "above", "below", "than")}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A file without mistakes."""

    methods: tuple[str, ...]
    model: StudyModel
    data: StudyData
    claims: tuple[Mapping[str, Any], ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The methods, two by two."""
        return list(combinations(self.methods, 2))


def tools() -> None:
    """Nothing that tests would replace."""


def parse(table: Mapping[str, Any], place: Path, _tools: None) -> Agreement:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(table, KEYS)
    methods = study.get("methods", [])
    mistakes += parts.labels_in(methods, "methods", CATALOGUE)[1] if "methods" in study else []
    for name, keys in (("model", schema.MODEL), ("data", schema.DATA)):
        mistakes += fitting(study.get(name, {}), keys, f"[{name}]")[1] if name in study else []
    known = {f"{one} & {other}" for one, other in combinations(methods, 2)}
    for number, claim in enumerate(study.get("claims", ()), start=1):
        where = f"[[claims]] number {number}"
        fit, wrong = fitting(claim, CLAIM, where)
        mistakes += wrong + parts.sides_mistakes(claim, where)
        named = parts.rows_named(fit)
        mistakes += [f"{where}: {UnknownNameError('pair', pair, known)}" for pair in named if pair not in known]
    if mistakes:
        raise MistakesError(mistakes)
    model, data = parts.model_of(table["model"], place), parts.data_of(table["data"], place)
    return Agreement(tuple(methods), model, data, tuple(table.get("claims", ())))
