"""Twins of a model: some blocks are randomised, all other memory is shared with the caller's model."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.models.derived.backbone import backbone_of
from raison.models.stack.blocks import Values, check_how, drawn_values, find_stacks, put, twin
from raison.models.stack.hooks import acting_on
from raison.models.stack.layers import LayerCall
from raison.models.stack.locks import OwnLock
from raison.models.stack.tap import tapped

STORED_BYTES = 512 << 20
"""Maximum number of stored hidden states."""


class RandomisedModels:
    """Adapters over one model with some of its blocks randomised; each block has one draw of values.

    Blocks are numbered from the last: 1 is the last, `count` the first. Embeddings, final norm, head and prompt are
    kept. A block's values depend only on `seed` and its place, not on which other blocks are randomised. Memory: a copy
    of each requested block, until `drop_copies`; nothing else is copied, and the caller's model is never written to. In
    a PEFT model, the adapters inside a block are drawn with it.

    Passes without gradients and without a tap (masked and plain predictions) share the work below the lowest randomised
    block. The states there are kept for equal input, and a pass starts where the stored part ends, with the same bits
    as a whole pass. Request models from all blocks randomised down to the last alone: the states stored for one then
    grow by a block for the next. Gradients pass through all blocks, and methods that read attention look at all layers,
    so their passes are whole.

    Raises UnsupportedError for a model whose blocks cannot be identified, or cannot be drawn.
    """

    def __init__(
        self, adapter: LanguageModel, how: str = "initial", seed: tuple[int, ...] = (0,), stored: int = STORED_BYTES
    ) -> None:
        check_how(how)
        backbone = backbone_of(adapter)
        if backbone is None:
            raise InputError(f"only a transformers model has blocks, and only the outputs of {adapter.name} are known.")
        self._backbone = backbone
        self._how = how
        self._seed = seed
        self._stacks = find_stacks(backbone.core)
        self._blocks = [block for stack in self._stacks for block in stack]
        self._values: dict[int, Values] = {}
        self.store = StateStore(stored)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self._blocks)

    def model(self, numbers: Collection[int]) -> LanguageModel:
        """The adapter with these blocks randomised. Raises InputError for a block that does not exist."""
        wrong = [number for number in numbers if not 1 <= number <= self.count]
        if wrong:
            raise InputError(f"block {wrong[0]} does not exist: blocks are numbered from 1 (the last) to {self.count}.")
        twins: dict[int, nn.Module] = {}
        tree = twin(self._backbone.tree, twins)
        for number in numbers:
            block = self._blocks[self.count - number]
            put(twins[id(block)], self._drawn(number))
        shared = self.count - max(numbers, default=0)
        core: PreTrainedModel = twins[id(self._backbone.core)]  # type: ignore[assignment]
        # In an encoder-decoder, the encoder's blocks: a decoder's block has two inputs.
        lower = [twins[id(block)] for block in self._stacks[0][:shared]]
        if lower:
            LowerBlocks(core, lower, self.store).install()
        return self._backbone.over(tree)

    def drop_copies(self) -> None:
        """Forget the values of all blocks; models already made keep theirs, and new ones draw the same values again."""
        self._values.clear()

    def _drawn(self, number: int) -> Values:
        if number not in self._values:
            place = self.count - number
            seed = (*self._seed, place)
            self._values[number] = drawn_values(self._backbone.core, self._blocks[place], self._how, seed)
        return self._values[number]


@dataclass(frozen=True, slots=True, eq=False)
class _BlockState:
    """A block's output, and the number of blocks below that point."""

    level: int
    output: Any
    size: int


class StateStore:
    """The states after the lower blocks, by the digest of the input of the first of them; of bounded size.

    When it is full, nothing new is stored and nothing is dropped: inputs recur in the same order, so dropping the
    oldest would make every look-up miss.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: dict[bytes, _BlockState] = {}
        self._lock = OwnLock()
        self.size = 0

    def get(self, key: bytes, level: int) -> _BlockState | None:
        """The state of an input after at most `level` blocks."""
        state = self._found.get(key)
        return state if state is not None and state.level <= level else None

    def put(self, key: bytes, level: int, output: Any) -> None:
        """Store a state in place of the same input's state at another level."""
        tensors = _tensors(output)
        if tensors is None:
            return
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        with self._lock:
            old = self._found.get(key)
            room = self._limit - self.size + (0 if old is None else old.size)
            if size <= room:
                self._found[key] = _BlockState(level, _copied(output), size)
                self.size += size - (0 if old is None else old.size)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._found.clear()
            self.size = 0


