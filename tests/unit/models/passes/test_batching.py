"""Masked texts are built in portions of bounded size."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

import raison
from raison.core.inputs.encoding import Encoding
from raison.models.passes import batching
from raison.models.passes.batching import TokenBudget
from raison.models.passes.removal import Remover
from raison.models.passes.token_batch import TokenBatch
from tests.tiny import TAGS, TINY, build_at_places

LIMIT = 2000
REMOVERS = (Remover(4, 0), Remover(None, 0))
SHORT, LONG = "a dull plot", " ".join(["not a good plot"] * 12)


def encoded(*texts: str) -> Encoding:
    return raison.load(*TINY["bert"]()).encode(texts)


def random_keeps(encoding: Encoding, *counts: int) -> list[Tensor]:
    draws = torch.Generator().manual_seed(0)
    pairs = zip(counts, encoding.unit_counts, strict=True)
    return [torch.rand(count, units, generator=draws) > 0.5 for count, units in pairs]


class Summed:
    """Stands for a model: two numbers of each row that tell rows apart. Notes what it was given."""

    def __init__(self) -> None:
        self.tables: list[TokenBatch] = []

    def __call__(self, table: TokenBatch) -> Tensor:
        self.tables.append(table)
        places = torch.arange(1, table.ids.shape[1] + 1)
        within = places[None] <= table.lengths[:, None]
        weighted = (table.ids.double().sqrt() * places.double().log1p() * within).sum(1)
        return torch.stack([weighted, table.lengths.double()], 1)


@pytest.mark.parametrize("remover", REMOVERS, ids=["replaced", "deleted"])
def test_a_portion_is_bounded_with_the_padding_to_its_longest_text(
    remover: Remover, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = encoded(SHORT, LONG, SHORT + " too", SHORT + " again")
    keeps = random_keeps(encoding, 40, 2, 30, 1)
    whole, parts = Summed(), Summed()
    expected = batching.masked_logits(encoding, keeps, remover, whole)
    monkeypatch.setattr(batching, "ROWS_IN_MEMORY", LIMIT)
    found = batching.masked_logits(encoding, keeps, remover, parts)
    assert max(table.ids.numel() for table in parts.tables) <= LIMIT < whole.tables[0].ids.numel()
    assert sum(len(table.ids) for table in parts.tables) == sum(map(len, keeps))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_texts_of_similar_length_share_a_portion_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = encoded(*[SHORT, LONG] * 20)
    monkeypatch.setattr(batching, "ROWS_IN_MEMORY", LIMIT)
    model = Summed()
    batching.masked_logits(encoding, random_keeps(encoding, *[5] * 40), REMOVERS[0], model)
    tokens = 5 * sum(encoding.lengths)
    assert len(model.tables) <= -(-tokens // LIMIT) + 1


@pytest.mark.parametrize("remover", REMOVERS, ids=["replaced", "deleted"])
def test_equal_rows_of_a_text_that_is_named_often_are_run_once_whatever_fits_into_memory(
    remover: Remover, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = 7
    encoding = encoded(*[LONG] * named, SHORT)
    [shared, own] = random_keeps(encoding.select([0, named]), 30, 5)
    # The texts have most keeps in common, in different orders, and some of their own.
    others = random_keeps(encoding.select(range(named)), *[1] * named)
    keeps = [torch.cat([shared.roll(text, 0), others[text]]) for text in range(named)] + [own]
    expected = [
        batching.masked_logits(encoding.select([t]), [rows], remover, Summed())[0] for t, rows in enumerate(keeps)
    ]
    monkeypatch.setattr(batching, "ROWS_IN_MEMORY", LIMIT)
    model = Summed()
    found = batching.masked_logits(encoding, keeps, remover, model)
    assert len(model.tables) > 1
    assert sum(len(table.ids) for table in model.tables) <= 30 + 5 + len(torch.cat(others).unique(dim=0))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_rows_that_are_read_at_several_places_are_run_once_whatever_fits_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = raison.load(*build_at_places("bert", AutoModelForTokenClassification, TAGS))
    encoding = model.encode([LONG, SHORT]).select([0, 0, 0, 1])
    assert encoding.spans is not None
    encoding = replace(encoding, spans=encoding.spans + torch.arange(4)[:, None])
    keeps = random_keeps(encoding, 1, 1, 1, 4)
    keeps[:3] = [random_keeps(encoding.select([0]), 20)[0]] * 3
    expected = [model.masked_logits(encoding.select([t]), [rows], model.removals[0])[0] for t, rows in enumerate(keeps)]
    ran = []
    run_table = batching.run_table

    def noted(table: TokenBatch, budget: TokenBudget, forward: Callable[[TokenBatch], Tensor]) -> Tensor:
        ran.append(len(table.ids))
        return run_table(table, budget, forward)

    monkeypatch.setattr(batching, "ROWS_IN_MEMORY", LIMIT)
    monkeypatch.setattr(batching, "run_table", noted)
    found = model.masked_logits(encoding, keeps, model.removals[0])
    assert len(ran) > 1
    assert sum(ran) <= 20 + 4
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found[0], found[1])
