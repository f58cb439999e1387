"""The losses of attributive masking: against plain sums, and where plain sums would break."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.errors import InputError, UnknownNameError
from raison.numerics.losses.attributive_masking import (
    LossWeights,
    blend,
    check_mask_size,
    inverse_loss,
    prediction_loss,
    size_loss,
)
from raison.training.objectives.attributive_masking import AttributiveMasking

NUMBERS = st.floats(-8, 8)
ROWS = st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=4)
EXACT = {"rel": 1e-9, "abs": 1e-9}


def softmax(row: list[float]) -> list[float]:
    total = sum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@settings(max_examples=40)
@given(ROWS)
def test_losses_of_the_prediction_are_plain_sums(rows: list[list[float]]) -> None:
    logits = torch.tensor(rows, dtype=torch.float64)
    wanted = [softmax(row[::-1]) for row in rows]
    index = [number % 3 for number in range(len(rows))]
    kept = prediction_loss(logits, torch.tensor(wanted, dtype=torch.float64), False)
    lost = inverse_loss(logits, torch.tensor(index), False)
    for row, y, own, found, inverse in zip(rows, wanted, index, kept.tolist(), lost.tolist(), strict=True):
        p = softmax(row)
        assert found == pytest.approx(-sum(a * math.log(b) for a, b in zip(y, p, strict=True)), **EXACT)
        assert inverse == pytest.approx(-math.log(sum(b for j, b in enumerate(p) if j != own)), **EXACT)


@settings(max_examples=40)
@given(ROWS)
def test_with_a_sigmoid_per_class_every_class_counts_alone(rows: list[list[float]]) -> None:
    logits = torch.tensor(rows, dtype=torch.float64)
    wanted = [[sigmoid(x) for x in row[::-1]] for row in rows]
    index = [number % 3 for number in range(len(rows))]
    kept = prediction_loss(logits, torch.tensor(wanted, dtype=torch.float64), True)
    lost = inverse_loss(logits, torch.tensor(index), True)
    for row, y, own, found, inverse in zip(rows, wanted, index, kept.tolist(), lost.tolist(), strict=True):
        pairs = [(a, sigmoid(x)) for a, x in zip(y, row, strict=True)]
        expected = -sum(a * math.log(p) + (1 - a) * math.log(1 - p) for a, p in pairs)
        assert found == pytest.approx(expected, **EXACT)
        assert inverse == pytest.approx(-math.log(1 - sigmoid(row[own])), **EXACT)


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_certain_prediction_has_a_finite_loss_and_a_gradient(multi_label: bool) -> None:
    """In single precision 1 - p is zero from a logit of about 17 on."""
    logits = torch.tensor([[60.0, 0.0, 0.0]], requires_grad=True)
    loss = inverse_loss(logits, torch.tensor([0]), multi_label)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert loss.item() == pytest.approx(60 if multi_label else 60 - math.log(2), abs=1e-4)
    assert gradient[0, 0].item() == pytest.approx(1, abs=1e-6)
    assert torch.isfinite(gradient).all()
    wanted = torch.tensor([[1.0, 0.0, 0.0]])
    assert torch.isfinite(prediction_loss(-logits, wanted, multi_label)).all()


def test_two_classes_lose_what_the_other_one_wins() -> None:
    logits = torch.tensor([[0.3, -1.1]], dtype=torch.float64)
    assert inverse_loss(logits, torch.tensor([0]), False).item() == pytest.approx(
        math.log(1 + math.exp(0.3 + 1.1)), **EXACT
    )


def test_the_size_is_a_mean_over_a_text_s_own_units() -> None:
    shares = torch.tensor([[0.5, 0.9, 0.2], [0.25, 0.75, 0.99]], dtype=torch.float64)
    own = torch.tensor([[True, True, True], [True, False, False]])
    logs = [-(math.log(0.5) + math.log(0.1) + math.log(0.8)) / 3, -math.log(0.75)]
    assert size_loss(shares, own, "cross_entropy").tolist() == pytest.approx(logs, **EXACT)
    assert size_loss(shares, own, "l1").tolist() == pytest.approx([1.6 / 3, 0.25], **EXACT)


@pytest.mark.parametrize("kind", ["cross_entropy", "l1"])
def test_gradients_of_the_size_come_from_own_units_alone(kind: str) -> None:
    shares = torch.tensor([[0.5, 1.0], [0.25, 1.0]], requires_grad=True)
    own = torch.tensor([[True, False], [True, False]])
    loss = size_loss(shares, own, kind)
    (gradient,) = torch.autograd.grad(loss.sum(), shares)
    assert torch.isfinite(gradient).all()
    assert (gradient[:, 0] > 0).all()
    assert not gradient[:, 1].any()


def test_a_mask_of_one_has_a_bounded_size() -> None:
    assert size_loss(torch.ones(1, 1), torch.ones(1, 1, dtype=torch.bool), "cross_entropy").item() == 100


@pytest.mark.parametrize("one", [False, True])
def test_a_blend_goes_from_the_substitute_to_the_token(one: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    own = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    other = torch.randn(*((1, 1) if one else (2, 3)), 4, generator=generator, dtype=torch.float64)
    shares = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    found = blend(own, other, shares)
    for text in range(2):
        for token in range(3):
            a, m = float(shares[text, token]), other[0, 0] if one else other[text, token]
            torch.testing.assert_close(found[text, token], a * own[text, token] + (1 - a) * m)
    assert torch.equal(blend(own, other, torch.ones(2, 3)), own)
    assert torch.equal(blend(own, other, torch.zeros(2, 3)), other.expand(2, 3, 4))
    assert blend(own.bfloat16(), other.bfloat16(), shares).dtype == torch.bfloat16


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan, True, "1"])
@pytest.mark.parametrize("name", ["prediction", "inverse", "size"])
def test_weights_that_are_none_are_refused(name: str, value: object) -> None:
    weights = LossWeights()
    # The constructor's types are checked in the tests, not for users: the file's own check is called here.
    object.__setattr__(weights, name, value)
    with pytest.raises(InputError, match=f"the weight of the loss '{name}' cannot be .*: give a number of at least 0"):
        weights.__post_init__()


def test_weights_that_explain_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="both 0: nothing would be explained"):
        LossWeights(0.0, 0.0, 1.0)
    assert LossWeights(0.0, 0.5, 0.0).inverse == 0.5
    assert LossWeights(0.5, 0.0, 0.0).size == 0


def test_an_unknown_size_has_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'cross_entropy'"):
        check_mask_size("crossentropy")
    objective = AttributiveMasking()
    object.__setattr__(objective, "size", "l2")
    with pytest.raises(UnknownNameError, match="unknown mask size 'l2'.*Known: cross_entropy, l1"):
        objective.__post_init__()
