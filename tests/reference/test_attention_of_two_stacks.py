"""Attention methods on encoder-decoders, from the formulas and with the attentions that transformers returns."""

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention_layers import AttentionLayers
from raison.core.capabilities.passes import Passes
from tests.reference.test_attention_flow import augmented, network
from tests.reference.test_generation import per_unit
from tests.reference.test_generation_encoder_decoder import owners_of
from tests.tiny import ENCODER_DECODERS, WRITERS, build, build_writer

TEXT, OUTPUT = "the old sailor told a story", "a modest story"


@dataclass
class Plain:
    """One pass of a copy of a model under eager attention: mean attentions, and what a gradient is asked of."""

    outputs: object
    value: torch.Tensor
    read: int
    """The decoder's position that the value is read at."""

    @property
    def stacks(self):
        """The encoder's attention, the decoder's own, and that from the decoder to the encoder: (heads, query, key)."""
        found = (self.outputs.encoder_attentions, self.outputs.decoder_attentions, self.outputs.cross_attentions)
        return [list(stack) for stack in found]

    @property
    def means(self):
        return [[layer[0].mean(0).detach().double() for layer in stack] for stack in self.stacks]

    def weighted(self):
        """Means over heads of what is positive in attention times its gradient."""
        flat = [layer for stack in self.stacks for layer in stack]
        slopes = torch.autograd.grad(self.value, flat, allow_unused=True)
        whole = [
            (torch.zeros_like(layer) if slope is None else slope * layer)[0].relu().mean(0).detach().double()
            for layer, slope in zip(flat, slopes, strict=True)
        ]
        count = len(self.stacks[0])
        depth = len(self.stacks[1])
        return whole[:count], whole[count : count + depth], whole[count + depth :]


def eager(model):
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    return own


def classified(model, ids):
    outputs = eager(model)(input_ids=torch.tensor([ids]), output_attentions=True)
    return Plain(outputs, outputs.logits[0].double()[int(outputs.logits[0].argmax())], len(ids) - 1)


def written(model, source, before, token):
    given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([before])}
    outputs = eager(model)(**given, output_attentions=True)
    return Plain(outputs, outputs.logits[0, -1].double()[token], len(before) - 1)


def identity(layer):
    return torch.eye(len(layer), dtype=torch.float64)


def rollout(plain, residual=True):
    """From the position that is read to the encoder's and to the decoder's tokens."""
    encoder, own, across = plain.means
    share = 0.5 if residual else 0.0
    inner = identity(encoder[0])
    for layer in encoder:
        inner = ((1 - share) * layer + share * identity(layer)) @ inner
    to_text, to_own = torch.zeros_like(across[0]), identity(own[0])
    for layer, cross in zip(own, across, strict=True):
        mixing = (1 - share) * layer + share * identity(layer)
        to_text, to_own = mixing @ to_text, mixing @ to_own
        to_text, to_own = (1 - share) * cross @ inner + share * to_text, share * to_own
    return to_text[plain.read], to_own[plain.read]


def last(plain):
    return plain.means[2][-1][plain.read], torch.zeros(len(plain.means[1][0]), dtype=torch.float64)


def average(plain):
    """Over the layers that each position attends in, and over all positions."""
    encoder, own, across = plain.means
    count = len(encoder[0]) + len(own[0])
    to_text = sum(layer.sum(0) for layer in encoder) / len(encoder)
    to_text = to_text + sum(layer.sum(0) for layer in across) / (2 * len(own))
    return to_text / count, sum(layer.sum(0) for layer in own) / (2 * len(own)) / count


def normalised(relevance):
    """Equations 8 and 9."""
    came = relevance - identity(relevance)
    total = came.sum(-1, keepdim=True)
    return torch.where(total > 0, came / total, 0) + identity(relevance)


def generic(plain):
    """Chefer et al. 2021, equations 5 to 10, the encoder first, then each layer of the decoder."""
    encoder, own, across = plain.weighted()
    inner = identity(encoder[0])
    for layer in encoder:
        inner = inner + layer @ inner
    to_own, to_text = identity(own[0]), torch.zeros_like(across[0])
    for layer, cross in zip(own, across, strict=True):
        to_own, to_text = to_own + layer @ to_own, to_text + layer @ to_text
        to_text = to_text + normalised(to_own).T @ cross @ normalised(inner)
    return to_text[plain.read], (to_own - identity(to_own))[plain.read]


