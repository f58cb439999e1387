"""How many subsets of a text are evaluated where the caller does not say."""

from typing import Annotated

from raison.core.settings.fields import Setting

PER_UNIT = 4
MORE = 128
FORMULA = f"{PER_UNIT} n + {MORE}"
"""The usual number for a text of n units, in the formulas of passes."""
IN_WORDS = f"{PER_UNIT} per unit and {MORE}"

Samples = Annotated[
    int | None,
    Setting(least=2, words=f"a whole number of at least 2, the full text included, or None for {IN_WORDS}"),
]
"""Evaluations of a text. None is the usual number."""


def usual_samples(units: int) -> int:
    """The number of evaluations for a text of `units` units."""
    return PER_UNIT * units + MORE
