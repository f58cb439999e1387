"""log(1 - p) against decimals with fifty digits."""

from decimal import Decimal, localcontext

import pytest
import torch

from raison.numerics.measures.log_probabilities import log_complement


@pytest.mark.parametrize("value", [-1e-12, -1e-3, -0.69, -0.7, -0.71, -3.0, -40.0])
def test_exact_for_small_and_for_large_probabilities(value: float) -> None:
    with localcontext() as context:
        context.prec = 50
        expected = float((1 - Decimal(value).exp()).ln())
    assert float(log_complement(torch.tensor([value], dtype=torch.float64))) == pytest.approx(expected, rel=1e-12)


def test_what_is_certain_and_what_is_impossible() -> None:
    assert log_complement(torch.tensor([0.0, -torch.inf])).tolist() == [-torch.inf, 0.0]
