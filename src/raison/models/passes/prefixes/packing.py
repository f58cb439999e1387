"""Last hidden states after many token sequences that share prefixes: every distinct prefix is run once.

The prefix that all sequences of a call share (a prompt) comes from a key-value cache. The rest is merged into a tree,
and the tree's nodes are laid out in one row without padding: a node's position is its depth, and it attends to the
prompt, its ancestors and itself. A node's state is then that of the last token of the sequence which leads to it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import Cache, PreTrainedConfig, PreTrainedModel

from raison.core.errors import InputError
from raison.models.passes.batching import TokenBudget, groups, shrinking
from raison.models.passes.prefixes.prefix import PrefixStore
from raison.models.passes.prefixes.successive_passes import SuccessivePasses, windows
from raison.models.passes.prefixes.trie import Ids, cut, leaves, merge
from raison.models.passes.shortcuts import tried
from raison.models.stack.tap import TAP, implementation_of, tapped
from raison.progress import steps_of

CPU_NODES, DEVICE_NODES = 512, 4096
"""Maximum number of nodes per pack. Attention is quadratic, so a pack larger than needed to keep the device busy is
slower.
"""
PACKABLE = ("sdpa", "eager", None)
"""Attention implementations that take a mask of any shape. Others (flash, flex, a tap) get plain batches."""
TRIAL_TOKENS = 16
"""Length of the trial sequences, unless a sliding window is shorter."""


ReadRows = Callable[[Tensor, list[Ids], list[list[int]]], list[Tensor]]
"""(prompt, rows, positions) -> the states of prompt + row at each row's positions."""


