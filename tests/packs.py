"""Rows that share beginnings, run packed and each alone, on models of every kind."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import AutoModel, BloomConfig, PreTrainedModel, Qwen3Config

from raison.models.passes.prefixes.packing import PackedReader
from raison.models.stack.hooks import hooked
from tests.tiny import LANGUAGE_MODELS, TINY


def seeded(build: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """The same weights every time, large enough to make a difference."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = build()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.copy_(0.3 * torch.randn_like(parameter))
    return model.eval()


def qwen_mix() -> PreTrainedModel:
    """Layers with and without a sliding window in one model: it takes one mask per kind."""
    config = Qwen3Config(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
        num_hidden_layers=3,
        vocab_size=64,
        max_position_embeddings=128,
        use_sliding_window=True,
        sliding_window=4,
        max_window_layers=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    assert set(config.layer_types) == {"full_attention", "sliding_attention"}
    return seeded(lambda: AutoModel.from_config(config))


def bloom() -> PreTrainedModel:
    """Positions by a bias on attention: it is never packed."""
    return seeded(lambda: AutoModel.from_config(BloomConfig(hidden_size=32, n_head=4, n_layer=2, vocab_size=64)))


BASES: dict[str, Callable[[], PreTrainedModel]] = {
    name: lambda name=name: TINY[name]()[0].base_model for name in LANGUAGE_MODELS
} | {"qwen3_mix": qwen_mix}


def forget_prompts(base: PreTrainedModel) -> None:
    """Write to a parameter without changing it: a reader then computes its prompts again."""
    with torch.no_grad():
        next(base.parameters()).add_(0)


def sequences(seed: int, prefix: int, count: int = 14) -> tuple[Tensor, list[Tensor], list[list[int]]]:
    """Random rows that share beginnings, some equal, one the beginning of another, and reads anywhere."""
    rng = random.Random(seed)
    head = torch.tensor([rng.randrange(20) for _ in range(prefix)], dtype=torch.long)
    rows = [[rng.choice((5, 6)) for _ in range(rng.randrange(1, 12))] for _ in range(count)]
    rows += [rows[0], rows[3], [*rows[1], 7, 8, 9], rows[1][:1]]
    if prefix:
        rows.append([])
    reads = [[rng.randrange(prefix + len(row)) for _ in range(rng.randrange(1, 4))] for row in rows]
    reads[0] = []
    reads[-1] = [prefix + len(rows[-1]) - 1] * 2
    return head, [torch.tensor(row, dtype=torch.long) for row in rows], reads


def alone(base: PreTrainedModel, prefix: Tensor, row: Tensor) -> Tensor:
    """A sequence run by itself: no cache, no mask, no positions."""
    with torch.no_grad():
        return base(input_ids=torch.cat([prefix, row])[None], use_cache=False).last_hidden_state[0]


def check(base: PreTrainedModel, reader: PackedReader, prefix: int, seed: int) -> None:
    """Every state that is read equals that of its row alone."""
    head, rows, reads = sequences(seed, prefix)
    found = reader.states(head, rows, reads)
    assert len(found) == len(rows)
    for states, row, wanted in zip(found, rows, reads, strict=True):
        assert states.shape == (len(wanted), base.config.hidden_size)
        assert not states.requires_grad
        torch.testing.assert_close(states, alone(base, head, row)[wanted], atol=2e-5, rtol=2e-5)


@contextmanager
def counted(base: PreTrainedModel) -> Iterator[list[int]]:
    """How many tokens each pass looks up."""
    sizes: list[int] = []

    def add(_module: nn.Module, args: tuple[Tensor, ...], _output: object) -> None:
        sizes.append(args[0].numel())

    # No hook of the caller's: with one, no prompt's states would be stored.
    with hooked([base.get_input_embeddings()], after=add):
        yield sizes
