"""The library's own copy of the caller's tokenizer, made once and not for every call."""

import copy
import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerBase

from raison.core.errors import LoadError

_UNUSED = ("_tokenizer", "deprecation_warnings")
"""Attributes that are not settings: the backend, which is compared separately, and issued warnings."""
_LARGEST = 1000
"""Maximum size of a container whose entries are compared; for a larger one, such as a vocabulary, only the size is."""
_MODEL_SETTINGS = ("dropout", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges", "continuing_subword_prefix")


@dataclass(frozen=True, slots=True)
class _Copies:
    """Copies of one tokenizer by their use, and the tokenizer's state when they were made."""

    backend: object
    state: Hashable
    by_use: dict[Hashable, PreTrainedTokenizerBase] = field(default_factory=dict)


_COPIES: weakref.WeakKeyDictionary[PreTrainedTokenizerBase, _Copies] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def own_tokenizer(tokenizer: PreTrainedTokenizerBase, use: Hashable = None) -> PreTrainedTokenizerBase:
    """A copy without truncation and padding. A fast tokenizer stores these settings itself; the caller's do not change.

    Copying a large vocabulary takes seconds, so the copy is kept until the tokenizer changes (see `_state`) or is
    deleted. Threads share the copy, and a call with truncation or padding changes it. All calls of one copy must
    therefore use the same settings; code that needs others names another `use` and gets another copy.

    Raises LoadError for a tokenizer without character offsets.
    """
    check_fast(tokenizer)
    with _LOCK:
        backend, state = tokenizer.backend_tokenizer, _state(tokenizer)
        known = _COPIES.get(tokenizer)
        if known is None or known.backend is not backend or known.state != state:
            known = _COPIES[tokenizer] = _Copies(backend, state)
        if use not in known.by_use:
            known.by_use[use] = plain_copy(tokenizer)
        return known.by_use[use]


def check_fast(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise LoadError for a tokenizer that gives no character offsets."""
    if not tokenizer.is_fast:
        raise LoadError(
            f"the tokenizer {type(tokenizer).__name__} gives no character offsets: "
            "load its fast version (AutoTokenizer.from_pretrained(..., use_fast=True)). Tokenizers of bytes and "
            "characters have none: explain such a model as a function."
        )


def plain_copy(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A new copy without truncation and padding; takes seconds for a large vocabulary."""
    copied = copy.deepcopy(tokenizer)
    copied.backend_tokenizer.no_truncation()
    copied.backend_tokenizer.no_padding()
    return copied


def _state(tokenizer: PreTrainedTokenizerBase) -> Hashable:
    """A value that changes with the tokenizer's tokens and settings; takes about 0.1 ms for any vocabulary.

    Its attributes, special and added tokens, the settings of each step, and the vocabulary's size. A vocabulary that
    was replaced by another of the same size goes unnoticed. Truncation and padding do not count: no copy has any.
    """
    backend = tokenizer.backend_tokenizer
    steps = (backend.normalizer, backend.pre_tokenizer, backend.post_processor, backend.decoder)
    return (
        tuple((name, _shown(value)) for name, value in vars(tokenizer).items() if name not in _UNUSED),
        repr(backend.get_added_tokens_decoder()),
        tuple(None if step is None else step.__getstate__() for step in steps),
        type(backend.model),
        # Each kind of model has settings of its own.
        tuple(getattr(backend.model, name, None) for name in _MODEL_SETTINGS),
        backend.get_vocab_size(with_added_tokens=True),
    )


def _shown(value: object) -> str:
    large = isinstance(value, dict | list | tuple | set) and len(value) > _LARGEST
    return f"{type(value).__name__} {len(value)}" if large else repr(value)  # type: ignore[arg-type]
