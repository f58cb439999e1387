"""Settings that are frozen dataclasses, read from a table of a study file by their own fields and types."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from raison.core.errors import MISTAKE, RaisonError
from raison.studies import schema

OWN = ("seed", "progress")
"""Settings that the study decides."""


def keys_of(settings: type) -> tuple[str, ...]:
    """What a study file may set."""
    return tuple(field.name for field in dataclasses.fields(settings) if field.name not in OWN)


def make(settings: type, values: Mapping[str, Any], seed: int = 0, progress: bool = False) -> Any:
    """Settings from a file's values, lists as tuples. Raises RaisonError where they cannot be."""
    names = [field.name for field in dataclasses.fields(settings)]
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    decided = {key: value for key, value in (("seed", seed), ("progress", progress)) if key in names}
    return settings(**plain, **decided)


def as_values(settings: Any) -> dict[str, Any]:
    """What was set, as plain JSON values, without what the study decides."""
    known = dataclasses.asdict(settings)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in known.items() if key not in OWN}


def mistakes_in(settings: type, values: Mapping[str, Any], where: str) -> list[str]:
    """What is wrong with a file's values: unknown keys, kinds of values, and what the settings themselves refuse."""
    known = schema.keys_of(settings, OWN)
    mistakes = [_unset(key, where) for key in values if key in OWN]
    mistakes += schema.fitting({key: value for key, value in values.items() if key not in OWN}, known, where)[1]
    if mistakes:
        return mistakes
    try:
        make(settings, values)
    except RaisonError as error:
        return [f"{where}: {line}" for line in str(error).split(MISTAKE)]
    return []


def _unset(key: str, where: str) -> str:
    way_out = "seeds = [...] at the top of the file" if key == "seed" else "leave it out"
    return f"{where}: {key} is not set here: {way_out}."
