"""Hidden states over batches of bounded size: every layer but the embeddings, own tokens only, and out of memory."""

import pytest
import torch

from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.inputs.encoding import Encoding
from raison.models.adapters.classifier import Classifier
from raison.models.passes.batching import TokenBudget
from raison.models.passes.hidden_states import LayerMeans, hidden_states
from raison.models.passes.token_batch import TokenBatch
from tests.tiny import TINY
from tests.toys import TEXTS, Linear


def encoding() -> Encoding:
    return Linear().encode(TEXTS, "word")


def layers(batch: TokenBatch) -> tuple[torch.Tensor, ...]:
    """Layer l of a token with id t is (t, t^2) + l."""
    ids = batch.ids.double()
    states = torch.stack([ids, ids**2], -1)
    return (states + 1, states + 2, states + 6)


def test_mean_over_layers_in_the_order_of_the_texts() -> None:
    found = hidden_states(encoding(), TokenBudget(8), layers)
    assert len(found) == len(TEXTS)
    for text, states in enumerate(found):
        ids = encoding().input_ids[text, : encoding().lengths[text]].float()
        assert states.dtype == torch.float32
        torch.testing.assert_close(states, torch.stack([ids, ids**2], -1) + 3)


def test_out_of_memory_halves_the_batch() -> None:
    sizes = []

    def small(batch: TokenBatch) -> tuple[torch.Tensor, ...]:
        sizes.append(len(batch.ids))
        if len(batch.ids) > 1:
            raise torch.OutOfMemoryError
        return layers(batch)

    budget = TokenBudget(1000)
    found = hidden_states(encoding(), budget, small)
    assert max(sizes) > 1
    assert budget.tokens < 1000
    for one, other in zip(found, hidden_states(encoding(), TokenBudget(1000), layers), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", sorted(TINY))
def test_they_are_those_that_transformers_gives_and_leave_no_hook(name: str) -> None:
    net, tokenizer = TINY[name]()
    model = Classifier(net, tokenizer, name)
    batch = model.passes.batch_of(model.encode(["a dull plot , but the end is good", "a quiet film"], "word"))
    with torch.no_grad():
        found = LayerMeans(model.passes.network, model.budget).layers(batch)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
    reader = net.get_encoder() if net.config.is_encoder_decoder else net.base_model
    with torch.no_grad():
        expected = reader(**model.passes.network.inputs(batch), output_hidden_states=True).hidden_states[1:]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_no_gradients() -> None:
    scale = torch.ones(1, dtype=torch.float64, requires_grad=True)
    found = hidden_states(encoding(), TokenBudget(100), lambda batch: tuple(scale * layer for layer in layers(batch)))
    assert not any(states.requires_grad for states in found)


def test_toys_have_them_too() -> None:
    toy = Linear()
    found = toy.ask(HiddenStates).hidden_states(encoding())
    assert [len(states) for states in found] == list(encoding().lengths)
    torch.testing.assert_close(found[0], 2 * toy.embed(encoding())[0, : len(found[0])].float())
