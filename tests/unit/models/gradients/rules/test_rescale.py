"""Finite differences in place of slopes: exact sums, and derivatives where two points meet."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import activations

from raison.core.errors import UnsupportedError
from raison.models.gradients.rules.function_mode import applied
from raison.models.gradients.rules.rescale import CLOSED, ELEMENTWISE, rescale_rules
from raison.numerics.gradients import rescale


def test_every_elementwise_rule_names_a_function_of_torch() -> None:
    """A call is known by its function's own name, which is not always the name it is imported by."""
    places = (torch, nn.functional, torch.special, Tensor)
    names = {getattr(function, "__name__", "") for place in places for function in vars(place).values()}
    assert set(ELEMENTWISE) | set(CLOSED) <= names


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def factors(function: Callable[..., Tensor], first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """What stands for the gradient at `first` when `second` is the baseline, and the sums of both values."""
    points = torch.cat([first, second]).requires_grad_()
    with applied(rescale_rules(len(points)), function if isinstance(function, nn.Module) else nn.Identity()):
        values = function(points)
    upper, lower = values.chunk(2)
    (slopes,) = torch.autograd.grad(upper.sum(), points)
    assert torch.equal(values, function(points))
    assert torch.all(slopes[len(first) :] == 0)
    return slopes[: len(first)], (upper - lower).detach()


LAYER, RMS = nn.LayerNorm(6).double(), nn.RMSNorm(6, eps=1e-6).double()
for _norm in (LAYER, RMS):
    _norm.weight.data = random(6, seed=9)
LAYER.bias.data = random(6, seed=8)

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu in several calls": activations.NewGELUActivation(),
    "gelu as a module": activations.GELUTanh(),
    "silu": nn.functional.silu,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "log": lambda x: torch.log(x.square() + 0.1),
    "power": lambda x: x.pow(3) + x**2 + x.square(),
    "roots": lambda x: torch.sqrt(x * x + 1) + torch.rsqrt(x * x + 1) + (x * x + 1) ** -0.5,
    "reciprocal": lambda x: 1 / (x * x + 1) + (x * x + 2).reciprocal(),
    "quotient": lambda x: x.sin() / (x * x + 1),
    "gate": lambda x: nn.functional.silu(x[..., :3]) * x[..., 3:],
    "product that broadcasts": lambda x: x * x.mean(-1, keepdim=True),
    "matmul": lambda x: x @ x.mT.tanh(),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "softmax": lambda x: x.softmax(-1) * 3,
    "softmax of masked scores": lambda x: nn.functional.softmax(x.masked_fill(torch.arange(6) > 3, -torch.inf), dim=-1),
    "log softmax": lambda x: x.log_softmax(1),
    "log sum exp": lambda x: torch.logsumexp(x, -1) + x.logsumexp(-1, keepdim=True)[..., 0],
    "layer norm": LAYER,
    "rms norm": RMS,
    "rms norm in several calls": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "attention": lambda x: nn.functional.softmax(x @ x.mT / 2, dim=-1) @ nn.functional.gelu(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_to_the_difference(name: str) -> None:
    first, second = random(2, 4, 6), 2 * random(2, 4, 6, seed=1)
    slopes, change = factors(FUNCTIONS[name], first, second)
    spread = change.flatten(1).sum(1)
    assert spread.abs().max() > 1e-3 or name in ("softmax", "softmax of masked scores")
    torch.testing.assert_close((slopes * (first - second)).flatten(1).sum(1), spread, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tends_to_the_gradient(name: str) -> None:
    first = random(2, 4, 6)
    point = first.clone().requires_grad_()
    (expected,) = torch.autograd.grad(FUNCTIONS[name](point).sum(), point)
    for distance in (0.0, 1e-7):
        slopes, _ = factors(FUNCTIONS[name], first, first + distance)
        torch.testing.assert_close(slopes, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "softmax of masked scores", "log softmax"])
def test_every_output_of_a_softmax_is_explained(name: str) -> None:
    # The sum over a softmax's outputs is constant: look at one of them.
    first, second = 5 * random(2, 4, 6), 5 * random(2, 4, 6, seed=1)
    slopes, change = factors(lambda x: FUNCTIONS[name](x)[..., 1], first, second)
    assert change.abs().max() > 0.1
    torch.testing.assert_close((slopes * (first - second)).sum(-1).sum(-1), change.sum(-1), rtol=0, atol=1e-9)


def test_a_constant_added_to_scores_does_nothing() -> None:
    scores = random(3, 5)
    pull = rescale.softmax_pull(scores + 7, scores, -1)
    torch.testing.assert_close(pull(random(3, 5, seed=2)).sum(-1), torch.zeros(3, dtype=torch.float64))
    weights = rescale.log_sum_exp_factors(scores + 7, scores, -1)
    torch.testing.assert_close(weights, scores.softmax(-1))


def test_scores_far_apart_stay_finite() -> None:
    first = torch.tensor([[0.0, 900.0, -900.0, -torch.inf]], dtype=torch.float64)
    second = torch.tensor([[900.0, 0.0, 3.0, -torch.inf]], dtype=torch.float64)
    grads = torch.eye(4, dtype=torch.float64)
    change = first.softmax(-1) - second.softmax(-1)
    way = torch.where(torch.isfinite(first), first - second, 0)
    for place in range(4):
        found = rescale.softmax_pull(first, second, -1)(grads[place][None])
        assert torch.isfinite(found).all()
        torch.testing.assert_close((found * way).sum(-1), change[:, place], rtol=0, atol=1e-9)


def test_log_sinhc() -> None:
    points = torch.tensor([0.0, 1e-9, 1e-3, 0.0099, 0.0101, 1.0, 30.0], dtype=torch.float64)
    expected = torch.where(points > 0, (points.sinh() / points.clamp_min(1e-300)).log(), 0)
    torch.testing.assert_close(rescale.log_sinhc(points), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(rescale.log_sinhc(-points), expected, rtol=0, atol=1e-12)
    large = torch.tensor([1e4], dtype=torch.float64)
    torch.testing.assert_close(rescale.log_sinhc(large), large - (2 * large).log())


def test_the_batch_must_come_first() -> None:
    with pytest.raises(UnsupportedError, match="first axis"):
        factors(lambda x: torch.tanh(x.sum(0)), random(2, 3), random(2, 3, seed=1))
