"""Figures over models: the study's settings, and each model's position."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Axis = Literal["parameters", "model"]
AXES: tuple[Axis, ...] = get_args(Axis)
"""Values of [figure] x: lines over the models' numbers of parameters, or grouped bars."""


@dataclass(frozen=True, slots=True)
class FiguredModel:
    """A model in a figure; `parameters` is None if its size is unknown."""

    name: str
    parameters: int | None = None


def axis_of(file: Mapping[str, Any]) -> Axis | None:
    """The request of a parsed study file; None if it has no [figure]."""
    figure = file.get("figure", {})
    x = figure.get("x") if isinstance(figure, dict) else None
    return x if x in AXES else None


def parameter_count(parameters: int) -> str:
    """An abbreviated number of parameters: "110M"."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if parameters >= size:
            return f"{parameters / size:.3g}{letter}"
    return str(parameters)
