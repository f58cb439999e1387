"""Token sequences merged by common prefixes, so that each prefix is computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from raison.text.beginning import common_length

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trie:
    """Token sequences merged by common prefixes, nodes in depth-first order."""

    tokens: list[int]
    depths: list[int]
    ends: list[int]
    """The node after the last descendant: node j is i or an ancestor of i if j <= i < ends[j]."""
    paths: list[list[int]]
    """The nodes of each sequence."""


def merge(rows: Sequence[Ids]) -> Trie:
    """The tree of sorted sequences."""
    trie = Trie([], [], [], [])
    path: list[int] = []
    previous: Ids = ()
    for row in rows:
        common = common_length(previous, row)
        for node in path[common:]:
            trie.ends[node] = len(trie.tokens)
        path = path[:common] + list(range(len(trie.tokens), len(trie.tokens) + len(row) - common))
        trie.tokens.extend(row[common:])
        trie.depths.extend(range(common, len(row)))
        trie.ends.extend([-1] * (len(row) - common))
        trie.paths.append(path)
        previous = row
    for node in path:
        trie.ends[node] = len(trie.tokens)
    return trie


def cut(rows: Sequence[Ids], nodes: int) -> list[list[int]]:
    """Sorted sequences in groups that add at most `nodes` nodes to the sequence before them.

    A sequence that adds more forms its own group.
    """
    parts: list[list[int]] = []
    size = 0
    for number, row in enumerate(rows):
        new = len(row) - common_length(rows[number - 1], row) if number else len(row)
        if parts and size + new <= nodes:
            parts[-1].append(number)
            size += new
        else:
            parts.append([number])
            size = new
    return parts


def leaves(rows: Sequence[Ids]) -> list[int]:
    """For each sequence the number of the longest one in order that begins with it, which may be itself."""
    order = sorted(range(len(rows)), key=rows.__getitem__)
    last = list(range(len(rows)))
    # In sorted order, the sequences that begin with a sequence follow it.
    for one, after in reversed(list(pairwise(order))):
        if rows[after][: len(rows[one])] == rows[one]:
            last[one] = last[after]
    return last


def sees(
    positions: Int[Tensor, " nodes"], ends: Int[Tensor, " nodes"], start: int, window: int | None, known: int = 0
) -> Bool[Tensor, "new keys"]:
    """The keys (the prompt's, then the nodes') that each node from `known` on attends to."""
    node = torch.arange(len(positions), device=positions.device)
    new = node[known:, None]
    lineage = (node[None] <= new) & (new < ends[None])
    sees = torch.cat([lineage.new_ones(len(new), start), lineage], 1)
    if window is not None:
        places = torch.cat([torch.arange(start, device=positions.device), positions])
        sees &= positions[known:, None] - places[None] < window
    return sees
