"""Facts about architectures, one file per family, found by folder discovery.

A file defines FAMILY. Where a fact depends on a model's settings, it also defines `configure(config) -> Family`.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from transformers import PreTrainedConfig, PreTrainedModel

Pooling = Literal["first", "last", "mean"]


@dataclass(frozen=True, slots=True)
class ProjectionName:
    """A linear module by its dotted name, or one of several equal parts of its outputs."""

    name: str
    part: int = 0
    of: int = 1
    by_head: bool = False
    """Whether the parts are interleaved by head instead of consecutive."""
    bias: str | None = None
    """The dotted name of a bias outside the module."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The places of a layer's parts, by dotted names inside the layer; parts that follow the layers are named inside
    the model."""

    attention_norm: str
    value: ProjectionName
    output: ProjectionName
    mlp_norm: str
    inner: ProjectionName
    """The feed-forward layer's first matrix; with a gate, the one without activation."""
    outer: ProjectionName
    activation: str
    gate: ProjectionName | None = None
    """The feed-forward layer's gate matrix: its activated output multiplies the other one's."""
    norm_first: bool = False
    """Norms come before attention and feed-forward layer instead of after the residual sums."""
    final_norm: str | None = None
    """A norm of all states after the last layer, by its name inside the base model."""
    head: tuple[str, ...] = ()
    """What the sequence classification head does after pooling: names of modules, or tanh and relu for functions."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the library knows about an architecture beyond what every transformers model has in common."""

    model_types: tuple[str, ...]
    """Values of config.model_type."""
    pools: Pooling | None = None
    """Which last hidden states the sequence classification head reads: those of the first token, of the last token
    that is not padding, or the mean over tokens. None: something else, or unknown."""
    position_offset: int = 0
    """Rows of the position table, counted in config.max_position_embeddings, that no token can use."""
    parts: Parts | None = None
    """Where the parts of the layers are; None: unknown, or not the usual two sublayers."""
    longest: int | None = None
    """Number of tokens beyond which its attention changes; None: no such limit."""
    order: tuple[int, ...] = ()
    """The module that each layer runs, if modules run more than once; empty: each once, in order."""
    tokens_first: bool = False
    """Whether the first axis of its embeddings is the tokens, before the texts."""
    turned_inside: bool = False
    """Whether its linear layers get tensors whose first axis is tokens or distances instead of texts."""
    hidden_attention: str | None = None
    """Why its attention cannot be read, if known: a clause about "its attention"."""


UNKNOWN = Family(model_types=())
"""The default for unknown model types: every position is usable, and the pooling is unknown."""


def family_of(model_or_config: PreTrainedModel | PreTrainedConfig) -> Family:
    """The facts about a model, by its config's model_type; UNKNOWN for a type that no file knows."""
    config = model_or_config if isinstance(model_or_config, PreTrainedConfig) else model_or_config.config
    configure = _by_model_type().get(config.model_type)
    return UNKNOWN if configure is None else configure(config)


def family_names() -> tuple[str, ...]:
    """The names of the families: their files' names."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def _by_model_type() -> dict[str, Callable[[PreTrainedConfig], Family]]:
    configures: dict[str, Callable[[PreTrainedConfig], Family]] = {}
    for name in family_names():
        module = vars(importlib.import_module(f"{__name__}.{name}"))
        family: Family = module["FAMILY"]
        for model_type in family.model_types:
            configures[model_type] = module.get("configure", _constant(family))
    return configures


def _constant(family: Family) -> Callable[[PreTrainedConfig], Family]:
    return lambda _config: family
