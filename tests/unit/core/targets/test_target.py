"""The scalar of a target: log-odds as their definition says, at a cost that grows with the classes alone."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from raison.core.errors import InputError
from raison.core.targets.choices import listed
from raison.core.targets.target import Target, resolve_target


class Largest(TorchDispatchMode):
    """The number of entries of the largest tensor that was made."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, torch.Tensor):
                self.entries = max(self.entries, one.numel())
        return made


def literal(logits, index):
    """log p_c/(1-p_c) = z_c - log sum_{j != c} exp z_j, row by row."""
    rows = []
    for row, c in zip(logits, index.tolist(), strict=True):
        others = torch.cat([row[:c], row[c + 1 :]])
        rows.append(row[c] - others.logsumexp(-1))
    return torch.stack(rows)


def expected(logits, target):
    value = literal(logits, target.index)
    return value if target.against is None else value - literal(logits, target.against)


def gradients(value, logits):
    (first,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), logits)
    return first, second


@pytest.mark.parametrize("against", [None, [1, 2, 0, 3]])
@pytest.mark.parametrize("classes", [4, 50])
def test_log_odds_and_their_gradients_are_those_of_the_definition(classes, against):
    logits = (5 * torch.randn(4, classes, dtype=torch.float64)).requires_grad_()
    target = Target(torch.tensor([0, 1, 2, 2]), None if against is None else torch.tensor(against), "log_odds")
    value, wanted = target.scalar(logits), expected(logits, target)
    torch.testing.assert_close(value, wanted)
    for found, right in zip(gradients(value, logits), gradients(wanted, logits), strict=True):
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_log_odds_are_exact_where_the_probability_rounds_to_one(dtype):
    logits = torch.tensor([[90.0, -90.0], [-90.0, 90.0]], dtype=dtype, requires_grad=True)
    value = Target(torch.tensor([0, 0]), None, "log_odds").scalar(logits)
    assert value.tolist() == [180.0, -180.0]
    assert value.dtype == dtype
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert gradient.tolist() == [[1.0, -1.0], [1.0, -1.0]]


def test_a_class_that_is_impossible_adds_nothing_to_the_odds():
    impossible = torch.tensor([[1.0, -torch.inf, 2.0]], requires_grad=True)
    value = Target(torch.tensor([0]), None, "log_odds").scalar(impossible)
    assert value.tolist() == [-1.0]
    (gradient,) = torch.autograd.grad(value.sum(), impossible)
    assert gradient.tolist() == [[1.0, 0.0, -1.0]]
    assert Target(torch.tensor([1]), None, "log_odds").scalar(impossible).tolist() == [-torch.inf]


def test_the_only_class_is_certain():
    assert Target(torch.tensor([0]), None, "log_odds").scalar(torch.tensor([[3.0]])).tolist() == [torch.inf]


@pytest.mark.parametrize("against", [None, torch.tensor([1, 1, 1])])
@pytest.mark.parametrize("of", ["probability", "logit", "log_odds", "margin", "log_probability"])
def test_no_scalar_needs_more_memory_than_the_logits(of, against):
    logits = torch.randn(3, 200, requires_grad=True)
    with Largest() as made:
        Target(torch.tensor([0, 5, 7]), against, of).scalar(logits).sum().backward()
    assert made.entries <= logits.numel()


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_a_margin_is_never_over_the_class_itself(chosen):
    logits = torch.full((1, 3), -torch.inf)
    logits[0, chosen] = 0.0
    target = resolve_target(None, "margin", logits, ("a", "b", "c"), False)
    assert target.index.tolist() == [chosen]
    assert target.against.tolist() != [chosen]
    assert target.scalar(logits).tolist() == [torch.inf]


def test_a_margin_is_over_the_likeliest_other_class():
    logits = torch.tensor([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    assert resolve_target(None, "margin", logits, ("a", "b", "c"), False).against.tolist() == [2, 2, 1]
    assert resolve_target(0, "margin", logits, ("a", "b", "c"), False).against.tolist() == [1, 2, 2]


def test_none_is_the_predicted_class_in_a_list_and_on_either_side_of_a_pair() -> None:
    logits, classes = torch.tensor([[0.1, 2.0, 0.3], [3.0, 0.2, 0.1]]), ("a", "b", "c")
    listed = resolve_target([None, "c"], None, logits, classes, False)
    assert listed.index.tolist() == [1, 2]
    pairs = resolve_target([("c", None), (None, "c")], None, logits, classes, False)
    assert pairs.against is not None
    assert (pairs.index.tolist(), pairs.against.tolist()) == ([2, 0], [1, 2])
    for pair in (("b", None), (None, "b"), (None, None)):
        with pytest.raises(InputError, match="both targets are the class 'b'; the model predicts it"):
            resolve_target([pair, pair], None, logits, classes, False)


def test_what_a_column_of_targets_lacks_is_none() -> None:
    assert listed(pd.Series([None, "bad"])) == [None, "bad"]
    assert listed(pd.Series([None, 0])) == [None, 0]
    assert listed(np.array([0.5, 1.0])) == [0.5, 1.0]
    assert listed(pd.Series([1, 0])) == [1, 0]
