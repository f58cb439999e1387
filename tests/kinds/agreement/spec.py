"""The file of a study of agreement: how alike methods explain the texts of one data set.

methods = ["occlusion", "saliency"]
[model]
name = "demo/sst2"
[data]
source = "sst2"
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from raison.studies.kinds.agreement.results import PairClaim  # type: ignore[import-not-found]

from raison.core.settings.tables import FLAT
from raison.methods import CATALOGUE
from raison.studies import parts
from raison.studies.entries import About, StudyData, StudyModel
from raison.studies.file import MistakesError, entries_of


@dataclass(frozen=True, slots=True)
class Agreement:
    """The file."""

    about: Annotated[About, FLAT]
    methods: tuple[str, ...]
    model: StudyModel
    data: StudyData
    claims: tuple[PairClaim, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The methods, two by two."""
        return list(combinations(self.methods, 2))


def tools() -> None:
    """Nothing that tests would replace."""


def parse(table: Mapping[str, Any], place: Path, _tools: None) -> Agreement:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(Agreement, table)
    mistakes += parts.labels_in(study.methods, "methods", CATALOGUE, empty="methods" not in table)[1]
    mistakes += parts.model_mistakes(study.model, "[model]") + parts.data_mistakes(study.data, "[data]")
    known = parts.ClaimNames({"pair": [f"{one} & {other}" for one, other in study.pairs]}, {"pair": str})
    for number, claim in enumerate(study.claims, start=1):
        mistakes += known.rows(claim, f"[[claims]] number {number}", "pair")
    if mistakes:
        raise MistakesError(mistakes)
    return replace(study, model=parts.model_beside(place, study.model), data=parts.beside(place, study.data))
