"""Sequences merged by equal beginnings, against beginnings listed one by one."""

import random

import torch

from raison.models.passes.prefixes.trie import cut, leaves, merge, sees


def test_trie_against_a_literal_one() -> None:
    rng = random.Random(0)
    rows = sorted({tuple(rng.randrange(2) for _ in range(rng.randrange(1, 8))) for _ in range(30)})
    for group in cut(rows, 25):
        chosen = [rows[number] for number in group]
        trie = merge(chosen)
        beginnings = sorted({row[:end] for row in chosen for end in range(1, len(row) + 1)})
        assert [beginning[-1] for beginning in beginnings] == trie.tokens
        assert [len(beginning) - 1 for beginning in beginnings] == trie.depths
        for row, path in zip(chosen, trie.paths, strict=True):
            assert [beginnings[node] for node in path] == [row[:end] for end in range(1, len(row) + 1)]
        for window in (None, 3):
            seen = sees(torch.tensor(trie.depths) + 2, torch.tensor(trie.ends), 2, window)
            near = len(seen) + 9 if window is None else window
            for node, own in enumerate(beginnings):
                keys = [len(own) + 1 - place < near for place in (0, 1)]
                keys += [own[: len(other)] == other and len(own) - len(other) < near for other in beginnings]
                assert seen[node].tolist() == keys


def test_packs_hold_every_sequence_once_and_in_order() -> None:
    rows = sorted({(1,) * length for length in range(1, 9)} | {(2, digit) for digit in range(9)})
    for nodes in (1, 4, 100):
        assert [number for group in cut(rows, nodes) for number in group] == list(range(len(rows)))


def test_packs_add_few_beginnings_to_those_of_the_packs_before() -> None:
    rng = random.Random(1)
    rows = sorted({tuple(rng.randrange(2) for _ in range(rng.randrange(1, 30))) for _ in range(40)})
    known: set[tuple[int, ...]] = set()
    sizes = []
    for group in cut(rows, 25):
        own = {rows[number][:end] for number in group for end in range(1, len(rows[number]) + 1)}
        assert len(own - known) <= 25 or len(group) == 1
        sizes.append(len(own - known))
        known |= own
    assert len(sizes) > 5
    # No pack could have taken the sequence after it.
    firsts = [group[0] for group in cut(rows, 25)][1:]
    for size, first in zip(sizes, firsts, strict=False):
        assert size + len(rows[first]) - len(_common(rows[first - 1], rows[first])) > 25


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return next(one[:end] for end in range(len(one), -1, -1) if one[:end] == other[:end])


def test_leaves_are_the_longest_sequences_that_begin_with_each() -> None:
    rows = [(1, 2), (1,), (3, 1), (1, 2, 3), (1, 2, 4), (3,), (2,), (3, 1)]
    for row, leaf in zip(rows, leaves(rows), strict=True):
        assert rows[leaf][: len(row)] == row
        # Nothing goes on from there.
        assert not any(len(other) > len(rows[leaf]) and other[: len(rows[leaf])] == rows[leaf] for other in rows)
    assert len({leaves(rows)[2], leaves(rows)[7], leaves(rows)[5]}) == 1
