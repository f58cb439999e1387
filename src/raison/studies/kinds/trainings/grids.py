"""The rows of a study of trainings: [[trainings]] with their grids expanded, and the post-hoc methods."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any

from raison.core.errors import InputError, UnknownNameError
from raison.core.registry import label_of
from raison.core.settings.tables import REST
from raison.methods import CATALOGUE
from raison.studies.kinds.trainings.gains import value_text
from raison.studies.kinds.trainings.records import slug

CONTROL = "random"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """One of [[trainings]]: a row, or with a grid one for each combination of its values. `tasks` None are all."""

    settings: Annotated[Mapping[str, Any], REST]
    name: str = ""
    tasks: tuple[str, ...] | None = None
    grid: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PosthocTable:
    """One of [[posthoc]]. `tasks` None are all."""

    methods: tuple[str, ...]
    tasks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A training on these tasks; `settings` are its own, which override those that all share.

    `controls` are other methods that explain the trained model: they show which effects are not due to its own
    explanation.
    """

    name: str
    settings: Mapping[str, Any]
    tasks: tuple[str, ...]
    controls: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name as part of a path."""
        return slug(self.name)

    def named(self, control: str) -> str:
        """The name of the row of one of its controls."""
        return f"{self.name}: {control}"


@dataclass(frozen=True, slots=True)
class PosthocRow:
    """A method that explains the plain models of these tasks; its label is the row's name."""

    name: str
    tasks: tuple[str, ...]


def training_rows(
    entries: Sequence[TrainingTable], common: Mapping[str, Any], tasks: Sequence[str], controls: Sequence[str] = ()
) -> list[TrainingRow]:
    """One row for each entry, or for each combination of an entry's grid. Raises InputError for a grid or a name.

    Also raises InputError for a control that is no method.
    """
    rows = []
    beside = tuple(label_of(CATALOGUE.create(spec)) for spec in controls)
    for entry in entries:
        for choice in _choices(entry.grid):
            settings = {**common, **entry.settings, **choice}
            rows.append(TrainingRow(_name(entry.name, choice), settings, _among(tasks, entry.tasks), beside))
    return rows


def posthoc_rows(entries: Sequence[PosthocTable], tasks: Sequence[str]) -> list[PosthocRow]:
    """One row for each method, random scores always among them. Raises InputError for an unknown method."""
    rows = [
        PosthocRow(label_of(CATALOGUE.create(spec)), _among(tasks, entry.tasks))
        for entry in entries
        for spec in entry.methods
    ]
    names = [row.name for row in rows]
    return rows if CONTROL in names else [*rows, PosthocRow(CONTROL, tuple(tasks))]


def _among(tasks: Sequence[str], named: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(task for task in tasks if named is None or task in named)


def _choices(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _name(template: str, choice: Mapping[str, Any]) -> str:
    """The name with the grid's values at their places; values without a place are appended."""
    places = _PLACEHOLDER.findall(template)
    for place in places:
        if place not in choice:
            raise InputError(f"in the name '{template}': {UnknownNameError('key of the grid', place, choice)}")
    parts = [template] if template else []
    parts += [f"{key} {value_text(value)}" for key, value in choice.items() if key not in places]
    if not parts:
        raise InputError("name is missing; give the row's name in the tables.")
    return _PLACEHOLDER.sub(lambda match: value_text(choice[match.group(1)]), ", ".join(parts))
