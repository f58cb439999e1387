"""What tables write where there is no value."""

import sys
from numbers import Real
from typing import Any, cast


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, or NA or NaT of pandas, which compare as neither true nor false."""
    # Whoever has a value of pandas has imported it.
    pandas = cast("Any", sys.modules.get("pandas"))
    if value is None or (pandas is not None and (value is pandas.NA or value is pandas.NaT)):
        return True
    return isinstance(value, Real) and value != value
