"""What is known of a vocabulary: found once, found again after an edit, forgotten with its model."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from raison.integration import anchors
from raison.integration.anchors import ZERO, AnchorWalk, Ends, anchors_of, embedded
from raison.numerics.gradients.monotone_paths import monotone_points


def table_of(seed=0, size=30):
    rows = np.random.default_rng(seed).normal(size=(size, 5))
    return nn.Embedding.from_pretrained(torch.from_numpy(rows).float(), freeze=False)


@pytest.fixture
def searches(monkeypatch):
    """How many words' neighbours were looked for, search by search."""
    found, own = [], anchors.nearest_rows

    def counting(rows_of, lengths, wanted, count):
        found.append(len(wanted))
        return own(rows_of, lengths, wanted, count)

    monkeypatch.setattr(anchors, "nearest_rows", counting)
    return found


def test_neighbours_and_walks_are_found_once(searches):
    table, walk = table_of(), AnchorWalk(4, 5, "greedy")
    first = anchors_of(table, walk, [Ends(3, 0), Ends(4, 0), Ends(3, 0)])
    assert torch.equal(first[0], first[2])
    count = len(searches)
    assert searches[0] == 2
    again = anchors_of(table, walk, [Ends(4, 0), Ends(3, 0)])
    assert torch.equal(again, first[[1, 0]])
    assert len(searches) == count
    # Another strategy makes a new walk among the known neighbours.
    anchors_of(table, AnchorWalk(1, 5, "maxcount"), [Ends(3, 0)])
    assert len(searches) == count


def test_an_edited_table_is_searched_again(searches):
    table, walk = table_of(), AnchorWalk(3, 5, "greedy")
    before = anchors_of(table, walk, [Ends(3, 0)])
    with torch.no_grad():
        table.weight.copy_(table_of(1).weight)
    count = len(searches)
    after = anchors_of(table, walk, [Ends(3, 0)])
    assert len(searches) > count
    assert torch.equal(after, anchors_of(table_of(1), walk, [Ends(3, 0)]))
    assert not torch.equal(after, before)


def test_forgotten_with_the_table():
    table = table_of()
    anchors_of(table, AnchorWalk(2, 5, "greedy"), [Ends(3, 0)])
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("base", [0, ZERO])
def test_no_word_twice_and_no_way_out_of_the_baseline(base):
    walk = anchors_of(table_of(size=6), AnchorWalk(9, 5, "maxcount"), [Ends(3, base)])[0].tolist()
    # All four or five other words, then the baseline for good.
    others = {0, 1, 2, 4, 5} - {base}
    assert set(walk[: len(others)]) == others
    assert walk[len(others) :] == [base] * (9 - len(others))
    assert anchors_of(table_of(size=6), AnchorWalk(2, 5, "greedy"), [Ends(0, 0)]).tolist() == [[0, 0]]


def test_a_hook_moves_the_anchors_and_not_the_search():
    table, walk, pairs = table_of(), AnchorWalk(3, 5, "greedy"), [Ends(3, 0), Ends(4, 0)]
    base = torch.zeros(2, 5)
    ids = anchors_of(table, walk, pairs)
    plain = embedded(table, ids, pairs, base)
    with table.register_forward_hook(lambda _module, _args, output: output + 1):
        assert torch.equal(anchors_of(table_of(), walk, pairs), ids)
        assert torch.equal(anchors_of(table, walk, pairs), ids)
        torch.testing.assert_close(embedded(table, ids, pairs, base), plain + 1)
    assert torch.equal(embedded(table, torch.tensor([[0, 3, 0]]), [Ends(3, 0)], base[:1])[0, 0], base[0])


def test_points_are_monotone_from_the_baseline_to_the_word():
    rng = np.random.default_rng(4)
    base, ends = (torch.from_numpy(rng.normal(size=(20, 5))) for _ in range(2))
    found = torch.from_numpy(rng.normal(size=(20, 7, 5)))
    points = monotone_points(base, ends, found)
    assert torch.equal(points[:, 0], base)
    assert torch.equal(points[:, -1], ends)
    steps = points.diff(dim=1)
    assert bool((steps * (ends - base).sign()[:, None] >= -1e-12).all())
