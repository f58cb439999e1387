"""Finite differences in place of slopes: factors m with sum_i m_i (x_i - x0_i) = f(x) - f(x0), never divided by zero.

Every function takes the two points and gives either the factors, or a function that takes the factors of what comes out
to the factors of what went in, as a backward pass does. All of them tend to the derivative where the points meet.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Pull = Callable[[Tensor], Tensor]
"""Factors of the output -> factors of the input."""

STEP = 1e-5
"""Points that are closer than this, relative to their size, are moved apart before their difference is divided by."""


def precise(values: Tensor) -> Tensor:
    """In double precision, so that small differences keep their digits; in single on devices without double."""
    return values.detach().to(torch.float32 if values.device.type == "mps" else torch.float64)


def secant(
    function: Callable[[Tensor], Tensor], first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """(f(a) - f(b)) / (a - b) of an elementwise function that is defined everywhere."""
    middle = (first + second) / 2
    radius = torch.maximum((first - second).abs() / 2, STEP * (1 + middle.abs()))
    return (function(middle + radius) - function(middle - radius)) / (2 * radius)


def root_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Of the square root."""
    return 1 / (first.sqrt() + second.sqrt())


def inverse_root_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Of 1 / sqrt."""
    roots = first.sqrt(), second.sqrt()
    return -1 / (roots[0] * roots[1] * (roots[0] + roots[1]))


def inverse_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Of 1 / x."""
    return -1 / (first * second)


def exponential_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Of exp: the logarithmic mean of exp(a) and exp(b)."""
    return ((first + second) / 2 + log_sinhc((first - second) / 2)).exp()


def logarithm_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Of the natural logarithm."""
    return 1 / exponential_secant(first.log(), second.log())


def log_sinhc(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """log(sinh(x) / x), which is even, zero at zero, and never overflows."""
    size = values.abs()
    far = size.clamp_min(STEP)
    return torch.where(
        size < 1e-2, size.square() / 6 - size.pow(4) / 180, far + torch.log1p(-(-2 * far).exp()) - (2 * far).log()
    )


def log_sum_exp_factors(
    first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], dim: int
) -> Float[Tensor, "*shape"]:
    """Factors of log sum exp(z): with S = sum exp(z), (exp(z_j) - exp(z0_j)) / (S - S0) * (log S - log S0) / dz_j.

    They tend to softmax(z), are positive, and are those of the softmax where the points differ by a constant. Entries
    that are -inf have none.
    """
    half = (torch.logsumexp(first, dim, keepdim=True) - torch.logsumexp(second, dim, keepdim=True)) / 2
    logs = first.log_softmax(dim), second.log_softmax(dim)
    known = torch.isfinite(logs[0]) & torch.isfinite(logs[1])
    exponent = (logs[0] + logs[1]) / 2 + log_sinhc((first - second) / 2) - log_sinhc(half)
    return torch.where(known, exponent, -torch.inf).exp()


def softmax_pull(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], dim: int) -> Pull:
    """s = exp(z - log sum exp(z)): the logarithmic mean of s and s0 times (g - sum of the same, shared out by z).

    What a constant added to z would do, nothing, is kept.
    """
    weights = log_sum_exp_factors(first, second, dim)
    logs = first.log_softmax(dim), second.log_softmax(dim)
    known = torch.isfinite(logs[0]) & torch.isfinite(logs[1])
    shares = torch.where(known, exponential_secant(*logs), 0)

    def pull(grad: Tensor) -> Tensor:
        inner = grad.to(shares) * shares
        return inner - weights * inner.sum(dim, keepdim=True)

    return pull


def log_softmax_pull(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], dim: int) -> Pull:
    """log s = z - log sum exp(z)."""
    weights = log_sum_exp_factors(first, second, dim)

    def pull(grad: Tensor) -> Tensor:
        inner = grad.to(weights)
        return inner - weights * inner.sum(dim, keepdim=True)

    return pull


def norm_pull(
    first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], axes: tuple[int, ...], eps: float, centred: bool
) -> Pull:
    """y = c / sqrt(mean(c^2) + eps) over `axes`, c = x - mean(x) where `centred`, else x: before scale and shift.

    The product c * r with r = 1 / sqrt(...) gives each factor the mean of the other one at the two points.
    """
    if centred:
        first, second = (part - part.mean(axes, keepdim=True) for part in (first, second))
    powers = [part.square().mean(axes, keepdim=True) + eps for part in (first, second)]
    divisor = (powers[0].rsqrt() + powers[1].rsqrt()) / 2
    middle = (first + second) / 2
    count = first[0].numel() // powers[0][0].numel()
    slope = inverse_root_secant(*powers) * 2 / count

    def pull(grad: Tensor) -> Tensor:
        inner = grad.to(middle)
        inner = inner * divisor + (inner * middle).sum(axes, keepdim=True) * slope * middle
        return inner - inner.mean(axes, keepdim=True) if centred else inner

    return pull
