"""Which tokens of one tokenizer cover which units of another, by the characters that they share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Merge, Unit


@dataclass(frozen=True, slots=True)
class Alignment:
    """For each text and unit, the positions of the tokens that share a character with it; -1 fills up."""

    positions: Int[Tensor, "batch units shared"]

    def merged(self, scores: Float[Tensor, "batch tokens"], merge: Merge) -> Float[Tensor, "batch units"]:
        """Each unit's score: the highest of its tokens' scores or their mean; differentiable.

        A token that covers several units gives each its score. A unit without a token gets zero.
        """
        positions = self.positions.to(scores.device)
        there = positions >= 0
        gathered = scores.gather(1, positions.clamp_min(0).flatten(1)).view(positions.shape)
        if merge == "mean":
            return torch.where(there, gathered, 0).sum(-1) / there.sum(-1).clamp_min(1)
        greatest = torch.where(there, gathered, -torch.inf).amax(-1)
        return torch.where(there.any(-1), greatest, torch.zeros_like(greatest))

    def summed(self, scores: Float[Tensor, "batch tokens outputs"]) -> Float[Tensor, "batch units outputs"]:
        """Each unit's sums of its tokens' scores; differentiable. A token that covers several units counts in each."""
        positions, outputs = self.positions.to(scores.device), scores.shape[2]
        places = positions.clamp_min(0).flatten(1)[..., None].expand(-1, -1, outputs)
        gathered = scores.gather(1, places).view(*positions.shape, outputs)
        return torch.where(positions[..., None] >= 0, gathered, 0).sum(2)

    def select(self, rows: Sequence[int], units: int) -> "Alignment":
        """The same for some of the texts, none of which has more than `units` units."""
        return Alignment(self.positions[list(rows), :units])


def align(tokens: Encoding, units: Sequence[Sequence[Unit]]) -> Alignment:
    """The tokens of an encoding by token against the units of the same texts."""
    positions_of: list[list[list[int]]] = []
    for row, row_units in enumerate(units):
        overlap = shared_characters(row_units, tokens.units[row])
        positions = _positions(tokens, row)
        positions_of.append([[p for number in np.flatnonzero(line) for p in positions[number]] for line in overlap])
    width = max(len(text_lines) for text_lines in positions_of)
    most = max((len(line) for text_lines in positions_of for line in text_lines), default=0)
    table = torch.full((len(positions_of), width, max(most, 1)), -1)
    for row, lines in enumerate(positions_of):
        for unit, line in enumerate(lines):
            table[row, unit, : len(line)] = torch.tensor(line, dtype=torch.long)
    return Alignment(table)


def shared_characters(units: Sequence[Unit], tokens: Sequence[Unit]) -> Bool[np.ndarray, "units tokens"]:
    """Which of the units share a character with which of the tokens."""
    first = np.array([(u.segment, u.start, u.end) for u in units]).reshape(-1, 3, 1)
    second = np.array([(u.segment, u.start, u.end) for u in tokens]).reshape(-1, 3, 1).transpose(2, 1, 0)
    return (first[:, 0] == second[:, 0]) & (first[:, 1] < second[:, 2]) & (second[:, 1] < first[:, 2])


def _positions(tokens: Encoding, row: int) -> list[list[int]]:
    """The positions of each token unit: several if they make up one character."""
    positions: list[list[int]] = [[] for _ in tokens.units[row]]
    for position, number in enumerate(tokens.unit_ids[row].tolist()):
        if number >= 0:
            positions[number].append(position)
    return positions
