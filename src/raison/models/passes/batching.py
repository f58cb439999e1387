"""Packs (texts x keeps) and (texts x points) into as few full batches as a token budget allows."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.errors import OutOfMemoryError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import segments
from raison.core.results.printable import printable
from raison.models.passes.equal_texts import EqualTexts, each_alone, equal_texts
from raison.models.passes.removal import Remover, masked_rows
from raison.models.passes.token_batch import TokenBatch, padded_together, placed
from raison.models.stack.attention_memory import AttentionMemoryError
from raison.progress import steps_of

Result = TypeVar("Result")

ROWS_IN_MEMORY = 1 << 22
"""Tokens of masked texts, padding included, that are built at a time, before they are split into batches."""

SHOWN = 40
"""Characters of a text that an error quotes."""


@dataclass(slots=True)
class TokenBudget:
    """Tokens (padding included) per batch. Out of memory halves it for the rest of the run.

    `unpadded` says that only rows of equal length belong together.
    """

    tokens: int
    unpadded: bool = False

    def halve(self) -> None:
        self.tokens = max(1, self.tokens // 2)


def default_budget(device: torch.device) -> int:
    """Tokens per batch at which throughput levels off: benchmarks/masked_evaluation.py measures it."""
    return 2048 if device.type == "cpu" else 65536


def groups(lengths: Sequence[int], budget: int, unpadded: bool = False) -> list[list[int]]:
    """Rows in groups of similar or, if `unpadded`, of equal length, longest first, each of at most `budget` tokens with
    its padding.

    A group ends early where the next row is shorter and the group is a quarter full: a smaller batch without
    padding is cheaper than a full one with it.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    batches: list[list[int]] = []
    for row in order:
        if batches:
            width, size = lengths[batches[-1][0]], len(batches[-1])
            fits = (size + 1) * width <= budget
            worth = lengths[row] == width or (not unpadded and size * width * 4 < budget)
            if fits and worth:
                batches[-1].append(row)
                continue
        batches.append([row])
    return batches


def masked_logits(
    encoding: Encoding,
    keeps: Sequence[Bool[Tensor, "_masks _units"]],
    remover: Remover,
    evaluated: Callable[[TokenBatch], Float[Tensor, "rows classes"]],
) -> list[Float[Tensor, "_masks classes"]]:
    """Logits of every text under every keep; `evaluated` gives those of any number of rows.

    A text's rows share its context and its span; with these, tokens are replaced and never deleted. If a text is named
    several times, its equal rows are run once.
    """
    results: list[Tensor] = [torch.zeros(0, 0) for _ in keeps]
    apart = encoding.spans is None or encoding.reading is not None
    repeated = apart and len(set(encoding.texts)) < len(encoding)
    for pieces in _pieces(encoding, equal_texts(encoding, keeps) if repeated else each_alone(keeps)):
        batches = [masked_rows(encoding, kind.texts[0], kind.keeps[rows], remover) for kind, rows in pieces]
        befores = accumulate((len(batch.lengths) for batch in batches[:-1]), initial=0)
        asked = [(*one, n) for (kind, rows), n in zip(pieces, befores, strict=True) for one in kind.within(rows)]
        counts = [len(which) for _, which, _, _ in asked]
        table = padded_together(batches)
        if encoding.spans is not None:
            texts = torch.tensor([text for text, *_ in asked]).repeat_interleave(torch.tensor(counts))
            table = placed(table, encoding, texts)
        if repeated:
            logits = _once(table, torch.cat([before + places for _, _, places, before in asked]), evaluated)
        else:
            logits = evaluated(table)
        for (text, which, *_), part in zip(asked, logits.split(counts), strict=True):
            if len(which) == len(keeps[text]):
                results[text] = part
                continue
            if not len(results[text]):
                results[text] = part.new_zeros(len(keeps[text]), part.shape[1])
            results[text][which] = part
    return results


