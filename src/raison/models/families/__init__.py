"""Facts about architectures, one file per family, found by folder discovery.

A file defines FAMILY. Where a fact depends on a model's settings, it also defines `configure(config) -> Family`.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from transformers import PreTrainedConfig, PreTrainedModel

from raison.core.errors import InputError, RaisonError
from raison.core.registry import imported, path_of

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


@dataclass(frozen=True, slots=True)
class _Known:
    """What the folder has: for each model type what makes its family, by the files that name the type; and a line for
    each file that cannot be used."""

    configures: dict[str, dict[str, Callable[[PreTrainedConfig], Family]]]
    broken: tuple[str, ...]


def family_of(model_or_config: PreTrainedModel | PreTrainedConfig) -> Family:
    """The facts about a model, by its config's model_type; UNKNOWN for a type that no file knows.

    Raises InputError for a type that two files name, and for one that no file knows while a file cannot be used: the
    type may be that file's.
    """
    config = model_or_config if isinstance(model_or_config, PreTrainedConfig) else model_or_config.config
    known = _known()
    named = known.configures.get(config.model_type, {})
    if len(named) > 1:
        raise InputError(
            f"the model type '{config.model_type}' belongs to one family, and {' and '.join(named)} name it: remove it "
            "from one of them."
        )
    if not named and known.broken:
        raise InputError(f"which family the model type '{config.model_type}' has is unknown: {known.broken[0]}")
    return next((configure(config) for configure in named.values()), UNKNOWN)


def family_names() -> tuple[str, ...]:
    """The names of the families: their files' names."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def _known() -> _Known:
    configures: dict[str, dict[str, Callable[[PreTrainedConfig], Family]]] = {}
    broken = []
    for name in family_names():
        module = f"{__name__}.{name}"
        try:
            found = vars(imported(module))
        except RaisonError as error:
            broken.append(str(error))
            continue
        family = found.get("FAMILY")
        if not isinstance(family, Family):
            broken.append(f"{path_of(module)} has no family: a file of this folder has a constant FAMILY, a Family.")
            continue
        for model_type in family.model_types:
            configures.setdefault(model_type, {})[path_of(module)] = found.get("configure", _constant(family))
    return _Known(configures, tuple(broken))


def _constant(family: Family) -> Callable[[PreTrainedConfig], Family]:
    return lambda _config: family
