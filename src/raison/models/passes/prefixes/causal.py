"""Masked and intermediate predictions of a causal model: every distinct prefix is computed once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.capabilities.step_logits import StepLogits
from raison.core.dims import Logits
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.readout import Readout
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.passes.removal import Removals, Remover, masked_rows, tokens_kept

SEQUENCES = 1 << 14
"""Token sequences that are built at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class CausalReader:
    """Class logits after many token sequences: the prompt comes from a cache, the rest from packed passes."""

    packed: PackedReader
    readout: Readout

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
    ) -> list[Float[Tensor, "_masks classes"]]:
        """See LanguageModel.masked_logits."""
        prefix, start = _prefix(encoding)
        groups = _with_the_same_units(encoding, keeps)
        rows = (ids[start:length] for group in groups for ids, length in _masked(encoding, group, keeps, remover))
        logits = self._read(prefix, rows)
        parts = logits.split([len(group) * len(keeps[group[0]]) for group in groups])
        of_texts = {
            text: part[place :: len(group)]
            for group, part in zip(groups, parts, strict=True)
            for place, text in enumerate(group)
        }
        return [of_texts[text] for text in range(len(keeps))]

    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        """See StepLogits.step_logits. The tokens after the last unit are appended to each of them."""
        prefix, start = _prefix(encoding)
        logits = self._read(prefix, _steps(encoding, keeps, remover, start))
        counts = [len(wanted) * units for wanted, units in zip(keeps, encoding.unit_counts, strict=True)]
        return [
            part.reshape(len(wanted), units, logits.shape[-1])
            for part, wanted, units in zip(logits.split(counts), keeps, encoding.unit_counts, strict=True)
        ]

    def start_logits(self, encoding: Encoding) -> Float[Tensor, "batch classes"]:
        """See StepLogits.start_logits."""
        prefix, start = _prefix(encoding)
        rows = []
        for text in range(len(encoding)):
            first, after = _border(encoding, text)
            if first == 0:
                raise UnsupportedError(
                    "there is no prediction before the first unit",
                    ["nothing precedes the text: the tokenizer adds no token at the beginning, and there is no prompt"],
                    "Start from the fully removed text instead.",
                )
            ids = encoding.input_ids[text, : encoding.lengths[text]]
            rows.append(torch.cat([ids[start:first], ids[after:]]))
        return self._read(prefix, iter(rows))

    def _read(self, prefix: Int[Tensor, " prefix"], rows: Iterator[Int[Tensor, " tokens"]]) -> Tensor:
        """Class logits after prefix + row, in single precision or more, on the CPU."""
        parts = []
        while chunk := list(islice(rows, SEQUENCES)):
            parts.append(self._read_chunk(prefix, chunk))
        return torch.cat(parts) if parts else torch.zeros(0, 0)

    def _read_chunk(self, prefix: Tensor, rows: list[Tensor]) -> Tensor:
        branches = self.readout.branches
        sequences = [torch.cat([row, row.new_tensor(branch)]) for branch in branches for row in rows]
        reads = [
            [len(prefix) + len(row) - 1 + step for step in range(len(branch) + 1)]
            for branch in branches
            for row in rows
        ]
        states = self.packed.states(prefix, sequences, reads)
        by_branch = [torch.stack(states[k * len(rows) : (k + 1) * len(rows)]) for k in range(len(branches))]
        with torch.no_grad():
            logits = self.readout.logits(by_branch)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).cpu()


class CausalSteps(StepLogits):
    """Predictions of a causal model along its texts, and of masked texts that share prefixes."""

    def __init__(self, passes: ForwardPasses, packed: PackedReader, removals: Removals) -> None:
        self._passes = passes
        self._packed = packed
        self._removals = removals

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
    ) -> list[Float[Tensor, "_masks classes"]]:
        """See LanguageModel.masked_logits."""
        with self._passes.network.quiet():
            return self._passes.finite(encoding, self._reader.masked_logits(encoding, keeps, remover))

    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        with self._passes.network.quiet():
            logits = self._reader.step_logits(encoding, keeps, self._removals.remover(removal))
            return self._passes.finite(encoding, logits)

    def start_logits(self, encoding: Encoding) -> Logits:
        with self._passes.network.quiet():
            logits = self._reader.start_logits(encoding)
        return torch.stack(self._passes.finite(encoding, list(logits)))

    @property
    def _reader(self) -> CausalReader:
        readout = self._passes.network.readout
        assert readout is not None, "a causal model without a readout"
        return CausalReader(self._packed, readout)


def _prefix(encoding: Encoding) -> tuple[Int[Tensor, " prefix"], int]:
    length = encoding.prefix_length
    return encoding.input_ids[0, :length], length


def _border(encoding: Encoding, text: int) -> tuple[int, int]:
    """The first token of the first unit, and the token after the last unit."""
    scored = encoding.scored[text].nonzero()[:, 0]
    return int(scored[0]), int(scored[-1]) + 1


def _with_the_same_units(encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]]) -> list[list[int]]:
    """The texts whose tokens are the same up to the last unit, as are a prompt's with more and more of its output."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for text, wanted in enumerate(keeps):
        scored = encoding.scored[text].nonzero()[:, 0].tolist()
        after = scored[-1] + 1 if scored else encoding.lengths[text]
        tokens = torch.cat([encoding.input_ids[text, :after], encoding.unit_ids[text, :after]]).tolist()
        groups.setdefault((len(wanted), *tokens), []).append(text)
    return list(groups.values())


def _masked(
    encoding: Encoding, texts: Sequence[int], keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
) -> Iterator[tuple[Tensor, int]]:
    """Masked tokens with their number, mask by mask and in each the texts, which may share what the mask left."""
    step = max(1, SEQUENCES // 8 // len(texts))
    for start in range(0, len(keeps[texts[0]]), step):
        batches = [masked_rows(encoding, text, keeps[text][start : start + step], remover) for text in texts]
        pairs = [zip(batch.ids, batch.lengths.tolist(), strict=True) for batch in batches]
        yield from chain.from_iterable(zip(*pairs, strict=True))


def _steps(
    encoding: Encoding, keeps: Sequence[Tensor], remover: Remover, start: int
) -> Iterator[Int[Tensor, " tokens"]]:
    """Per text, keep and unit: the tokens after the prefix up to the unit's last one, and the answer cue."""
    for text, wanted in enumerate(keeps):
        unit_ids = encoding.unit_ids[text, : encoding.lengths[text]]
        _, after = _border(encoding, text)
        cue = encoding.input_ids[text, after : len(unit_ids)]
        last = torch.stack([(unit_ids == unit).nonzero()[-1, 0] for unit in range(encoding.unit_counts[text])])
        stays = tokens_kept(encoding, text, wanted)
        ends = stays.cumsum(1) if remover.token is None else torch.arange(1, len(unit_ids) + 1).expand(stays.shape)
        for (ids, _), row_ends in zip(_masked(encoding, [text], keeps, remover), ends[:, last].tolist(), strict=True):
            for end in row_ends:
                row = torch.cat([ids[start:end], cue])
                # Everything is deleted and nothing surrounds it: one token represents the empty text.
                yield row if len(row) + start else ids.new_tensor([remover.placeholder])
