"""Models whose output depends on padding are found, and run rows of different lengths apart."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, ConvBertConfig

import raison
from raison.core.capabilities.passes import Passes
from raison.models.adapters.classifier import Classifier
from raison.models.passes.token_batch import TokenBatch
from raison.models.passes.unpadded import apart, is_known, padding_matters
from raison.models.stack.tap import tap
from tests.tiny import SMALL, TINY, build

BATCH = TokenBatch(torch.arange(12).reshape(2, 6), torch.zeros(2, 6, dtype=torch.long), torch.tensor([2, 6]))


def masked_sum(batch: TokenBatch) -> Tensor:
    inside = torch.arange(batch.ids.shape[1]) < batch.lengths[:, None]
    return (batch.ids * inside).sum(1, keepdim=True).float()


def whole_sum(batch: TokenBatch) -> Tensor:
    return batch.ids.sum(1, keepdim=True).float()


def states(batch: TokenBatch) -> Tensor:
    return batch.ids[..., None].float()


def pairs(batch: TokenBatch) -> Tensor:
    return batch.ids[:, :, None].float() * torch.ones(batch.ids.shape[1])


def total(batch: TokenBatch) -> Tensor:
    return batch.ids.sum().float()


def wide(batch: TokenBatch) -> Tensor:
    if batch.ids.shape[1] < 4:
        raise RuntimeError("kernel size can't be greater than the input")
    return whole_sum(batch)


@pytest.mark.parametrize(
    ("run", "matters"),
    [(masked_sum, False), (whole_sum, True), (states, False), (pairs, False), (total, False), (wide, False)],
)
def test_padding_matters_where_the_shortest_row_differs(run: Callable[[TokenBatch], Tensor], matters: bool) -> None:
    assert padding_matters(run, BATCH) is matters


def test_rows_of_one_length_run_together_and_come_back_in_order() -> None:
    batch = TokenBatch(torch.arange(24).reshape(4, 6), torch.zeros(4, 6, dtype=torch.long), torch.tensor([2, 6, 2, 5]))
    seen = []

    def read(rows: TokenBatch, embeds: Tensor | None) -> Tensor:
        assert rows.mask is None
        seen.append(len(rows.ids))
        return rows.ids[:, :1].float() if embeds is None else embeds[:, 0, :1]

    assert apart(read, batch, None, batch.lengths).flatten().tolist() == [0, 6, 12, 18]
    assert apart(read, batch, states(batch), batch.lengths).flatten().tolist() == [0, 6, 12, 18]
    assert seen == [2, 1, 1] * 2


def test_choices_among_positions_and_places_behind_a_shorter_row() -> None:
    def read(rows: TokenBatch, _embeds: Tensor | None) -> Tensor:
        width = rows.ids.shape[1]
        return torch.ones(len(rows.ids), width, width)

    found = apart(read, BATCH, None, BATCH.lengths)
    assert found.shape == (2, 6, 6)
    assert found[0, 0].tolist() == [1, 1, *[-torch.inf] * 4]
    assert found[0, 3, :2].tolist() == [0, 0]


def padded() -> Classifier:
    _, tokenizer = build("bert")
    config = ConvBertConfig(vocab_size=len(tokenizer), embedding_size=SMALL["hidden_size"], num_labels=2, **SMALL)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 0, 0.2)
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def test_a_pass_that_is_watched_stays_one() -> None:
    model = padded()
    encoding = model.encode(["dull", "a quiet film with a good end"])
    apart = model.ask(Passes).logits(encoding)
    with tap(model.core) as records, torch.no_grad():
        model.ask(Passes).logits(encoding)
    assert len(records.probabilities[0]) == 2
    alone = torch.cat([model.ask(Passes).logits(encoding.select([row])) for row in range(2)])
    torch.testing.assert_close(apart, alone)


def test_a_known_architecture_is_transformers_own() -> None:
    model, _ = TINY["bert"]()

    class Averaging(type(model)):  # type: ignore[misc]
        """A head of its own may read the padding."""

    assert is_known(model)
    assert not is_known(Averaging(model.config))
    assert not is_known(padded().core)