METHODS = {
    "attention_rollout": rollout,
    "attention_rollout(residual=False)": lambda plain: rollout(plain, residual=False),
    "attention_last": last,
    "attention_average": average,
    "generic_attention": generic,
}


@pytest.mark.in_turn(len(METHODS))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRITERS)
def test_what_a_writer_attends_to(name, method):
    model, tokenizer = build_writer(name)
    generator = raison.load(model, tokenizer)
    source = generator.prompt(TEXT)
    output = generator.output(source, OUTPUT)[0].ids
    start = list(source.ids[source.border :])
    found = raison.explain(generator, TEXT, method, output=OUTPUT, unit="token", of="logit", earlier=True)
    own = slice(source.added, source.text_end)
    for number, token in enumerate(output):
        plain = written(model, list(source.ids[: source.border]), start + list(output[:number]), token)
        to_text, to_own = METHODS[method](plain)
        expected = [
            *per_unit(to_text[own], owners_of(tokenizer, TEXT, found.units[: len(found.scores[0])])),
            *to_own[len(start) :].tolist(),
        ]
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_a_classifier_reads_a_text_with_both_stacks(name, method):
    model, tokenizer = build(name)
    texts = [TEXT, "a dull plot"]
    found = raison.explain(raison.load(model, tokenizer), texts, method, unit="token", of="logit")
    for text, e in zip(texts, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        to_text, to_own = METHODS[method](classified(model, ids))
        # The decoder's tokens are the text's, behind its start token.
        expected = to_text + torch.cat([to_own[1:], torch.zeros(1, dtype=torch.float64)])
        special = tokenizer(text, return_special_tokens_mask=True)["special_tokens_mask"]
        own = per_unit(expected[torch.tensor(special) == 0], owners_of(tokenizer, text, e.units))
        np.testing.assert_allclose(e.scores, own, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_flow_between_two_stacks(name):
    """Levels of the network are layers of either stack; the other's positions let pass what they have."""
    model, tokenizer = build(name)
    [e] = raison.explain(raison.load(model, tokenizer), ["a dull plot"], "attention_flow", unit="token")
    ids = tokenizer("a dull plot")["input_ids"]
    encoder, own, across = classified(model, ids).means
    count = len(ids)
    layers = [torch.block_diag((layer + identity(layer)) / 2, identity(own[0])) for layer in encoder]
    for layer, cross in zip(own, across, strict=True):
        layers.append(torch.block_diag(identity(layer), (layer + identity(layer)) / 2))
        both = torch.block_diag(identity(layer), identity(layer) / 2)
        both[count:, :count] = cross / 2
        layers.append(both)
    rows = [0.0] * (2 * count - 1) + [1.0]
    capacity = network([layer.tolist() for layer in layers], rows)
    special = tokenizer("a dull plot", return_special_tokens_mask=True)["special_tokens_mask"]
    expected = [
        sum(augmented(capacity, "in", (0, place)) for place in (token, count + token + 1))
        for token in range(count)
        if not special[token]
    ]
    own = per_unit(torch.tensor(expected), owners_of(tokenizer, "a dull plot", e.units))
    assert e.scores == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_padding_of_both_stacks_counts_for_nothing(name):
    model, tokenizer = build(name)
    loaded = raison.load(model, tokenizer)
    encoding = loaded.encode([TEXT, "a dull plot"], "token")
    attention = loaded.ask(AttentionLayers)
    positions = attention.positions(encoding)
    assert positions.present.sum(1).tolist() == [2 * length for length in encoding.lengths]
    with torch.no_grad(), attention.recorded() as records:
        loaded.ask(Passes).logits(encoding)
    depth = model.config.num_hidden_layers
    assert len(records.blocks) == 3 * depth
    width = positions.present.shape[1]
    whole = sum(block.placed(block.probabilities.mean(1), width) for block in records.blocks)
    inside = whole[1][positions.present[1]]
    assert inside[:, ~positions.present[1]].abs().max() < 1e-6
