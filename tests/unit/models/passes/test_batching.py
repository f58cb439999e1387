"""Masked texts are built in portions of bounded size."""

import pytest
import torch
from torch import Tensor

import raison
from raison.core.inputs.encoding import Encoding
from raison.models.passes import batching
from raison.models.passes.removal import Remover
from raison.models.passes.token_batch import TokenBatch
from tests.tiny import TINY

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
