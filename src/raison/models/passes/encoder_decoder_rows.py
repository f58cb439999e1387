"""Masked predictions of an encoder-decoder that writes: each different masked text is encoded once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.inputs.encoding import Encoding
from raison.models.passes.batching import groups, run_grouped
from raison.models.passes.encoder_decoder import EncoderDecoder, Source
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.prefixes.trie import Ids
from raison.models.passes.removal import Remover, tokens_kept


@dataclass(frozen=True, slots=True)
class _RowInput:
    """A prediction: what the encoder and the decoder read before it."""

    source: Ids
    written: Ids


class EncoderDecoderRows:
    """Predictions after texts x keeps, whose rows hold a text and the tokens written after it.

    The rows of one output's tokens are beginnings of one another, and so are, mostly, their masked versions: the
    decoder runs the longest ones, and predictions after their beginnings are read from the same pass (teacher forcing).
    """

    def __init__(self, passes: ForwardPasses, stacks: EncoderDecoder) -> None:
        self._passes = passes
        self._stacks = stacks

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
    ) -> list[Float[Tensor, "_masks classes"]]:
        """See LanguageModel.masked_logits."""
        readings = [
            reading
            for text, wanted in enumerate(keeps)
            for reading in _masked(encoding, text, wanted, remover, self._stacks.border)
        ]
        with self._passes.network.quiet(), torch.no_grad():
            known = self._read(dict.fromkeys(readings))
        logits = torch.stack([known[reading] for reading in readings]) if readings else torch.zeros(0, 0)
        return self._passes.finite(encoding, list(logits.split([len(wanted) for wanted in keeps])))

    def _read(self, readings: Iterable[_RowInput]) -> dict[_RowInput, Float[Tensor, " classes"]]:
        by_source: dict[Ids, list[Ids]] = {}
        for reading in readings:
            by_source.setdefault(reading.source, []).append(reading.written)
        sources = list(by_source)
        logits: dict[_RowInput, Tensor] = {}

        def run(rows: list[int]) -> dict[_RowInput, Tensor]:
            batch = [sources[row] for row in rows]
            return self._predictions(batch, [by_source[source] for source in batch])

        for _, part in run_grouped(self._passes.budget, [len(source) for source in sources], run):
            logits.update(part)
        return logits

    def _predictions(self, sources: list[Ids], written: list[list[Ids]]) -> dict[_RowInput, Tensor]:
        """Class logits after each written sequence of some texts, which are encoded together."""
        encoded = self._encoded(sources)
        hosts = [(row, host, reads) for row, outputs in enumerate(written) for host, reads in _hosts(outputs).items()]
        predictions: dict[_RowInput, Tensor] = {}
        widths = [len(host) + len(sources[row]) for row, host, _ in hosts]
        for group in groups(widths, self._passes.budget.tokens):
            some = [hosts[number] for number in group]
            states = self._stacks.decode(
                _table([host for _, host, _ in some])[0].to(encoded.states.device),
                encoded.of_rows([row for row, _, _ in some]),
            )
            reads = [(place, row, output) for place, (row, _, all_own) in enumerate(some) for output in all_own]
            ends = states[[place for place, _, _ in reads], [len(output) - 1 for _, _, output in reads]]
            for (_, row, written_ids), logits in zip(reads, self._logits(ends), strict=True):
                predictions[_RowInput(sources[row], written_ids)] = logits
        return predictions

    def _encoded(self, sources: list[Ids]) -> Source:
        ids, mask = _table(sources)
        return self._stacks.encode(ids.to(self._passes.network.device), None if mask.all() else mask)

    def _logits(self, states: Float[Tensor, "reads hidden"]) -> Float[Tensor, "reads classes"]:
        readout = self._passes.network.readout
        assert readout is not None, "an encoder-decoder that writes without a readout"
        logits = readout.logits([states[:, None]])
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).cpu()


def _masked(
    encoding: Encoding, text: int, keeps: Bool[Tensor, "masks units"], remover: Remover, border: int
) -> Iterator[_RowInput]:
    """A row under each keep, with its absent tokens replaced or deleted, as its two parts."""
    stays = tokens_kept(encoding, text, keeps)
    ids = encoding.input_ids[text, : encoding.lengths[text]]
    if remover.token is not None:
        for row in torch.where(stays, ids, remover.token).tolist():
            yield _RowInput(tuple(row[:border]), tuple(row[border:]))
        return
    tokens = ids.tolist()
    for row in stays.tolist():
        source = tuple(compress(tokens[:border], row[:border]))
        yield _RowInput(source or (remover.placeholder,), tuple(compress(tokens[border:], row[border:])))


def _hosts(written: list[Ids]) -> dict[Ids, list[Ids]]:
    """The sequences that are not beginnings of others, each with the given sequences that it begins with.

    In alphabetical order a sequence comes right before those that begin with it.
    """
    hosts: dict[Ids, list[Ids]] = {}
    host: Ids = ()
    for ids in sorted(written, reverse=True):
        if host[: len(ids)] != ids:
            host = ids
        hosts.setdefault(host, []).append(ids)
    return hosts


def _table(rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Rows of different lengths, padded on the right, and which of their entries are tokens."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]
