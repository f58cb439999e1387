import numpy as np
import pytest
import torch

from raison.numerics.gradients import nearest
from raison.numerics.gradients.nearest import nearest_rows, squared_lengths


@pytest.mark.parametrize(("block", "numbers"), [(8192, 1 << 24), (7, 1 << 24), (8192, 60), (7, 60)])
@pytest.mark.parametrize("count", [1, 5, 39, 100])
def test_equals_sorted_distances(monkeypatch, count, block, numbers):
    monkeypatch.setattr(nearest, "BLOCK", block)
    monkeypatch.setattr(nearest, "NUMBERS", numbers)
    table = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 6)))
    wanted = torch.tensor([3, 39, 0, 3])
    lengths = squared_lengths(lambda ids: table[ids], 40)
    found = nearest_rows(lambda ids: table[ids], lengths, wanted, count)
    assert found.shape == (4, min(count, 39))
    for row, word in zip(found.tolist(), wanted.tolist(), strict=True):
        distances = {other: float((table[other] - table[word]).norm()) for other in range(40) if other != word}
        assert row == sorted(distances, key=distances.get)[:count]


def test_nothing_wanted():
    table = torch.eye(3)
    lengths = squared_lengths(lambda ids: table[ids], 3)
    assert nearest_rows(lambda ids: table[ids], lengths, torch.zeros(0, dtype=torch.long), 2).shape == (0, 2)
