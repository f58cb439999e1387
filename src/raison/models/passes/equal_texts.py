"""Texts that are named several times: which of their masked rows differ is found before any row is built."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from raison.core.inputs.encoding import Encoding


@dataclass(frozen=True, slots=True)
class EqualTexts:
    """Texts with the same tokens and units. `keeps` are the different ones among theirs, in the order in which they
    first appear; `places` are, for each text, the rows of `keeps` that are its own."""

    texts: tuple[int, ...]
    keeps: Bool[Tensor, "rows units"]
    places: tuple[Int[Tensor, " _masks"], ...]

    def within(self, piece: slice) -> Iterator[tuple[int, Int[Tensor, " some"], Int[Tensor, " some"]]]:
        """Each text, which of its keeps are among some rows, and their places among these."""
        if piece == slice(0, len(self.keeps)):
            for text, places in zip(self.texts, self.places, strict=True):
                yield text, torch.arange(len(places)), places
            return
        for text, places in zip(self.texts, self.places, strict=True):
            which = ((places >= piece.start) & (places < piece.stop)).nonzero()[:, 0]
            yield text, which, places[which] - piece.start


def equal_texts(encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]]) -> list[EqualTexts]:
    """All texts, those together whose masked rows are the same, in the order in which they first appear."""
    found: dict[tuple[bytes, ...], list[int]] = {}
    for text in range(len(encoding)):
        found.setdefault(_contents(encoding, text), []).append(text)
    return [_joined(texts, [keeps[text] for text in texts]) for texts in found.values()]


def each_alone(keeps: Sequence[Bool[Tensor, "_masks _units"]]) -> list[EqualTexts]:
    """Every text by itself with all of its keeps, for texts that have no row in common."""
    return [EqualTexts((text,), rows, (torch.arange(len(rows)),)) for text, rows in enumerate(keeps)]


def _contents(encoding: Encoding, text: int) -> tuple[bytes, ...]:
    length = encoding.lengths[text]
    rows: Iterable[Tensor] = (encoding.input_ids, encoding.type_ids, encoding.unit_ids)
    return tuple(row[text, :length].numpy().tobytes() for row in rows)


def _joined(texts: Sequence[int], keeps: Sequence[Tensor]) -> EqualTexts:
    numbers: dict[bytes, int] = {}
    first: list[Tensor] = []
    places = []
    for rows in keeps:
        known = len(numbers)
        packed = np.packbits(rows.numpy(), axis=1)
        own = [numbers.setdefault(row.tobytes(), len(numbers)) for row in packed]
        # A row that is new has the next number; only its first appearance is kept.
        new = {number: row for row, number in reversed([*enumerate(own)]) if number >= known}
        first.append(rows[[new[number] for number in range(known, len(numbers))]])
        places.append(torch.tensor(own, dtype=torch.long))
    return EqualTexts(tuple(texts), torch.cat(first), tuple(places))
