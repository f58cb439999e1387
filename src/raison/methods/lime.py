"""LIME: a local linear model."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.perturbation.surrogate import weighted_ridge
from raison.numerics.shapley.budget import FORMULA, Samples, usual_samples


@dataclass(frozen=True)
class Lime(Method):
    """Coefficients of a linear model that approximates the target around the text.

    c = argmin sum_s w_s (v(z_s) - b - z_s . c)^2 + alpha |c|^2 over c and b (Ribeiro et al. 2016, equations 1 and 2),
    with z_s the keep of sample s, w_s = sqrt(exp(-d_s^2 / kernel_width^2)), d_s = 100 (1 - cosine(z_s, all ones)). The
    text itself is the first sample; every other one removes k units, with k uniform on 1..n and the units uniform.
    Returns (batch, units), signed, in units of the target.

    `samples` counts the rows of the regression, the text itself included; None is 4 n + 128. At most min(samples, 2^n)
    forward passes: equal samples are evaluated once. The note `r_squared` holds the linear model's weighted fit.

    Guarantees no sum, and no exact value as samples grow: ridge regression shrinks the scores towards zero, and what
    they converge to depends on the kernel.

    Differences from the paper and its package: every unit gets a score (the package keeps 10 words, chosen by a first
    regression); 4 n + 128 samples instead of 5000; repeated words are separate units (the package removes all
    occurrences at once unless bow=False); removal is the problem's own, not deletion of the characters.

    Reference: ribeiro2016should.
    """

    samples: Samples = None
    kernel_width: Annotated[float, Setting(above=0, words="a number above 0, such as 25")] = 25.0
    alpha: Annotated[float, Setting(least=0, words="a penalty of at least 0, such as 1")] = 1.0

    reference: ClassVar[str] = "ribeiro2016should"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.LINEAR, Property.RANDOM})
    passes: ClassVar[str] = f"at most min(samples, 2^n) forward; samples = {FORMULA} unless given"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        keeps = [self._sample(n, rng) for n, rng in zip(counts, rngs, strict=True)]
        rows, fits = [], []
        for keep, values in zip(keeps, problem.values([torch.from_numpy(keep) for keep in keeps]), strict=True):
            surrogate = weighted_ridge(keep, values.numpy(), self._weights(keep), self.alpha)
            rows.append(torch.from_numpy(surrogate.coefficients))
            fits.append(surrogate.r_squared)
        problem.note("r_squared", fits)
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=min(self._budget(units), 2**units))

    def _budget(self, units: int) -> int:
        return usual_samples(units) if self.samples is None else self.samples

    def _sample(self, units: int, rng: np.random.Generator) -> Bool[np.ndarray, "masks units"]:
        removed = rng.integers(1, units + 1, size=(self._budget(units) - 1, 1))
        # A random permutation's ranks below k are k units chosen uniformly.
        ranks = rng.random((len(removed), units)).argsort(axis=1)
        return np.concatenate([np.ones((1, units), dtype=bool), ranks >= removed])

    def _weights(self, keeps: Bool[np.ndarray, "masks units"]) -> Float[np.ndarray, " masks"]:
        # The cosine of a 0/1 row with all ones is the root of its mean; for the empty row, 0 by convention.
        distance = 100 * (1 - np.sqrt(keeps.mean(axis=1)))
        # Under a very small width the quotient is infinite, and the weight 0.
        with np.errstate(over="ignore"):
            return np.exp(-((distance / self.kernel_width) ** 2) / 2)