@dataclass(slots=True, eq=False)
class _Pass:
    """One thread's pass over a twin: the transformer's arguments, and the stored state that matches."""

    blocks: "LowerBlocks"
    inputs: tuple[Any, ...]
    watched: bool
    key: bytes | None = None
    state: _BlockState | None = None


_PASS: ContextVar[_Pass | None] = ContextVar("raison_pass_of_a_twin", default=None)


class LowerBlocks:
    """The lowest blocks of a twin, which return their stored output for an equal input.

    Inputs are equal if the transformer's input, the hidden states at the first block, and a stored prompt's keys and
    values there are equal bit for bit.
    """

    def __init__(self, core: PreTrainedModel, blocks: Sequence[nn.Module], store: StateStore) -> None:
        self._core = core
        self._blocks = blocks
        self._store = store

    def install(self) -> None:
        """Replace the blocks' forward functions, which belong to the twin alone."""
        reader = self._core.get_encoder() if self._core.config.is_encoder_decoder else self._core.base_model
        reader.register_forward_pre_hook(self._begin, with_kwargs=True)
        # A pass holds the twin.
        reader.register_forward_hook(self._end, always_call=True)
        for number, block in enumerate(self._blocks):
            block.forward = partial(self._forward, number, block.forward)

    def _begin(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        config = self._core.config
        flags = [kwargs.get("output_hidden_states", config.output_hidden_states)]
        flags.append(kwargs.get("output_attentions", config.output_attentions))
        # Hidden states may be requested by number, including 0.
        _PASS.set(_Pass(self, (args, kwargs), any(value is not None and value is not False for value in flags)))

    def _end(self, *_: Any) -> None:
        _PASS.set(None)

    def _pass(self) -> _Pass | None:
        """This thread's pass; None if it must run every block: for gradients, a tap, or intermediate states."""
        current = _PASS.get()
        if current is None or current.blocks is not self or current.watched or torch.is_grad_enabled():
            return None
        return None if tapped(self._core.config) or acting_on(self._blocks) else current

    def _forward(self, number: int, plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        current = self._pass()
        if current is None:
            return plain(*args, **kwargs)
        if number == 0:
            current.key = _digest((*current.inputs, LayerCall(args, kwargs).hidden))
            current.state = None if current.key is None else self._store.get(current.key, len(self._blocks))
            current.inputs = ()
        if current.state is not None and number < current.state.level:
            # Only the last of these is read; the model may write to its arguments.
            last = number == current.state.level - 1
            return _copied(current.state.output) if last else current.state.output
        output = plain(*args, **kwargs)
        if current.key is not None and number == len(self._blocks) - 1:
            self._store.put(current.key, len(self._blocks), output)
        return output


def _digest(value: Any) -> bytes | None:
    """A digest of all arguments of a block, bit for bit; None if one cannot be compared that way."""
    digest = hashlib.blake2b(digest_size=16)
    return digest.digest() if _add(digest, value) else None


def _add(digest: "hashlib.blake2b", value: Any) -> bool:
    if isinstance(value, Tensor):
        digest.update(repr((value.dtype, value.shape)).encode())
        digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        return True
    if isinstance(value, dict):
        return _add(digest, tuple(value.items()))
    if isinstance(value, tuple | list):
        digest.update(f"{len(value)} of ".encode())
        return all(_add(digest, part) for part in value)
    if isinstance(value, Cache):
        # Every block fills an empty cache. A prompt's cache is identified by its first layer.
        if value.get_seq_length() == 0:
            return False
        first: Any = value.layers[0]
        return _add(digest, (first.keys, first.values))
    digest.update(f"{value!r},".encode())
    return value is None or isinstance(value, bool | int | float | str)


def _tensors(output: Any) -> list[Tensor] | None:
    """The tensors of a block's output; None if it contains anything else."""
    parts = output if isinstance(output, tuple) else (output,)
    known = all(part is None or isinstance(part, Tensor) for part in parts)
    return [part for part in parts if part is not None] if known else None


def _copied(output: Any) -> Any:
    if isinstance(output, tuple):
        return tuple(None if part is None else part.clone() for part in output)
    return output.clone()
