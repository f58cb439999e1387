"""Settings that are frozen dataclasses, read from a table of a study file by their own fields and types."""

import dataclasses
from collections.abc import Mapping
from typing import Any

OWN = ("seed", "progress")
"""Settings that the study decides."""


def make(settings: type, values: Mapping[str, Any], seed: int = 0, progress: bool = False) -> Any:
    """Settings from a file's values, lists as tuples. Raises RaisonError for invalid values."""
    plain = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return decided(settings(**plain), seed, progress)


def decided(settings: Any, seed: int, progress: bool = False) -> Any:
    """The settings with the values that the study decides, if they have these fields."""
    names = {field.name for field in dataclasses.fields(settings)}
    study = {"seed": seed, "progress": progress}
    return dataclasses.replace(settings, **{name: value for name, value in study.items() if name in names})


def as_values(settings: Any) -> dict[str, Any]:
    """The given settings as plain JSON values, without those that the study decides."""
    known = dataclasses.asdict(settings)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in known.items() if key not in OWN}
