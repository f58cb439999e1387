"""KernelSHAP: Shapley values by weighted least squares."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.errors import InputError
from raison.core.inputs.unit import runs_of
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import CAUTION, GROUP_INTERVALS
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.shapley.budget import FORMULA, Samples, usual_samples
from raison.numerics.shapley.gaussian_process import process_shapley
from raison.numerics.shapley.intervals import intervals_of
from raison.numerics.shapley.regression import (
    RegressionPlan,
    damped_shapley,
    plan_coalitions,
    solve_shapley,
)

Estimator = Literal["damped_least_squares", "least_squares", "gaussian_process"]
DAMPED = "damped least squares"
"""In the note `solution`."""
SCARCE = 3
"""Number of coalition pairs per unit below which the regression is damped."""


@dataclass(frozen=True)
class KernelShap(Method):
    """Shapley values by regression: each unit's average effect over all orders of adding the units.

    phi = argmin sum_S mu(S) (v(S) - v(empty) - sum_{i in S} phi_i)^2 subject to sum_i phi_i = v(all) - v(empty), with
    mu(S) = (n - 1) / (C(n, |S|) |S| (n - |S|)) (Lundberg and Lee 2017, theorem 2; the constraint as in Covert and Lee
    2021). Returns (batch, units), signed, in units of the target.

    `samples` is the maximum number of different coalitions S evaluated per text, the full and the empty one included.
    None is `samples_per_unit` times n if that is given, otherwise 4 n + 128. min(samples, 2^n) forward passes.
    Coalitions come with their complements, sizes follow mu, outer sizes are enumerated first, and none is drawn twice.

    `estimator` turns the values into scores:

    - "least_squares" is the formula above; where samples < 2 n, the solution of least norm. With hardly more coalitions
      than units its error is large.
    - "damped_least_squares", the default, therefore adds, only where samples < 6 n, the weight of one more pair of
      coalitions on which all units have equal effects.
    - "gaussian_process" uses the same coalitions. It conditions a random set function on them, in which interactions
      are likelier the more their units matter and the fewer they are, and returns its mean Shapley values
      (numerics/shapley/gaussian_process.py; the prior is fitted to the text's own values by marginal likelihood, MacKay
      1992). It passes through all evaluated values, but is no longer the paper's regression.

    benchmarks/results/shapley_error.md compares the errors of the three, and of other libraries, on 12 words at equal
    samples.

    Guarantees the sum always, up to rounding; each single score only as the samples grow. A unit that changes nothing
    scores zero only if the result is exact, which it is with samples >= 2^n. The note `solution` says what was done:
    "exact", "damped least squares", "least squares", "minimum norm" or "gaussian process".

    The notes `intervals` and `group_intervals` (sums over runs of units with the same name, such as the sentences of a
    source) have 95 % intervals: how far least squares would vary with other drawn coalitions. They extend to a damped
    score that lies outside. An exact score is its own interval. There are none with fewer pairs of coalitions than
    units, where one drawn pair alone determines a score, or with "gaussian_process".

    Differences from the paper: the damping; the sum is a constraint that is eliminated, not two rows of huge weight; no
    L1 selection of units; sampled levels are stratified by size, with equal weights instead of counted duplicates.

    Reference: lundberg2017unified; covert2021improving; mackay1992bayesian.
    """

    samples: Samples = None
    samples_per_unit: Annotated[int | None, Setting(least=1)] = None
    estimator: Estimator = "damped_least_squares"

    reference: ClassVar[str] = "lundberg2017unified"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.COMPLETE, Property.RANDOM})
    passes: ClassVar[str] = f"min(samples, 2^n) forward; samples = samples_per_unit n, or {FORMULA}, unless given"

    def consistent(self) -> None:
        if self.samples is not None and self.samples_per_unit is not None:
            raise InputError("kernel_shap accepts samples or samples_per_unit, not both: drop one of them.")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        plans = [plan_coalitions(n, self._budget(n) - 2, rng) for n, rng in zip(counts, rngs, strict=True)]
        keeps = [
            torch.from_numpy(np.concatenate([np.ones((1, n), dtype=bool), np.zeros((1, n), dtype=bool), plan.keeps]))
            for n, plan in zip(counts, plans, strict=True)
        ]
        rows, solutions = [], []
        for text, (plan, text_values) in enumerate(zip(plans, problem.values(keeps), strict=True)):
            phi, solution = self._solve(plan, text_values.numpy())
            rows.append(torch.from_numpy(phi))
            solutions.append(solution)
            if not plan.exact and len(text_values) <= counts[text]:
                problem.ledger.notes[text][CAUTION] = _too_few(len(text_values), counts[text])
            if solution != "gaussian process":
                groups = runs_of(problem.encoding.units[text])
                problem.ledger.notes[text] |= _noted(plan, phi, solution, text_values.numpy(), groups)
        problem.note("solution", solutions)
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=min(self._budget(units), 2**units))

    def _solve(
        self, plan: RegressionPlan, evaluated: Float[np.ndarray, " values"]
    ) -> tuple[Float[np.ndarray, " units"], str]:
        """Scores from the values of the full and the empty text and of the plan's coalitions, and what they are."""
        full, empty, values = float(evaluated[0]), float(evaluated[1]), evaluated[2:]
        gains, total = values - empty, full - empty
        if not plan.exact:
            if self.estimator == "gaussian_process":
                return self._process(plan, evaluated), "gaussian process"
            if self.estimator == "damped_least_squares" and len(values) < 2 * SCARCE * plan.keeps.shape[1] - 2:
                return damped_shapley(plan.keeps, plan.weights, gains, total), DAMPED
        phi, determined = solve_shapley(plan.keeps, plan.weights, gains, total)
        return phi, "exact" if plan.exact else "least squares" if determined else "minimum norm"

    def _process(self, plan: RegressionPlan, evaluated: Float[np.ndarray, " values"]) -> Float[np.ndarray, " units"]:
        full, empty, values = float(evaluated[0]), float(evaluated[1]), evaluated[2:]
        # The second half of the plan are the complements of the first.
        half = len(values) // 2
        keeps = np.concatenate([np.ones((1, plan.keeps.shape[1]), dtype=bool), plan.keeps[:half]])
        odds = np.concatenate([[full - empty], values[:half] - values[half:]]) / 2
        return process_shapley(keeps, odds)

    def _budget(self, units: int) -> int:
        if self.samples is not None:
            return self.samples
        return usual_samples(units) if self.samples_per_unit is None else max(2, self.samples_per_unit * units)


def _too_few(evaluated: int, units: int) -> str:
    enough = usual_samples(units)
    return f"{evaluated} evaluations cannot tell {units} units apart: give more samples, such as samples={enough}"


def _noted(
    plan: RegressionPlan,
    phi: Float[np.ndarray, " units"],
    solution: str,
    evaluated: Float[np.ndarray, " values"],
    groups: list[list[int]],
) -> dict[str, object]:
    """The notes of intervals; none where too few coalitions were drawn."""
    between = intervals_of(plan, evaluated[2:] - evaluated[1], phi, damped=solution == DAMPED)
    if between is None:
        return {}
    alone = [[number] for number in range(len(phi))]
    return {"intervals": between(alone), GROUP_INTERVALS: between(groups)}
