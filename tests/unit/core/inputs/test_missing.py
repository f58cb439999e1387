"""What stands for no value."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from raison.core.inputs.missing import is_missing


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), np.float32("nan"), Decimal("NaN"), np.datetime64("NaT"), pd.NA, pd.NaT],
    ids=repr,
)
def test_none_and_what_does_not_equal_itself(value: object) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, 0.0, "", "nan", False, [], np.zeros(3), np.array([np.nan, 1.0])], ids=repr)
def test_everything_else_is_a_value(value: object) -> None:
    assert not is_missing(value)
