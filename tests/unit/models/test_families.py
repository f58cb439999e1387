"""The facts about families against the models themselves."""

from operator import attrgetter

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    T5Config,
    XLMRobertaConfig,
    XLMRobertaXLConfig,
)
from transformers.activations import ACT2FN

from raison.models.families import UNKNOWN, family_names, family_of
from raison.models.stack.layers import layer_stack
from raison.models.tokens.max_tokens import max_tokens
from tests.tiny import ENCODER_DECODERS, LANGUAGE_MODELS, POSITIONS, TAPPED, TINY

NO_LIMIT = int(1e30)


def used_positions(model: PreTrainedModel, length: int) -> list[int]:
    """Positions of the last hidden states that the head reads, by their gradients."""
    states: list[Tensor] = []

    def keep(_module: nn.Module, _args: object, output: tuple[Tensor, ...]) -> None:
        states.append(output[0])

    handle = model.base_model.register_forward_hook(keep)
    logits = model(input_ids=torch.arange(10, 10 + length)[None]).logits
    handle.remove()
    (gradient,) = torch.autograd.grad(logits[0, 0], states[0])
    return gradient[0].abs().sum(-1).nonzero()[:, 0].tolist()


def test_every_tiny_family_is_known() -> None:
    # Both halves of a T5 are one family.
    assert set(TINY) - {"t5_encoder"} == set(family_names())
    assert all(family_of(TINY[name]()[0]) is not UNKNOWN for name in TINY)


@pytest.mark.parametrize("name", sorted(set(TINY) - {*ENCODER_DECODERS}))
def test_pooling_is_what_the_head_reads(name: str) -> None:
    model, _ = TINY[name]()
    positions = {"first": [0], "last": [8], "mean": list(range(9))}
    assert used_positions(model, 9) == positions[family_of(model).pools]


def test_the_language_models_are_those_that_read_from_left_to_right() -> None:
    found = []
    for name in set(TINY) - {*ENCODER_DECODERS}:
        base = TINY[name]()[0].base_model
        with torch.no_grad():
            one, other = (base(input_ids=torch.tensor([[10, 11, last]])).last_hidden_state for last in (12, 13))
        if torch.equal(one[:, 0], other[:, 0]):
            found.append(name)
    assert sorted(found) == sorted(LANGUAGE_MODELS)


def test_modernbert_pooling_is_a_setting() -> None:
    model, _ = TINY["modernbert"]()
    model.config.classifier_pooling = "mean"
    assert family_of(model).pools == "mean"
    assert used_positions(model, 9) == list(range(9))


@pytest.mark.parametrize("name", sorted(set(TINY) - {*ENCODER_DECODERS, "t5_encoder", "xlnet"}))
def test_the_limit_is_the_model_s_own(name: str) -> None:
    model, _ = TINY[name]()
    limit = max_tokens(model.config, NO_LIMIT)
    assert limit == POSITIONS
    model(input_ids=torch.full((1, limit), 20))
    if name in ("bert", "roberta", "distilbert", "electra", "gpt2"):
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, limit + 1), 20))


def test_the_smaller_limit_counts() -> None:
    config = BertConfig(max_position_embeddings=64)
    assert max_tokens(config, 32) == 32
    assert max_tokens(config, 512) == 64
    assert max_tokens(T5Config(), NO_LIMIT) is None
    assert max_tokens(T5Config(n_positions=512), NO_LIMIT) is None
    assert max_tokens(T5Config(), 512) == 512


def test_position_offset_follows_the_padding_id() -> None:
    assert max_tokens(RobertaConfig(max_position_embeddings=514), NO_LIMIT) == 512
    assert max_tokens(RobertaConfig(max_position_embeddings=514, pad_token_id=0), NO_LIMIT) == 513
    assert max_tokens(MPNetConfig(max_position_embeddings=514, pad_token_id=0), NO_LIMIT) == 512


def test_unknown_types_get_the_default() -> None:
    class Novel(PreTrainedConfig):
        model_type = "novel"

    assert family_of(Novel()) == UNKNOWN
    assert max_tokens(Novel(max_position_embeddings=40), NO_LIMIT) == 40
    assert max_tokens(Novel(), NO_LIMIT) is None


def test_parts_are_where_the_families_say() -> None:
    """Every name of every family leads to a module; test_decomposition.py checks that they are all."""
    named = [name for name in sorted(TINY) if family_of(TINY[name]()[0]).parts is not None]
    # These have two stacks, or an attention that cannot be read; every other family is known.
    assert named == sorted(set(TAPPED) - {*ENCODER_DECODERS})
    for name in named:
        model, _ = TINY[name]()
        parts = family_of(model).parts
        assert parts is not None
        layer = layer_stack(model)[0]
        for path in (parts.attention_norm, parts.value.name, parts.output.name, parts.mlp_norm, parts.activation):
            assert isinstance(attrgetter(path)(layer), nn.Module)
        for piece in (parts.inner, parts.outer, parts.gate):
            assert piece is None or isinstance(attrgetter(piece.name)(layer), nn.Module)
        assert all(isinstance(attrgetter(path)(model), nn.Module) for path in parts.head if path not in ACT2FN)


def test_relatives_whose_modules_differ_share_no_parts() -> None:
    assert family_of(XLMRobertaXLConfig()).parts is None
    assert family_of(RobertaConfig(pad_token_id=None)).parts is not None
    assert family_of(RobertaConfig()).parts == family_of(XLMRobertaConfig()).parts


def test_a_gate_is_a_setting_of_t5() -> None:
    plain, gated = (
        family_of(T5Config(feed_forward_proj=kind, is_encoder_decoder=False)).parts for kind in ("relu", "gated-gelu")
    )
    assert plain is not None
    assert plain.gate is None
    assert gated is not None
    assert gated.gate is not None