@contextmanager
def naming_the_longest(encoding: Encoding) -> Iterator[None]:
    """If not even one text fits into memory, the error names the longest one, with which the groups begin."""
    try:
        yield
    except OutOfMemoryError as error:
        lengths = encoding.lengths
        longest = max(range(len(encoding)), key=lengths.__getitem__)
        text = " / ".join(segments(encoding.texts[longest]))
        begins = printable(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
        raise OutOfMemoryError(f"{error} The longest is '{begins}' ({lengths[longest]:,} tokens).") from None


def shrinking(
    budget: TokenBudget, run: Callable[[list[int]], Result], rows: list[int]
) -> Iterator[tuple[list[int], Result]]:
    """Run a group of rows; if memory runs out, halve the budget and run the group in two halves."""
    try:
        yield rows, run(rows)
        return
    except torch.OutOfMemoryError as error:
        if len(rows) == 1 and isinstance(error, AttentionMemoryError):
            raise OutOfMemoryError(str(error)) from None
        if len(rows) == 1:
            raise OutOfMemoryError(
                "not even one text fits into the device's memory: shorten it, or use a smaller dtype "
                "(dtype='bfloat16') or a device with more memory (device='cpu')."
            ) from None
        budget.halve()
    # Outside the handler: inside, the exception's traceback would keep the failed batch's tensors alive.
    gc.collect()
    with contextlib.suppress(RuntimeError, AssertionError):
        torch.cuda.empty_cache()
    half = len(rows) // 2
    yield from shrinking(budget, run, rows[:half])
    yield from shrinking(budget, run, rows[half:])


def mean_over(
    budget: TokenBudget, rows: Sequence[int], run: Callable[[list[int]], Sequence[Tensor | None]]
) -> list[Tensor | None]:
    """Means over all rows, in one call of `run` if they fit into memory.

    `run` gives means over some rows. `budget` counts rows here. After out of memory, this call and later ones take the
    rows in parts. None means zeros.
    """
    total: list[Tensor | None] = []
    size = min(budget.tokens, len(rows))
    room, largest = TokenBudget(size), 1
    for start in range(0, len(rows), size):
        for part, means in shrinking(room, run, list(rows[start : start + size])):
            if len(part) == len(rows):
                return list(means)
            largest = max(largest, len(part))
            shares = [None if mean is None else mean * (len(part) / len(rows)) for mean in means]
            total = [_plus(*pair) for pair in zip(total, shares, strict=True)] if total else shares
    if room.tokens < size:
        budget.tokens = largest
    return total


def _plus(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one + other


def run_grouped(
    budget: TokenBudget, lengths: Sequence[int], run: Callable[[list[int]], Result]
) -> Iterator[tuple[list[int], Result]]:
    """Run rows of these lengths in groups under the budget; after out of memory, the rest in smaller groups."""
    pending = groups(lengths, budget.tokens, budget.unpadded)
    with steps_of("passes", len(lengths)) as progress:
        while pending:
            before = budget.tokens
            for rows, result in shrinking(budget, run, pending.pop(0)):
                progress(len(rows))
                yield rows, result
            if budget.tokens < before:
                left = [row for group in pending for row in group]
                smaller = groups([lengths[row] for row in left], budget.tokens, budget.unpadded)
                pending = [[left[i] for i in group] for group in smaller]


def _pieces(encoding: Encoding, kinds: Sequence[EqualTexts]) -> Iterator[list[tuple[EqualTexts, slice]]]:
    """Rows of texts in portions of bounded size, padding included: texts of similar length share one."""
    portion: list[tuple[int, slice]] = []
    rows = width = beside = 0
    lengths = [encoding.lengths[kind.texts[0]] for kind in kinds]
    for number in sorted(range(len(kinds)), key=lambda number: -lengths[number]):
        length, count, read = lengths[number], len(kinds[number].keeps), _read_of_a_row(encoding, kinds[number])
        step = max(1, ROWS_IN_MEMORY // (length + read))
        for start in range(0, count, step):
            piece = slice(start, min(start + step, count))
            more = piece.stop - piece.start
            if portion and (rows + more) * width + beside + more * read > ROWS_IN_MEMORY:
                yield _in_order(kinds, portion)
                portion, rows, beside = [], 0, 0
            if not portion:
                width = length
            portion.append((number, piece))
            rows, beside = rows + more, beside + more * read
    if portion:
        yield _in_order(kinds, portion)


def _read_of_a_row(encoding: Encoding, kind: EqualTexts) -> int:
    """How many numbers say where a row is read, for all texts that may read it."""
    return 0 if encoding.reading is None else len(kind.texts) * encoding.reading.choices[0].numel()


def _in_order(kinds: Sequence[EqualTexts], portion: list[tuple[int, slice]]) -> list[tuple[EqualTexts, slice]]:
    ordered = sorted(portion, key=lambda piece: (piece[0], piece[1].start))
    return [(kinds[number], rows) for number, rows in ordered]


def _once(table: TokenBatch, reads: Int[Tensor, " reads"], evaluated: Callable[[TokenBatch], Tensor]) -> Tensor:
    """The results of some rows, named as often as they are read. Equal rows are run once, in the order in which they
    first appear."""
    whole = torch.cat([table.ids, table.type_ids, table.lengths[:, None]], 1)
    _, kinds = whole.unique(dim=0, return_inverse=True)
    rows = torch.arange(len(kinds))
    first = rows.new_full((int(kinds.max()) + 1,), len(rows)).scatter_reduce(0, kinds, rows, "amin")
    distinct = first.sort().values
    inverse = torch.searchsorted(distinct, first[kinds])[reads]
    if table.spans is None:
        return evaluated(table.select(distinct.tolist()))[inverse]
    plain = replace(table, spans=None, reading=None).select(distinct.tolist())
    return evaluated(replace(plain, spans=table.spans, reading=table.reading, reads=inverse))


def run_table(table: TokenBatch, budget: TokenBudget, forward: Callable[[TokenBatch], Tensor]) -> Tensor:
    """The result of `forward` for every row, in groups under the budget."""
    lengths = table.lengths

    def run(rows: list[int]) -> Tensor:
        return forward(table.select(rows))

    logits: Tensor | None = None
    for rows, part in run_grouped(budget, lengths.tolist(), run):
        if logits is None:
            count = len(lengths) if table.reads is None else len(table.reads)
            logits = part.new_zeros(count, part.shape[1])
        logits[table.reads_of(rows)] = part
    assert logits is not None
    return logits
