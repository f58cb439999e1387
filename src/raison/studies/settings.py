"""Settings that are frozen dataclasses, read from a table of a study file by their own fields and types."""

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from raison.core.errors import RaisonError, UnknownNameError

OWN = ("seed", "progress")
"""Settings that the study decides."""


def keys_of(settings: type) -> tuple[str, ...]:
    """What a study file may set."""
    return tuple(field.name for field in dataclasses.fields(settings) if field.name not in OWN)


def make(settings: type, values: Mapping[str, Any], seed: int = 0, progress: bool = False) -> Any:
    """Settings from a file's values, lists as tuples. Raises RaisonError where they cannot be."""
    names = [field.name for field in dataclasses.fields(settings)]
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    own = {key: value for key, value in (("seed", seed), ("progress", progress)) if key in names}
    return settings(**plain, **own)


def as_values(settings: Any) -> dict[str, Any]:
    """What was set, as plain JSON values, without what the study decides."""
    known = dataclasses.asdict(settings)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in known.items() if key not in OWN}


def mistakes_in(settings: type, values: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with a file's values: unknown keys, kinds of values, and what the settings themselves refuse."""
    known = keys_of(settings)
    mistakes = [_unknown(key, known, where) for key in values if key not in known]
    hints = get_type_hints(settings)
    for key, value in values.items():
        if key in known and not _fits(hints[key], value):
            mistakes.append(f"{where}: {key} is {value!r:.80}; give {_words(hints[key])}.")
    if mistakes:
        return mistakes
    try:
        make(settings, values)
    except RaisonError as error:
        return [f"{where}: {error}"]
    return []


def _unknown(key: str, known: tuple[str, ...], where: str) -> str:
    if key in OWN:
        way_out = "seeds = [...] at the top of the file" if key == "seed" else "leave it out"
        return f"{where}: {key} is not set here: {way_out}."
    return f"{where}: {UnknownNameError('key', key, known)}"


def _fits(hint: Any, value: Any) -> bool:
    """Whether a TOML value is of a kind; kinds that TOML does not have are left to the settings themselves."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in get_args(hint) if part is not NoneType)
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(get_args(hint)[0], item) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if hint in (bool, str) else True


def _words(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return " or ".join(_words(part) for part in get_args(hint) if part is not NoneType)
    if origin is Literal:
        return " or ".join(f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in get_args(hint))
    if origin is tuple:
        return f"a list, each entry {_words(get_args(hint)[0])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text in quotes"}.get(
        hint, "another"
    )
