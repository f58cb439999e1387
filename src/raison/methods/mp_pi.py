"""MP-PI: multi-pass progressive inference."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.shapley.progressive import (
    LONGEST_OPTIMAL,
    MaskLaw,
    Sampling,
    beginnings,
    class_weights,
    coalition_weights,
    mask_law,
    pass_weights,
    sample_masks,
)
from raison.numerics.shapley.regression import Rows, solve_shapley

Weighting = Literal["pass", "class", "coalition"]
WEIGHTS = {"pass": pass_weights, "class": class_weights, "coalition": coalition_weights}

DRAWS = 8
"""Maximum number of draws per mask of the budget, since there may be fewer distinct masks than the budget allows."""


@dataclass(frozen=True)
class MpPi(Method):
    """Shapley values by regression on the intermediate predictions of a causal model for masked texts.

    Masks are drawn (equations 15 to 17 of Kariyappa et al. 2024, as corrected in raison.numerics.shapley.progressive).
    Each pass gives the values of all coalitions S that are beginnings of its mask, and

        phi = argmin sum_S w(S) (v(S) - v(empty) - sum_{i in S} phi_i)^2

    over all of them, subject to sum_i phi_i = v(all) - v(empty) (equation 11). Returns (batch, units), signed, in units
    of the target; the paper's are logits (of="logit"). v(S) is read at the last token of S's last unit, as if the text
    ended there.

    - `budget`: the maximum number of forward passes per text, the full and the removed text included. None is
      `budget_per_unit` times n (the paper's 2 n, which counts only masks). A repeated mask costs nothing: masks are
      drawn until the budget is spent on different ones.
    - `sampling`: "optimal" masks lead to coalitions near the Shapley distribution in least squares; "shapley" masks are
      drawn from it (table 4). Texts of more than 50 units use the second. The note `sampling` says which was used.
    - `suffix` keeps all units after the last drawn one (section 3.2.4).
    - `weights` are P* / P^D by classes of coalitions, their size and last unit. "pass" takes P^D as in the paper, with
      every pass counting the same; "class" takes how often a class occurs in the collected coalitions; "coalition"
      takes how often the coalition itself does.

    Guarantees the sum always. Single scores approach the Shapley values as passes grow only with sampling="shapley" and
    weights="coalition" (or "class" and no suffix), and only as far as intermediate predictions equal those of texts
    whose later units are removed. "optimal" never draws some coalitions, such as the last unit alone, and the suffix
    makes coalitions of a class unequally likely. Both leave an error that no budget removes. The paper's scheme has
    less variance, and is the better one at 2 n passes. The note `solution` is "least squares", or "minimum norm" if the
    coalitions do not determine the scores; the note `coalitions` counts them.

    Differences from the paper: its equations 14 and 17 are corrected; a coalition that comes from several masks counts
    as often; the full set, which P* does not have, and the removed text form the constraint.

    Reference: kariyappa2024progressive.
    """

    budget: Annotated[
        int | None, Setting(least=2, words="a whole number of at least 2, or None for `budget_per_unit` per unit")
    ] = None
    budget_per_unit: Annotated[int, Setting(least=1)] = 2
    sampling: Sampling = "optimal"
    suffix: bool = True
    weights: Weighting = "pass"

    reference: ClassVar[str] = "kariyappa2024progressive"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({StepLogits})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.COMPLETE, Property.RANDOM})
    passes: ClassVar[str] = "at most budget forward; budget = 2 n unless given"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        drawn = [self._masks(n, rng) for n, rng in zip(counts, rngs, strict=True)]
        ends = problem.values([torch.tensor([[True], [False]]).expand(2, n).contiguous() for n in counts])
        steps = problem.step_values([torch.from_numpy(masks) for masks, _ in drawn])
        rows, solutions, coalitions = [], [], []
        for (masks, repeats), (full, empty), values in zip(drawn, ends, steps, strict=True):
            keeps, weights, gains = self._regression(masks, repeats, values.numpy() - float(empty))
            phi, determined = solve_shapley(keeps, weights, gains, float(full - empty))
            rows.append(torch.from_numpy(phi))
            solutions.append("least squares" if determined else "minimum norm")
            coalitions.append(len(np.unique(keeps, axis=0)))
        problem.note("solution", solutions)
        problem.note("coalitions", coalitions)
        problem.note("sampling", ["shapley" if n > LONGEST_OPTIMAL else self.sampling for n in counts])
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2 + self._rounds(units))

    def _rounds(self, units: int) -> int:
        """Masks to draw. A single unit has no coalitions between none and all."""
        budget = self.budget_per_unit * units if self.budget is None else self.budget
        return max(budget - 2, 0) if units > 1 else 0

    def _law(self, units: int) -> MaskLaw:
        return mask_law(units, self.sampling, self.suffix)

    def _masks(self, units: int, rng: np.random.Generator) -> tuple[Rows, Int[np.ndarray, " masks"]]:
        """Different masks, and how often each was drawn until there were as many as the budget allows.

        Stopping there biases no weighted sum, because the decision depends only on the draws made so far.
        """
        count = self._rounds(units)
        if not count:
            return np.zeros((0, units), dtype=bool), np.zeros(0, dtype=np.int64)
        masks = sample_masks(self._law(units), DRAWS * count, rng)
        _, first = np.unique(masks, axis=0, return_index=True)
        stop = np.sort(first)[count - 1] + 1 if len(first) >= count else len(masks)
        return np.unique(masks[:stop], axis=0, return_counts=True)

    def _regression(
        self, masks: Rows, repeats: Int[np.ndarray, " masks"], gains: Float[np.ndarray, "masks units"]
    ) -> tuple[Bool[np.ndarray, "_masks units"], Float[np.ndarray, " _masks"], Float[np.ndarray, " _masks"]]:
        """Coalitions, their weights and their gains v(S) - v(empty): the beginnings of all masks."""
        if not len(masks):
            return masks, np.zeros(0), np.zeros(0)
        law = self._law(masks.shape[1])
        chains = [beginnings(mask) for mask in masks]
        rows = np.concatenate(chains)
        mask = np.repeat(np.arange(len(masks)), [len(part) for part in chains])
        # A coalition's value is read where its last unit is.
        last = rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)
        return rows, WEIGHTS[self.weights](rows, law) * repeats[mask], gains[mask, last]
