"""What tables write where there is no value."""

import sys
from typing import Any, cast

import numpy as np


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NA of pandas, or what does not equal itself, as NaN and NaT."""
    # Whoever has a value of pandas has imported it.
    pandas = cast("Any", sys.modules.get("pandas"))
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    differs: Any = value != value
    # The values of an array differ one by one.
    return isinstance(differs, bool | np.bool_) and bool(differs)
