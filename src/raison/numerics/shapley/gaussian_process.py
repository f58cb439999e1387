"""Shapley values of a random set function: a Gaussian process over coalitions, conditioned on those evaluated.

With z in {-1, 1}^n encoding S, every game is sum_A w_A prod_{i in A} z_i, and its Shapley values are phi_i = sum over
odd A with i of 2 w_A / |A|: even interactions have none, and a coalition and its complement together show the odd part
alone, u(S) = (v(S) - v(not S)) / 2. The prior of u is

    k(S, T) = a odd part of prod_i (1 + r_i z_i(S) z_i(T)) / (1 + r_i)  +  a b [S = T],

so that an interaction A has a variance in proportion to prod_{i in A} r_i: units that matter interact, and few at a
time. The second part lets every coalition deviate independently of the first. The posterior mean of phi is linear in u,
since 1 / |A| is the integral of t^(|A| - 1): Gauss-Legendre quadrature of the product's derivative with n // 2 + 1
nodes is exact.
"""

from math import comb

import numpy as np
from jaxtyping import Bool, Float

FITTED = 128
"""Maximum number of pairs that the prior is fitted on, evenly spaced if there are more, which bounds the time."""
ROUNDS = 12
START, LARGEST, SMALLEST = 2.5, 0.9, 1e-4

Pairs = Float[np.ndarray, "pairs units"]
Rates = Float[np.ndarray, " units"]
Square = Float[np.ndarray, "pairs pairs"]


def process_shapley(keeps: Bool[np.ndarray, "pairs units"], odds: Float[np.ndarray, " pairs"]) -> Rates:
    """The posterior mean of the Shapley values, from one coalition of each pair and its odd part u.

    If the full coalition is among them, they sum to v(full) - v(empty); if all are, they are exact.
    """
    if not odds.any():
        return np.zeros(keeps.shape[1])
    signs = np.where(keeps, 1.0, -1.0)
    chosen = np.unique(np.linspace(0, len(odds) - 1, FITTED).astype(int))
    rates, noise = fit_prior(signs[chosen], odds[chosen])
    plus, minus = _products(signs, rates)
    odd = (plus - minus) / 2
    scale = odd[0, 0]
    weights = np.linalg.solve(odd / scale + noise * np.eye(len(odds)), odds)
    return np.asarray(smooth_values(signs, rates).T @ weights / scale + lone_values(keeps).T @ (noise * weights))


def fit_prior(signs: Pairs, odds: Float[np.ndarray, " pairs"]) -> tuple[Rates, float]:
    """The r and b that maximise the likelihood of the observations; a has a closed form.

    Where the likelihood is stationary, the share of the data's fit that a rate explains equals the share that it would
    explain by chance. Each round moves the rates by the root of that ratio (MacKay 1992's updates), damped by one
    pseudo-observation so that few data do not decide.
    """
    count, units = signs.shape
    rates, noise = np.full(units, min(0.5, START / units)), 0.01
    for _ in range(ROUNDS):
        plus, minus = _products(signs, rates)
        odd = (plus - minus) / 2
        # Every coalition has the same prior variance.
        scale = odd[0, 0]
        inverse = np.linalg.inv(odd / scale + noise * np.eye(count))
        weights = inverse @ odds
        size = float(odds @ weights) / count
        explained, chance = np.empty(units), np.empty(units)
        for unit in range(units):
            step = rates[unit] * np.outer(signs[:, unit], signs[:, unit])
            slope = (plus * (step / (1 + step)) + minus * (step / (1 - step))) / (2 * scale)
            explained[unit] = weights @ slope @ weights / size
            chance[unit] = (inverse * slope).sum()
        rates = np.clip(rates * np.sqrt((explained + 1) / (chance + 1)), SMALLEST, LARGEST)
        lone = (noise * float(weights @ weights) / size + 0.1) / (noise * float(np.trace(inverse)) + 0.1)
        noise = float(np.clip(noise * np.sqrt(lone), 1e-8, 10.0))
    return rates, noise


def smooth_values(signs: Pairs, rates: Rates) -> Pairs:
    """Shapley values of the game T -> odd part of the product of S and T, for each S."""
    nodes, shares = np.polynomial.legendre.leggauss(signs.shape[1] // 2 + 1)
    values = np.zeros_like(signs)
    for node, share in zip((nodes + 1) / 2, shares / 2, strict=True):
        step = node * rates * signs
        above, below = (1 + step) / (1 + rates), (1 - step) / (1 + rates)
        others = above.prod(axis=1, keepdims=True) / above + below.prod(axis=1, keepdims=True) / below
        values += share * others * rates * signs / (1 + rates)
    return values


def lone_values(keeps: Bool[np.ndarray, "pairs units"]) -> Pairs:
    """Shapley values of the game that is 1 on S, -1 on its complement and 0 elsewhere, for each S."""
    units = keeps.shape[1]
    sizes = keeps.sum(axis=1).tolist()
    # The full coalition has no player outside, the empty one none inside.
    inside = np.array([2 / (max(size, 1) * comb(units, size)) for size in sizes])
    outside = np.array([2 / (max(units - size, 1) * comb(units, size)) for size in sizes])
    return np.where(keeps, inside[:, None], -outside[:, None])


def _products(signs: Pairs, rates: Rates) -> tuple[Square, Square]:
    """prod_i (1 + r_i z_i z'_i) / (1 + r_i) of every two rows, and of every row with the complement of another."""
    plus = np.ones((len(signs), len(signs)))
    minus = plus.copy()
    for unit, rate in enumerate(rates.tolist()):
        step = rate * np.outer(signs[:, unit], signs[:, unit])
        plus *= (1 + step) / (1 + rate)
        minus *= (1 - step) / (1 + rate)
    return plus, minus
