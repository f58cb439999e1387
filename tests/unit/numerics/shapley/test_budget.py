"""The usual number of evaluations, as a number, as a formula and in words."""

import pytest

from raison.core.settings.fields import fields_of
from raison.methods.kernel_shap import KernelShap
from raison.numerics.shapley.budget import FORMULA, IN_WORDS, usual_samples


@pytest.mark.parametrize("units", [1, 7, 60])
def test_the_formula_gives_the_number(units: int) -> None:
    assert eval(FORMULA.replace(" n", f" * {units}")) == usual_samples(units) == 4 * units + 128
    per_unit, more = (int(word) for word in IN_WORDS.split() if word.isdecimal())
    assert usual_samples(units) == per_unit * units + more


def test_the_words_of_the_setting_say_it() -> None:
    assert fields_of(KernelShap)["samples"].words.endswith(f"or None for {IN_WORDS}")
