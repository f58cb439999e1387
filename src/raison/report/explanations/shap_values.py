"""An explanation as shap.Explanation, for shap's own plots."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from raison.core.errors import DataError
from raison.core.inputs.unit import segments
from raison.core.results.explanation import Explanation


def to_shap(e: Explanation) -> Any:
    """The scores as `values` above `base_values`, the value of the fully removed text.

    Together they sum to the value of the whole text if a method's scores add up, as Shapley values do. Each unit's
    `data` are its characters with those up to the next unit, so that shap's text plot reads like the text; characters
    before the first unit belong to it. Raises DataError if shap is missing.
    """
    if find_spec("shap") is None:
        raise DataError("to_shap needs shap: pip install shap.")
    import shap

    return shap.Explanation(
        values=np.array(e.scores),
        base_values=np.float64(e.value_empty),
        data=np.array(_shown(e), dtype=object),
        feature_names=[unit.label for unit in e.units],
    )


def _shown(e: Explanation) -> list[str]:
    """The text cut at the beginnings of units."""
    strings = segments(e.text)
    pieces = []
    for number, unit in enumerate(e.units):
        before = e.units[number - 1] if number else None
        after = e.units[number + 1] if number + 1 < len(e.units) else None
        string = strings[unit.segment]
        start = 0 if before is None or before.segment != unit.segment else unit.start
        last = after is None or after.segment != unit.segment
        end = len(string) if last else e.units[number + 1].start
        pieces.append(string[start:end] + (" " if last and after is not None else ""))
    return pieces
