"""The keys of a study file that all kinds share, and their allowed values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from raison.core.errors import UnknownNameError
from raison.core.fields import REQUIRED, Field, fields_of
from raison.data import Wanted
from raison.studies.entries import StudyData, StudyModel, StudySettings
from raison.training.recipes.scratch_settings import ScratchSettings


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table."""

    kind: ValueKind
    required: bool = False


Keys = Mapping[str, Key]


def keys_of(record: type, without: Sequence[str] = ()) -> dict[str, Key]:
    """The keys of a table whose entries are a record's fields; None is not to be written, but left out."""
    return {
        name: Key(ValueKind(field.words, partial(_fitting, field), field.choices), field.default is REQUIRED)
        for name, field in fields_of(record).items()
        if name not in without
    }


def _fitting(field: Field, value: Any) -> bool:
    return value is not None and value != "" and field.fits(value)


def _whole(value: Any) -> bool:
    # Python takes true for a number.
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(item) for item in value)


def _class(value: Any) -> bool:
    return _text(value) or _whole(value)


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_class(item) for item in value)


TEXT = ValueKind("a text in quotes", _text)
TEXTS = ValueKind("a list of texts in quotes", _list_of(_text))
WHOLE = ValueKind("a whole number", _whole)
COUNT = ValueKind("a whole number from 1 on", lambda value: _whole(value) and value > 0)
NUMBER = ValueKind("a number", lambda value: _whole(value) or isinstance(value, float))
FLAG = ValueKind("true or false", lambda value: isinstance(value, bool))
SIZE = ValueKind('"mini" or "paper"', lambda value: value in ("mini", "paper"))
SEEDS = ValueKind(
    "a list of different whole numbers",
    lambda value: _list_of(_whole)(value) and bool(value) and len(set(value)) == len(value),
)
COLUMN = ValueKind("a column's name or number", _class)
PAIR = ValueKind("a list of two columns", _pair)
TARGET = ValueKind(
    '"predicted", "label", a class, or a list of two classes [this, not that]', lambda v: _class(v) or _pair(v)
)
THAN = ValueKind("a row's label or a number", lambda value: _text(value) or NUMBER.fits(value))
TABLE = ValueKind("a table", lambda value: isinstance(value, dict))
TABLES = ValueKind("a list of tables, each under its own [[...]]", _list_of(TABLE.fits))

COMMON: Keys = {
    "schema": Key(WHOLE, True),
    "kind": Key(TEXT),
    "title": Key(TEXT, True),
    "source": Key(TEXT),
    "reference": Key(TEXT),
    "size": Key(SIZE),
    "about": Key(TEXT),
    "claims": Key(TABLES),
}
"""What every study file may say."""
FIGURE: Keys = {"x": Key(TEXT, True)}
SETTINGS: Keys = keys_of(StudySettings)
MODEL: Keys = keys_of(StudyModel)
MADE: Keys = keys_of(ScratchSettings, without=("progress",)) | {"train": Key(TABLE, True), "held_out": Key(TABLE)}
"""How a study makes a model: its data, and the settings of raison.training.recipes.scratch."""
DATA: Keys = keys_of(StudyData, without=("wanted",)) | keys_of(Wanted, without=("delimiter",))
KNOWN_FEATURES: Keys = {"words": Key(TEXTS), "position": Key(COLUMN), "correlation": Key(NUMBER), "seed": Key(WHOLE)}
RUN: Keys = {"model": Key(TEXT, True), "data": Key(TEXT, True), "without": Key(TEXTS)}
CLAIM: Keys = {
    "says": Key(TEXT, True),
    "metric": Key(TEXT, True),
    "above": Key(TEXT),
    "below": Key(TEXT),
    "than": Key(THAN, True),
    "run": Key(TEXT),
}


def fitting(table: Mapping[str, Any], keys: Keys, where: str) -> tuple[dict[str, Any], list[str]]:
    """The valid entries of a table, and its mistakes, one line each."""
    mistakes = [f"{where}: {UnknownNameError('key', key, keys)}" for key in table if key not in keys]
    fit = {}
    for name, key in keys.items():
        if name not in table:
            if key.required:
                mistakes.append(f"{where}: {name} is missing; give {key.kind.words}.")
        elif key.kind.fits(table[name]):
            fit[name] = table[name]
        elif key.kind.choices and isinstance(table[name], str):
            mistakes.append(f"{where}: {UnknownNameError(name, table[name], key.kind.choices)}")
        else:
            mistakes.append(f"{where}: {name} is {table[name]!r:.80}; give {key.kind.words}.")
    return fit, mistakes
