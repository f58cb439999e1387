"""How often a claim is decided where there is no difference, and where there is one, by rule and number of texts.

Differences of texts are drawn from distributions of mean zero (or shifted by 0.8 of their standard deviation), 2,000
samples each. A rule decides where it calls the claim "holds" or "fails".

    interval      the 95 % percentile bootstrap interval leaves zero out
    permutation   the interval does, and the sign-flip permutation test has p < 0.05
    studentised   the interval does, and the studentised bootstrap has p < 0.05

Values of a known range are drawn from distributions whose mean is a border, and compared with it by raison's own rule,
with its second test alone and with the bet on the range beside it: claim_rules_bounded.
"""

from collections.abc import Callable

import numpy as np
from common import save

from raison.numerics.statistics.bounded import Bounds
from raison.numerics.statistics.paired import against
from raison.runs.judging import finding_of

SAMPLES, RESAMPLES, SHIFT, LEVEL = 2_000, 2_000, 0.8, 0.05
COUNTS = (2, 5, 8, 12, 16, 20, 25, 30, 50)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def zero_inflated(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Seven texts in ten do not differ."""
    return np.where(rng.random(shape) < 0.7, 0.0, rng.normal(size=shape))


def zero_inflated_skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Three in ten are far on one side."""
    return np.where(rng.random(shape) < 0.7, 0.0, np.exp(rng.normal(size=shape))) - 0.3 * np.exp(0.5)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 3)": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed (log-normal)": lambda rng, shape: np.exp(rng.normal(size=shape)) - np.exp(0.5),
    "ties (-2 to 2)": lambda rng, shape: rng.integers(-2, 3, size=shape).astype(float),
    "hit or miss (-1, 0, 1)": lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=shape),
    "zero-inflated": zero_inflated,
    "zero-inflated, skewed": zero_inflated_skewed,
    "bounded (0 to 1)": lambda rng, shape: rng.beta(0.5, 0.5, shape) - rng.beta(0.5, 0.5, shape),
    "a share of 0.5": lambda rng, shape: (rng.random(shape) < 0.5) - 0.5,
}


def decided(values: np.ndarray, weights: np.ndarray, signs: np.ndarray) -> dict[str, float]:
    """The share of samples that each rule decides; values (texts, samples)."""
    means = weights @ values
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    sides = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    flipped = np.abs(signs @ values) >= np.abs(values.sum(axis=0)) - 1e-9
    permutation = (flipped.sum(axis=0) + 1) / (RESAMPLES + 1) < LEVEL
    found = sides != 0
    return {
        "interval": float(found.mean()),
        "permutation": float((found & permutation).mean()),
        "studentised": float((found & (studentised(values, means, weights) < LEVEL)).mean()),
    }


def studentised(values: np.ndarray, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As raison.numerics.statistics.studentised, many samples at a time."""
    centred = values - values.mean(axis=0)
    shifts = means - values.mean(axis=0)
    errors = np.sqrt(np.maximum(weights @ centred**2 - shifts**2, 0.0))
    spread = values.std(axis=0)
    still = errors <= 1e-7 * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(np.abs(shifts) <= 1e-7 * spread, 0.0, np.copysign(np.inf, shifts))
        ratios = np.where(still, far, shifts / errors)
        reached = np.where(spread > 0, values.mean(axis=0) / spread, np.copysign(np.inf, values.mean(axis=0)))
    above, below = (ratios >= reached).sum(axis=0), (ratios <= reached).sum(axis=0)
    return np.minimum(1.0, 2 * (np.minimum(above, below) + 1) / (RESAMPLES + 1))


def rows() -> list[dict[str, object]]:
    """One row for each distribution and number of texts."""
    found: list[dict[str, object]] = []
    rng = np.random.default_rng(0)
    for name, draw in DISTRIBUTIONS.items():
        deviation = draw(rng, (1, 100_000)).std()
        for count in COUNTS:
            weights = rng.multinomial(count, [1 / count] * count, size=RESAMPLES) / count
            signs = rng.choice([-1.0, 1.0], size=(RESAMPLES, count))
            values = draw(rng, (count, SAMPLES))
            none = decided(values, weights, signs)
            some = decided(values + SHIFT * deviation, weights, signs)
            found.append(
                {"distribution": name, "texts": count}
                | {f"no difference, {rule}": f"{share:.3f}" for rule, share in none.items()}
                | {f"shifted, {rule}": f"{share:.3f}" for rule, share in some.items()}
            )
    return found


BOUNDED: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float, Bounds]] = {
    "uniform": (lambda rng, n: rng.random(n), 0.5, Bounds(0.0, 1.0)),
    "beta(0.5, 0.5)": (lambda rng, n: rng.beta(0.5, 0.5, n), 0.5, Bounds(0.0, 1.0)),
    "beta(0.3, 0.9)": (lambda rng, n: rng.beta(0.3, 0.9, n), 0.25, Bounds(0.0, 1.0)),
    "beta(4, 1)": (lambda rng, n: rng.beta(4, 1, n), 0.8, Bounds(-1.0, 1.0)),
    "1, 0.9, 0.1, 0": (
        lambda rng, n: rng.choice([1, 0.9, 0.1, 0], p=[0.4, 0.1, 0.1, 0.4], size=n),
        0.5,
        Bounds(0.0, 1.0),
    ),
    "1 or -0.25": (lambda rng, n: np.where(rng.random(n) < 0.6, 1.0, -0.25), 0.5, Bounds(-1.0, 1.0)),
    "1 or 0.5": (lambda rng, n: np.where(rng.random(n) < 0.8, 1.0, 0.5), 0.9, Bounds(-1.0, 1.0)),
    "seven in ten are 0": (lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)), 0.15, Bounds(0.0, 1.0)),
}
"""How values are drawn, their mean, and their range."""


def bounded_rows() -> list[dict[str, object]]:
    """One row for each distribution of a known range and number of texts: the shares that are decided."""
    found: list[dict[str, object]] = []
    for name, (draw, mean, bounds) in BOUNDED.items():
        rng = np.random.default_rng(0)
        for count in (8, 12, 16, 24):
            decided = [0, 0]
            for _ in range(500):
                values = draw(rng, count)[:, None].astype(np.float64)
                for place, known in enumerate((None, bounds)):
                    decided[place] += finding_of(against(values, mean, bounds=known), "above") in ("holds", "fails")
            shares = {"without the range": decided[0] / 500, "with the range": decided[1] / 500}
            row = {"distribution": name, "mean": mean, "range": f"{bounds.low:g} to {bounds.high:g}", "texts": count}
            found.append(row | {rule: f"{share:.3f}" for rule, share in shares.items()})
    return found


if __name__ == "__main__":
    save("claim_rules", rows())
    save("claim_rules_bounded", bounded_rows())
