"""Finite differences in place of slopes: factors m with sum_i m_i (x_i - x0_i) = f(x) - f(x0), never divided by zero.

Every function takes the two points and returns either the factors, or a function that turns the factors of the outputs
into those of the inputs, as a backward pass does. As the two points approach each other, the factors tend to the
derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Pull = Callable[[Tensor], Tensor]
"""Factors of the output -> factors of the input."""

NEAR = 1e-3
"""For logarithms that differ by less than this, a series replaces the quotient, which would lose digits."""
PORTION = 1 << 15
"""Number of softmax entries that are processed at a time."""
STEP = 1e-5
"""Points closer than this, relative to their size, are moved apart before dividing by their difference."""


def precise(values: Tensor) -> Tensor:
    """The values in double precision, which small differences need; in single precision on devices without double."""
    return values.detach().to(torch.float32 if values.device.type == "mps" else torch.float64)


def secant(
    function: Callable[[Tensor], Tensor], first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """(f(a) - f(b)) / (a - b) of an elementwise function that is defined everywhere."""
    middle = (first + second) / 2
    radius = torch.maximum((first - second).abs() / 2, STEP * (1 + middle.abs()))
    return (function(middle + radius) - function(middle - radius)) / (2 * radius)


def root_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The secant of the square root."""
    return 1 / (first.sqrt() + second.sqrt())


def inverse_root_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The secant of 1 / sqrt."""
    roots = first.sqrt(), second.sqrt()
    return -1 / (roots[0] * roots[1] * (roots[0] + roots[1]))


def inverse_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The secant of 1 / x."""
    return -1 / (first * second)


def exponential_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The secant of exp: the logarithmic mean of exp(a) and exp(b)."""
    return ((first + second) / 2 + log_sinhc((first - second) / 2)).exp()


def logarithm_secant(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The secant of the natural logarithm."""
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
    return _factors(first, second, dim)[0]


def softmax_pull(first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], dim: int) -> Pull:
    """s = exp(z - log sum exp(z)): the logarithmic mean of s and s0 times (g - sum of the same, distributed by z).

    A constant added to z still changes nothing.
    """
    weights, shares = _factors(first, second, dim)

    def pull(grad: Tensor) -> Tensor:
        inner = grad.to(shares) * shares
        return inner - weights * inner.sum(dim, keepdim=True)

    return pull


def _factors(
    first: Float[Tensor, "*shape"], second: Float[Tensor, "*shape"], dim: int
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Factors of log sum exp, and the logarithmic means of the two softmaxes.

    A text of n tokens has n^2 entries in every head, so this is most of DeepLIFT's cost on long texts. The entries are
    processed in portions that stay in the processor's cache.
    """
    ends = [part.movedim(dim, -1) for part in (first, second)]
    rows = [part.reshape(-1, part.shape[-1]) for part in ends]
    weights, shares = torch.empty_like(rows[0]), torch.empty_like(rows[0])
    step = max(1, PORTION // rows[0].shape[-1])
    for start in range(0, len(rows[0]), step):
        some = slice(start, start + step)
        pair = _SoftmaxPair.of(rows[0][some], rows[1][some])
        weights[some], shares[some] = pair.weights(), pair.shares()
    return weights.view_as(ends[0]).movedim(-1, dim), shares.view_as(ends[0]).movedim(-1, dim)


@dataclass(frozen=True, slots=True, eq=False)
class _SoftmaxPair:
    """The softmax of two points, row by row, and their differences: two exponentials for each entry."""

    softmax: tuple[Float[Tensor, "rows entries"], Float[Tensor, "rows entries"]]
    apart: Float[Tensor, "rows entries"]
    """z - z0."""
    sums: Float[Tensor, "rows 1"]
    """log S - log S0."""
    known: Bool[Tensor, "rows entries"]

    @classmethod
    def of(cls, first: Float[Tensor, "rows entries"], second: Float[Tensor, "rows entries"]) -> "_SoftmaxPair":
        sums = torch.logsumexp(first, -1, keepdim=True) - torch.logsumexp(second, -1, keepdim=True)
        apart = first - second
        softmax = first.softmax(-1), second.softmax(-1)
        return cls(softmax, apart, sums, torch.isfinite(apart) & torch.isfinite(sums))

    def weights(self) -> Float[Tensor, "rows entries"]:
        """(s a - s0 b) / (z - z0), with a = h / (1 - exp(-h)) and b = h / (exp(h) - 1) for h = log S - log S0."""
        still = self.sums == 0
        safe = torch.where(still, torch.ones_like(self.sums), self.sums)
        over = torch.where(still, torch.ones_like(safe), -safe / torch.expm1(-safe))
        under = torch.where(still, torch.ones_like(safe), safe / torch.expm1(safe))
        return self._quotient(self.softmax[0] * over, self.softmax[1] * under, self.apart)

    def shares(self) -> Float[Tensor, "rows entries"]:
        """(s - s0) / (log s - log s0)."""
        return self._quotient(*self.softmax, self.apart - self.sums)

    def _quotient(
        self,
        one: Float[Tensor, "rows entries"],
        other: Float[Tensor, "rows entries"],
        logs: Float[Tensor, "rows entries"],
    ) -> Float[Tensor, "rows entries"]:
        """(a - b) / (log a - log b), given the difference of the logarithms: the logarithmic mean of a and b."""
        near = logs.abs() < NEAR
        far = (one - other) / torch.where(near, torch.ones_like(logs), logs)
        series = (one * other).sqrt() * (1 + logs.square() / 24)
        return torch.where(self.known, torch.where(near, series, far), 0)


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
    """y = c / sqrt(mean(c^2) + eps) over `axes`, c = x - mean(x) if `centred`, otherwise x: before scale and shift.

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
