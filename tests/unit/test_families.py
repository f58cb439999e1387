"""The facts about families against the models themselves."""

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, MPNetConfig, PreTrainedConfig, PreTrainedModel, RobertaConfig, T5Config

from raison.models.families import UNKNOWN, family_names, family_of
from raison.models.limits import max_tokens
from tests.tiny import POSITIONS, TINY

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


@pytest.mark.parametrize("name", sorted(set(TINY) - {"t5"}))
def test_pooling_is_what_the_head_reads(name: str) -> None:
    model, _ = TINY[name]()
    positions = {"first": [0], "last": [8], "mean": list(range(9))}
    assert used_positions(model, 9) == positions[family_of(model).pools]


def test_modernbert_pooling_is_a_setting() -> None:
    model, _ = TINY["modernbert"]()
    model.config.classifier_pooling = "mean"
    assert family_of(model).pools == "mean"
    assert used_positions(model, 9) == list(range(9))


@pytest.mark.parametrize("name", sorted(set(TINY) - {"t5", "t5_encoder"}))
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