class PackedReader:
    """Reads a causal transformer's last hidden states, packed where the model allows it and in plain batches elsewhere.

    `base` is the transformer without its head, in evaluation mode; it is not changed. Whether its packed states are
    right is tested: on a few made-up sequences at first, and on two of the caller's whenever packs grow twice as large
    as before or sequences leave the sliding window. After one failure it never packs again.
    """

    def __init__(self, base: PreTrainedModel, budget: TokenBudget) -> None:
        self.base = base
        self._budget = budget
        self._store = PrefixStore(base)
        self._verdicts: dict[str | None, bool] = {}
        self._causal: bool | None = None
        self._compared: set[tuple[str | None, int, bool]] = set()

    @property
    def packs(self) -> bool:
        """Whether packed passes are used; if not, every sequence is run whole, in padded batches.

        The first check costs three tiny passes.
        """
        name = self._implementation
        if name not in PACKABLE or windows(self._config) is None:
            return False
        if name not in self._verdicts:
            self._verdicts[name] = self.trial()
        return self._verdicts[name]

    @property
    def causal(self) -> bool:
        """Whether no state depends on later tokens: packed states would be wrong otherwise.

        Where states are not packed for another reason, the first check costs one tiny pass.
        """
        if self.packs:
            return True
        if self._causal is None:
            self._causal = self._ignores_later_tokens()
        return self._causal

    def states(
        self, prefix: Int[Tensor, " prefix"], rows: Sequence[Int[Tensor, " _tokens"]], reads: Sequence[Sequence[int]]
    ) -> list[Float[Tensor, "_reads hidden"]]:
        """Last hidden states of prefix + rows[i] at the positions reads[i], counted from the prefix's first token.

        In the model's dtype, on its device, without gradients. Costs the prefix once per model and prompt, and one
        token per distinct prefix among the rows of one pack.

        Raises InputError for a position that the sequence does not have.
        """
        whole: dict[Ids, list[int]] = {}
        spans = []
        for row, wanted in zip(rows, reads, strict=True):
            ids = tuple(row.tolist())
            length = len(prefix) + len(ids)
            if length == 0 or not 0 <= min(wanted, default=0) <= max(wanted, default=0) < length:
                raise InputError(f"cannot read the positions {list(wanted)} of a sequence of {length} tokens.")
            positions = whole.setdefault(ids, [])
            spans.append((ids, slice(len(positions), len(positions) + len(wanted))))
            positions.extend(wanted)
        states: dict[Ids, Tensor] = {}
        with torch.no_grad():
            for part, packed in self._parts(prefix, sorted(whole)):
                read = partial(_at_leaves, partial(self._packed, prefix)) if packed else partial(self._plain, prefix)
                states.update(zip(part, read(part, [whole[row] for row in part]), strict=True))
        return [states[ids][span] for ids, span in spans]

    def cache(self, prefix: Int[Tensor, " prefix"], batch: int) -> Cache | None:
        """The prompt's keys and values for one pass over `batch` rows that follow it, as constants.

        None for an empty prompt, and where the model's cache cannot be used: the pass must then run the prompt, too.
        """
        if len(prefix) == 0 or not self.packs or _steady_tokens(self._config) is not None:
            return None
        return self._store.get(prefix).cache(batch)

    def follow(self, other: "PackedReader") -> None:
        """Be `uncached` whenever the other reader is, which reads the model whose twin this one reads."""
        self._store.follow(other._store)

    @contextmanager
    def uncached(self) -> Iterator[None]:
        """Inside, no stored prompt is used and none is stored: for shifted embeddings or edited attention."""
        with self._store.closed():
            yield

    @property
    def _config(self) -> PreTrainedConfig:
        return self.base.config.get_text_config()

    @property
    def _implementation(self) -> str | None:
        return TAP if tapped(self.base.config) else implementation_of(self.base.config)

    @property
    def _widths(self) -> Collection[int | None]:
        return (windows(self._config) or {}).values()

    @property
    def _nodes(self) -> int:
        return min(self._budget.tokens, CPU_NODES if self.base.device.type == "cpu" else DEVICE_NODES)

    def _parts(self, prefix: Tensor, rows: list[Ids]) -> Iterator[tuple[list[Ids], bool]]:
        """Rows that can be run together, and whether they are packed."""
        limit = _steady_tokens(self._config)
        room = None if limit is None else limit - len(prefix)
        steady = rows if room is None else [row for row in rows if len(row) <= room]
        if steady:
            yield steady, self.packs
        if len(steady) < len(rows):
            yield [row for row in rows if room is not None and len(row) > room], False

    def _packed(self, prefix: Tensor, rows: list[Ids], reads: list[list[int]]) -> list[Tensor]:
        """Packed states of sorted rows; the first packs of a new size are compared with two plain sequences."""
        packs = cut(rows, self._nodes)
        longest = max(range(len(rows)), key=lambda number: len(rows[number]))
        size = len(prefix) + len(rows[longest]) + len(merge([rows[number] for number in packs[-1]]).tokens)
        beyond = any(width is not None and len(prefix) + len(rows[longest]) > width for width in self._widths)
        kind = (self._implementation, size.bit_length(), beyond)
        if kind in self._compared:
            return self._read_packed(prefix, rows, reads)
        right, states = self._compare(self._plain, prefix, rows, reads, {packs[-1][-1], longest})
        if right:
            self._compared.add(kind)
            return states
        self._verdicts[self._implementation] = False
        return self._plain(prefix, rows, reads)

    def _compare(
        self, read: ReadRows, prefix: Tensor, rows: list[Ids], reads: list[list[int]], probes: Collection[int]
    ) -> tuple[bool, list[Tensor]]:
        """Packed states, and whether those of some of the rows equal `read`'s, up to the dtype's rounding."""
        every = {number: list(range(len(prefix) + len(rows[number]))) for number in probes}
        more = [[*wanted, *every.get(number, [])] for number, wanted in enumerate(reads)]
        packed_states = tried(lambda: self._read_packed(prefix, rows, more))
        if packed_states is None:
            return False, []
        packed = [packed_states[number][len(reads[number]) :] for number in every]
        plain = read(prefix, [rows[number] for number in every], list(every.values()))
        right = all(_close(*pair, max(0, len(prefix) - 1)) for pair in zip(packed, plain, strict=True))
        return right, [states[: len(wanted)] for states, wanted in zip(packed_states, reads, strict=True)]

    def _read_packed(self, prefix: Tensor, rows: list[Ids], reads: list[list[int]]) -> list[Tensor]:
        passes = SuccessivePasses(self.base, self._store.get(prefix) if len(prefix) else None, self._nodes)

        def run(group: list[int]) -> Sequence[Tensor]:
            return passes.states([rows[number] for number in group], [reads[number] for number in group])

        def divide(left: list[int]) -> list[list[int]]:
            return cut([rows[number] for number in left], self._nodes)

        return self._each(len(rows), divide, run)

    def _plain(self, prefix: Tensor, rows: list[Ids], reads: list[list[int]]) -> list[Tensor]:
        """States of whole sequences in padded batches."""
        if _steady_tokens(self._config) is not None or not self.causal:
            return self._padded(prefix, rows, reads)
        return _at_leaves(partial(self._padded, prefix), rows, reads)

    def _padded(self, prefix: Tensor, rows: list[Ids], reads: list[list[int]]) -> list[Tensor]:
        device, start = self.base.device, tuple(prefix.tolist())
        lengths = [len(start) + len(row) for row in rows]

        def run(group: list[int]) -> Sequence[Tensor]:
            width = max(lengths[number] for number in group)
            ids = torch.tensor([[*start, *rows[k], *[0] * (width - lengths[k])] for k in group], device=device)
            group_lengths = torch.tensor([lengths[number] for number in group], device=device)
            mask = torch.arange(width, device=device) < group_lengths[:, None]
            states = self.base(input_ids=ids, attention_mask=mask.long(), use_cache=False)[0].flatten(0, 1)
            picks = [line * width + position for line, number in enumerate(group) for position in reads[number]]
            chosen = states[torch.tensor(picks, dtype=torch.long, device=states.device)]
            return chosen.split([len(reads[number]) for number in group])

        def divide(left: list[int]) -> list[list[int]]:
            return groups([lengths[number] for number in left], self._budget.tokens)

        return self._each(len(rows), divide, run)

    def _each(
        self,
        count: int,
        divide: Callable[[list[int]], list[list[int]]],
        run: Callable[[list[int]], Sequence[Tensor]],
    ) -> list[Tensor]:
        """Run all rows in the groups that `divide` makes (indices into its argument); retry after out of memory."""
        states_of: dict[int, Tensor] = {}
        left = list(range(count))
        with steps_of("passes", count) as progress:
            while left:
                before = self._budget.tokens
                for group in divide(left):
                    members = [left[place] for place in group]
                    for numbers, states in shrinking(self._budget, run, members):
                        states_of.update(zip(numbers, states, strict=True))
                        progress(len(numbers))
                    if self._budget.tokens < before:
                        break
                left = [number for number in left if number not in states_of]
        return [states_of[number] for number in range(count)]

    def trial(self) -> bool:
        """Whether packed states are right for a few made-up sequences, which cross short sliding windows."""
        widths = [width for width in self._widths if width is not None]
        ids = [(97 * step + 31) % self._config.vocab_size for step in range(12 + min([TRIAL_TOKENS, *widths]))]
        rows = sorted([(*ids[:2], *ids[5:7]), tuple(ids[:5]), tuple(ids[:2]), tuple(ids[3:6])])
        with torch.no_grad(), self._store.closed():
            return self._compare(self._padded, torch.tensor(ids[7:]), rows, [[] for _ in rows], range(len(rows)))[0]

    def _ignores_later_tokens(self) -> bool:
        """Whether the states of a made-up sequence are those of the beginning of a longer one."""
        ids = tuple((97 * step + 31) % self._config.vocab_size for step in range(TRIAL_TOKENS))
        rows = [ids, ids[: TRIAL_TOKENS // 2]]
        reads = [[*range(TRIAL_TOKENS // 2)]] * len(rows)
        with torch.no_grad():
            states = tried(lambda: self._padded(torch.zeros(0, dtype=torch.long), rows, reads))
        return states is not None and _close(states[0], states[1], 0)


def _at_leaves(
    read: Callable[[list[Ids], list[list[int]]], list[Tensor]], rows: list[Ids], reads: list[list[int]]
) -> list[Tensor]:
    """The states of all rows; a row that is the beginning of another is read from that row's pass."""
    ends = leaves(rows)
    whole: dict[int, list[int]] = {number: [] for number in ends}
    spans = []
    for end, wanted in zip(ends, reads, strict=True):
        spans.append(slice(len(whole[end]), len(whole[end]) + len(wanted)))
        whole[end].extend(wanted)
    states = dict(zip(whole, read([rows[number] for number in whole], [*whole.values()]), strict=True))
    return [states[end][span] for end, span in zip(ends, spans, strict=True)]


def _close(packed: Float[Tensor, "tokens hidden"], plain: Float[Tensor, "tokens hidden"], start: int) -> bool:
    """Whether two passes over a sequence agree, from the token `start` on, up to the rounding of their dtype.

    On average over tokens, since single ones can be far off in half precision, and relative to how much the sequence's
    states differ from each other, because what all of them share says nothing. If they hardly differ, as for one
    repeated token, the tolerance is a few times the rounding of the states themselves.
    """
    one, other = packed.float(), plain.float()
    scale = (other - other.mean(0)).norm(dim=1).mean() if len(other) > 1 else other.norm()
    eps = torch.finfo(plain.dtype).eps
    allowed = torch.maximum(2 * eps**0.5 * scale, 8 * eps * other.norm(dim=1).mean())
    return bool((one - other)[start:].norm(dim=1).mean() <= allowed)


def _steady_tokens(config: PreTrainedConfig) -> int | None:
    """The length from which rotary angles depend on the longest sequence of a pass; None if they never do."""
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    limits = [
        kind.get("original_max_position_embeddings") or config.max_position_embeddings
        for kind in kinds
        if kind.get("rope_type") in ("dynamic", "longrope")
    ]
    return min(limits, default=None)
