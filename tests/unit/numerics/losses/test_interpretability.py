"""The losses of IvRA against loops over texts and tokens, and sparsemax against its library and differences."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from entmax import sparsemax as library_s
from torch import Tensor

from raison.numerics.attention.interpretable import NORMS, normalised, sparsemax
from raison.numerics.losses.interpretability import (
    absolute_sufficiency_loss,
    clustering_loss,
    comprehensiveness_loss,
    consistency_loss,
    cross_entropy,
    divergence,
    divergence_sufficiency_loss,
    probability,
    smoothed,
    straight_through,
    sufficiency_loss,
    top_tokens,
)

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(row: Sequence[float]) -> list[float]:
    weights = [math.exp(score) for score in row]
    return [weight / math.fsum(weights) for weight in weights]


# Of predictions


def test_cross_entropy_and_probability_of_all_parts() -> None:
    decisions, chosen = drawn(4, 2, 5), torch.tensor([[0, 1], [4, 4], [2, 3], [1, 0]])
    losses, shares = cross_entropy(decisions, chosen), probability(decisions, chosen)
    for text in range(4):
        parts = [softmax(decisions[text, part].tolist())[chosen[text, part]] for part in range(2)]
        assert float(losses[text]) == pytest.approx(-(math.log(parts[0]) + math.log(parts[1])) / 2)
        assert float(shares[text]) == pytest.approx(parts[0] * parts[1])


def test_closed_choices_have_no_part_in_a_loss_or_its_gradient() -> None:
    open_ = drawn(3, 2, 4, seed=1)
    closed = torch.cat([open_, torch.full((3, 2, 2), -torch.inf, dtype=torch.float64)], -1)
    others, chosen = drawn(3, 2, 4, seed=2), torch.tensor([[0, 1], [3, 3], [2, 0]])
    wider = torch.cat([others, closed[..., 4:]], -1)
    for loss, wide, narrow in (
        (lambda d, _: cross_entropy(d, chosen), (closed, wider), (open_, others)),
        (lambda d, _: probability(d, chosen), (closed, wider), (open_, others)),
        (divergence_sufficiency_loss, (closed, wider), (open_, others)),
    ):
        leaves = [one.clone().requires_grad_() for one in (*wide, *narrow)]
        found, wanted = loss(*leaves[:2]), loss(*leaves[2:])
        torch.testing.assert_close(found, wanted, **EXACT)
        slopes = torch.autograd.grad(found.sum() + wanted.sum(), leaves, allow_unused=True)
        for of_wide, of_narrow in zip(slopes[:2], slopes[2:], strict=True):
            if of_narrow is not None:
                torch.testing.assert_close(of_wide[..., :4], of_narrow, **EXACT)
                assert not of_wide[..., 4:].any()


def test_losses_of_faithfulness_are_their_equations() -> None:
    whole, part = torch.tensor([0.2, 0.2, 1.0, 3.0]), torch.tensor([0.7, 2.0, 0.9, 0.1])
    for text, (x, t) in enumerate(zip(whole.tolist(), part.tolist(), strict=True)):
        found = [
            float(loss[text])
            for loss in (
                comprehensiveness_loss(whole, part, 1.0),
                sufficiency_loss(whole, part, 0.1),
                absolute_sufficiency_loss(whole, part),
            )
        ]
        # Equations 10, 11 and 16.
        expected = [1.0 + max(-1.0, x - t), 0.1 + max(-0.1, t - x), abs(t - x)]
        assert found == pytest.approx(expected, abs=1e-6)
        assert min(found) >= 0


def test_divergence_of_whole_predictions() -> None:
    whole, kept = drawn(3, 2, 4, seed=3), drawn(3, 2, 4, seed=4)
    found = divergence_sufficiency_loss(whole, kept)
    for text in range(3):
        total = 0.0
        for part in range(2):
            p, q = (softmax(one[text, part].tolist()) for one in (kept, whole))
            total += math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) / 2
        assert float(found[text]) == pytest.approx(total)
    assert divergence_sufficiency_loss(whole, whole).tolist() == pytest.approx([0] * 3, abs=1e-12)


# Of explanations


def test_top_tokens_rounds_takes_one_at_least_and_never_padding() -> None:
    scores = torch.tensor(
        [
            [0.9, 0.1, 0.3, 0.3, 0.2, 0.3, 0.05, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.5, 0.5, 0.9, 0.9, 0.9, 0.9],
        ]
    )
    # The first token is special; of the second text the last four are padding.
    scored = torch.tensor([[False, *[True] * 8], [False, *[True] * 4, *[False] * 4]])

    def chosen(share: float) -> list[list[int]]:
        found = top_tokens(scores, scored, torch.tensor([share, share]))
        return [row.nonzero()[:, 0].tolist() for row in found]

    # Equal scores: the first ones. 0.01 of 8 rounds to none: one is taken.
    assert chosen(0.01) == [[2], [3]]
    assert chosen(0.2) == [[2, 3], [3]]
    assert chosen(0.5) == [[2, 3, 4, 5], [3, 4]]
    assert chosen(0.44) == [[2, 3, 4, 5], [3, 4]]
    assert chosen(0.7) == [[1, 2, 3, 4, 5, 6], [1, 3, 4]]
    assert chosen(1.0) == [list(range(1, 9)), [1, 2, 3, 4]]
    mixed = top_tokens(scores, scored, torch.tensor([0.01, 1.0]))
    assert mixed.sum(1).tolist() == [1, 4]


def test_top_tokens_against_sorting() -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randint(0, 5, (20, 12), generator=generator).double()
    scored = torch.rand(20, 12, generator=generator) < 0.7
    scored[:, 3] = True
    shares = torch.rand(20, generator=generator, dtype=torch.float64)
    found = top_tokens(scores, scored, shares)
    for text in range(20):
        own = [token for token in range(12) if scored[text, token]]
        count = max(1, round(float(shares[text]) * len(own)))
        best = sorted(own, key=lambda token: (-float(scores[text, token]), token))[:count]
        assert found[text].nonzero()[:, 0].tolist() == sorted(best)


def test_straight_through_is_the_choice_with_the_gradient_of_the_scores() -> None:
    scores = drawn(2, 4).requires_grad_()
    chosen = torch.tensor([[True, False, False, True], [False, True, False, False]])
    weights = drawn(2, 4, seed=5)
    found = straight_through(chosen, scores)
    torch.testing.assert_close(found.detach(), chosen.double(), **EXACT)
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), scores)[0], weights, **EXACT)


def test_divergence_with_zeros_is_finite_once_smoothed() -> None:
    shares = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]], dtype=torch.float64)
    others = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.5, 0.0]], dtype=torch.float64, requires_grad=True)
    present = torch.tensor([[True] * 4, [True, True, True, False]])
    mixed, other = smoothed(shares, present, 0.1), smoothed(others, present, 0.1)
    found = divergence(mixed, other, present)
    for text, count in enumerate((4, 3)):
        p, q = (
            [0.9 * float(one[text, token]) + 0.1 / count for token in range(count)] for one in (shares, others.detach())
        )
        assert mixed[text, :count].tolist() == pytest.approx(p)
        expected = math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        assert found[text].item() == pytest.approx(expected)
    assert not mixed[1, 3]
    assert torch.isfinite(torch.autograd.grad(found.sum(), others)[0]).all()


@pytest.mark.parametrize("floor", [1e-6, 0.5])
def test_consistency_is_a_loop_over_pairs(floor: float) -> None:
    shares, states = drawn(5, 6, seed=6).softmax(-1), drawn(5, 6, 3, seed=7)
    shares[0, 2:], states[0, 2:] = 0, 0
    shares /= shares.sum(1, keepdim=True)
    found = consistency_loss(shares, states, 0.1, floor)
    total = 0.0
    for i in range(5):
        for j in range(5):
            if i == j:
                continue
            p, q = ([0.9 * share + 0.1 / 6 for share in shares[row].tolist()] for row in (i, j))
            one, other = states[i].flatten().tolist(), states[j].flatten().tolist()
            apart = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))
            total += math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) / (apart + floor)
    assert float(found) == pytest.approx(total / 20)


def test_clustering_is_a_loop_over_pairs() -> None:
    shares, labels = drawn(6, 4, seed=8).softmax(-1), torch.tensor([0, 1, 0, 2, 1, 0])
    near, far = [], []
    for i in range(6):
        for j in range(6):
            if i != j:
                apart = math.fsum((a - b) ** 2 for a, b in zip(shares[i].tolist(), shares[j].tolist(), strict=True))
                (near if labels[i] == labels[j] else far).append(apart)
    expected = math.fsum(near) / len(near) - math.fsum(far) / len(far)
    assert float(clustering_loss(shares, labels)) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [0, 0, 1], [0, 1, 1]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_class_no_pair_of_one_class_and_equal_texts(labels: list[int], dtype: torch.dtype) -> None:
    shares = drawn(1, 5).softmax(-1).to(dtype).repeat(3, 1)
    shares[2] = drawn(5, seed=2).softmax(-1)
    shares.requires_grad_()
    apart = (shares[0] - shares[2]).square().sum().item()
    found = clustering_loss(shares, torch.tensor(labels))
    expected = {(0, 0, 0): 2 / 3 * apart, (0, 1, 2): -2 / 3 * apart, (0, 0, 1): -apart, (0, 1, 1): apart / 2}
    assert found.item() == pytest.approx(expected[tuple(labels)], abs=1e-5)
    assert torch.isfinite(torch.autograd.grad(found, shares)[0]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_texts_have_finite_gradients(dtype: torch.dtype) -> None:
    shares = drawn(1, 5).softmax(-1).to(dtype).repeat(3, 1).requires_grad_()
    states = drawn(1, 5, 64, seed=1, scale=20.0).to(dtype).repeat(3, 1, 1).requires_grad_()
    found = consistency_loss(shares, states, 0.01, 1e-6)
    assert found.item() == pytest.approx(0, abs=1e-2)
    for slope in torch.autograd.grad(found, (shares, states)):
        assert torch.isfinite(slope).all()


# NORM

ROWS = drawn(40, 30, seed=9, scale=1.5)
FLAT = drawn(6, 30, seed=10, scale=0.01)
"""More entries above zero than are sorted first."""


@pytest.mark.parametrize(
    "scores", [ROWS, FLAT, drawn(3, 1), drawn(4, 5, 8, seed=2)], ids=["usual", "flat", "one", "3d"]
)
def test_sparsemax_is_the_library_s(scores: Tensor) -> None:
    leaf, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    found, wanted = sparsemax(leaf), library_s(other, dim=-1)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(sparsemax(scores), wanted, rtol=1e-6, atol=1e-6)
    weights = drawn(*scores.shape, seed=3)
    slopes = [torch.autograd.grad((out * weights).sum(), at)[0] for out, at in ((found, leaf), (wanted, other))]
    torch.testing.assert_close(*slopes, rtol=1e-6, atol=1e-6)
    assert scores.shape[-1] == 1 or (found == 0).any() or scores is FLAT


def difference(function: Callable[[Tensor], Tensor], at: Tensor, along: Tensor, step: float = 1e-5) -> Tensor:
    with torch.no_grad():
        return (function(at + step * along) - function(at - step * along)) / (2 * step)


@pytest.mark.parametrize("norm", NORMS)
def test_norm_is_differentiable_once_and_twice(norm: str) -> None:
    scores, along, weights = drawn(8, 12, seed=11), drawn(8, 12, seed=12), drawn(8, 12, seed=13)
    present = torch.rand(8, 12, generator=torch.Generator().manual_seed(14)) < 0.8
    present[:, 0] = True

    def norms(at: Tensor) -> Tensor:
        return normalised(at, norm, present)

    def slope(at: Tensor) -> Tensor:
        """The gradient of a loss that is curved in the shares."""
        with torch.enable_grad():
            leaf = at if at.requires_grad else at.clone().requires_grad_()
            return torch.autograd.grad((norms(leaf) ** 2 * weights).sum(), leaf, create_graph=True)[0]

    # In no-grad mode the library's shares are of single precision.
    with torch.enable_grad():
        ends = [norms((scores + sign * 1e-5 * along).requires_grad_()).detach() for sign in (1, -1)]
    # The change of the norm along a direction, from the gradient of a gradient: the simulated student's step needs it.
    leaf, probe = scores.clone().requires_grad_(), torch.zeros_like(scores, requires_grad=True)
    (pulled,) = torch.autograd.grad(norms(leaf), leaf, probe, create_graph=True)
    (forwards,) = torch.autograd.grad(pulled, probe, along)
    torch.testing.assert_close(forwards, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)
    leaf = scores.clone().requires_grad_()
    torch.testing.assert_close((slope(leaf) * along).sum(), (2 * norms(leaf) * weights * forwards).sum(), **EXACT)
    (second,) = torch.autograd.grad((slope(leaf) * along).sum(), leaf)
    torch.testing.assert_close(second, difference(slope, scores, along).detach(), rtol=1e-4, atol=1e-6)
    assert not forwards[~present].any()
    assert not second[~present].any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("grad", [True, False])
def test_what_is_not_present_gets_exactly_nothing(norm: str, grad: bool) -> None:
    scores = drawn(6, 9, seed=15, scale=30.0).requires_grad_(grad)
    present = torch.zeros(6, 9, dtype=torch.bool)
    for row in range(6):
        present[row, row : row + 3] = True
    found = normalised(scores, norm, present)
    assert found.sum(1).tolist() == pytest.approx([1] * 6, abs=1e-6)
    assert not found[~present].any()
    for row in range(6):
        alone = normalised(scores[row : row + 1, row : row + 3], norm)
        torch.testing.assert_close(found[row, row : row + 3], alone[0], rtol=1e-6, atol=1e-6)
