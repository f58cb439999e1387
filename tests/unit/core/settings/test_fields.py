"""What the fields of settings may hold."""

import pytest

from raison.core.errors import InputError
from raison.methods import CATALOGUE


@pytest.mark.parametrize("number", [2**63, -(2**63), 10**400], ids=["just", "below", "far"])
def test_a_whole_number_is_one_of_64_bits(number: int) -> None:
    with pytest.raises(InputError, match=r"samples of kernel_shap cannot be a number beyond 9,223,.*: give a whole nu"):
        CATALOGUE.create(f"kernel_shap(samples={number})")
    assert CATALOGUE.create(f"kernel_shap(samples={2**63 - 1})")
