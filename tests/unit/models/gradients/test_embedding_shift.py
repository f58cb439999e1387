"""Shifts of word embeddings: drawn uniformly from a ball, the same for an id in every pass, undone afterwards."""

import contextlib

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn

from raison.core.capabilities.embeddings import Shift
from raison.models.gradients import embedding_shift as shifts
from raison.models.gradients.embedding_shift import ball_vector, mean_norm, shifted_tables
from tests.contracts.conftest import TEXTS
from tests.toys import CLS, IDS, MASK, PAD, SEP, UNK, Linear


@pytest.fixture
def table() -> nn.Embedding:
    table = nn.Embedding(20, 6)
    with torch.no_grad():
        table.weight.copy_(torch.randn(20, 6, generator=torch.Generator().manual_seed(3)))
    return table


IDS_ROW = torch.tensor([[3, 7, 3, 0], [5, 7, 19, 0]])


def test_vectors_are_uniform_in_the_ball() -> None:
    """In 3 dimensions radius^3 is uniform in 0..1, and so is each coordinate of the direction in -1..1."""
    vectors = np.stack([ball_vector(0, token, 3) for token in range(4000)])
    radii = np.linalg.norm(vectors, axis=1)
    assert radii.max() <= 1
    assert kstest(radii**3, "uniform").pvalue > 0.01
    for axis in range(3):
        assert kstest(vectors[:, axis] / radii, "uniform", args=(-1, 2)).pvalue > 0.01


def test_a_vector_depends_on_its_draw_and_id_alone() -> None:
    np.testing.assert_array_equal(ball_vector(1, 5, 4), ball_vector(1, 5, 4))
    assert not np.allclose(ball_vector(1, 5, 4), ball_vector(2, 5, 4))
    assert not np.allclose(ball_vector(1, 5, 4), ball_vector(1, 6, 4))


def test_each_id_moves_by_its_own_vector_and_fixed_ids_stay(table: nn.Embedding) -> None:
    radius = 0.5 * table.weight.norm(dim=1).mean().item()
    with shifted_tables([table], Shift(0.5, 2), fixed=[0, 1]), torch.no_grad():
        # Ids that come later, beside known ones, get their vectors, too.
        table(torch.tensor([[7, 4]]))
        moved = table(IDS_ROW)
    for row, ids in enumerate(IDS_ROW.tolist()):
        for column, token in enumerate(ids):
            vector = radius * ball_vector(2, token, 6) if token > 1 else np.zeros(6)
            expected = table.weight[token].detach().numpy() + vector
            np.testing.assert_allclose(moved[row, column].numpy(), expected, atol=1e-6)


def test_mean_norm_is_that_of_what_the_table_gives(table: nn.Embedding, monkeypatch: pytest.MonkeyPatch) -> None:
    """In portions, scaled as some tables do, and without the shifts of contexts around it."""
    monkeypatch.setattr(shifts, "CHUNK", 7)
    plain = table.weight.norm(dim=1).mean().item()
    assert mean_norm(table) == pytest.approx(plain, rel=1e-6)
    with shifted_tables([table], Shift(5.0, 0), fixed=[]):
        assert mean_norm(table) == pytest.approx(plain, rel=1e-6)

    class Scaled(nn.Embedding):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return 3 * super().forward(ids)

    scaled = Scaled(20, 6)
    scaled.load_state_dict(table.state_dict())
    assert mean_norm(scaled) == pytest.approx(3 * plain, rel=1e-6)


def test_nested_contexts_add_up(table: nn.Embedding) -> None:
    first, second = Shift(0.3, 0), Shift(0.2, 1)
    with torch.no_grad():
        plain = table(IDS_ROW)
        with shifted_tables([table], first, fixed=[0]):
            alone = table(IDS_ROW) - plain
            with shifted_tables([table], second, fixed=[0]):
                both = table(IDS_ROW) - plain
            torch.testing.assert_close(table(IDS_ROW) - plain, alone)
        with shifted_tables([table], second, fixed=[0]):
            torch.testing.assert_close(both, alone + table(IDS_ROW) - plain)
    assert alone.abs().max() > 0.01


def test_nothing_is_left_behind(table: nn.Embedding) -> None:
    before, random_state = table.weight.detach().clone(), torch.get_rng_state()
    with contextlib.suppress(KeyError), shifted_tables([table, table], Shift(1.0, 0), fixed=[]):
        table(IDS_ROW)
        raise KeyError
    assert torch.equal(table.weight, before)
    assert torch.equal(table(IDS_ROW), before[IDS_ROW])
    assert not table._forward_hooks
    assert torch.equal(torch.get_rng_state(), random_state)


def test_one_table_named_twice_moves_once(table: nn.Embedding) -> None:
    with torch.no_grad(), shifted_tables([table], Shift(0.5, 0), fixed=[]):
        once = table(IDS_ROW)
    with torch.no_grad(), shifted_tables([table, table], Shift(0.5, 0), fixed=[]):
        torch.testing.assert_close(table(IDS_ROW), once)


def test_gradients_pass_through(table: nn.Embedding) -> None:
    with shifted_tables([table], Shift(0.5, 0), fixed=[]):
        table(IDS_ROW).sum().backward()
    assert torch.equal(table.weight.grad[3], torch.full((6,), 2.0))


def test_half_precision_is_kept(table: nn.Embedding) -> None:
    table.to(torch.bfloat16)
    with shifted_tables([table], Shift(0.5, 0), fixed=[]):
        assert table(IDS_ROW).dtype == torch.bfloat16


def test_toys_move_as_models_do() -> None:
    toy = Linear()
    before = toy.table.clone()
    radius = 0.1 * before.norm(dim=1).mean().item()
    with contextlib.suppress(KeyError), toy.shifted(Shift(0.1, 4)):
        moved = toy.table - before
        assert not moved[[PAD, CLS, SEP, MASK, UNK]].any()
        np.testing.assert_allclose(moved[IDS["film"]], radius * ball_vector(4, IDS["film"], 2), atol=1e-12)
        torch.testing.assert_close(toy.embed(toy.encode(TEXTS, "word")), toy.table[toy.encode(TEXTS, "word").input_ids])
        raise KeyError
    assert torch.equal(toy.table, before)
