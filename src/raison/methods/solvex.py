"""Solvex: a search for the best ordering of the units."""

from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.perturbation.beam import Beam, sets_at_most, shifted_ranks

MaskObjective = Literal["comprehensiveness", "sufficiency", "difference"]


@dataclass(frozen=True)
class Solvex(Method):
    """Ranks the units by beam search for the order whose first units are best to remove and to keep.

    The worth of an ordering is the mean over k = 1 ... n of a gain of its first k units S: v(x) - v(x without S)
    ("comprehensiveness"), v(S) - v(x) ("sufficiency") or v(S) - v(x without S) ("difference", the default of Zhou and
    Shah 2023), with v the target. Orderings grow by one unit at a time, and the best `beam` partial orderings are
    continued. The scores are ranks, n - 1/2 for the first unit down to 1/2 for the last, minus the whole number for
    which most units have the sign of their individual effect, v(x) - v(x without i). Returns (batch, units), in ranks
    and not in units of the target. The note `worth` is the worth that was reached.

    Partial orderings of the same units are merged, and no subset is evaluated twice: at depth k the search meets at
    most min(beam (n - k + 1), C(n, k)) sets, each evaluated kept and removed. The sets of one depth are evaluated
    together for all texts. With 60 units and a beam of 50 that is up to 175 thousand passes; cost() has the bound.

    Guarantees the best ordering only if the beam holds all sets of a size: beam >= C(n, floor(n / 2)). A score says
    nothing about the size of an effect, and its sign only what one whole number can say for all units. The other
    class's scores are not these with the sign reversed, because the search starts at the other end. Near-ties between
    orderings are decided by rounding.

    Differences from the paper: equal sets are merged, so that a beam of 50 holds 50 different ones; the public version
    fails with "comprehensiveness" or "sufficiency" alone; a unit may be a word or a sentence.

    Reference: zhou2023solvability.
    """

    beam: Annotated[int, Setting(least=1, words="a whole number of at least 1, such as 50")] = 50
    objective: MaskObjective = "difference"

    reference: ClassVar[str] = "zhou2023solvability"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.ADAPTIVE})
    passes: ClassVar[str] = (
        "at most 2 sum_k min(beam (n - k + 1), C(n, k)) forward; half of that plus n for a single objective"
    )

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        singles = [torch.cat([torch.ones(1, n, dtype=torch.bool), ~torch.eye(n, dtype=torch.bool)]) for n in counts]
        alone = [values.numpy() for values in problem.values(singles)]
        beams = [Beam.start(n) for n in counts]
        for depth in range(1, max(counts) + 1):
            going = [text for text, n in enumerate(counts) if n >= depth]
            longer = {text: beams[text].extended() for text in going}
            keeps = [self._keeps(longer[text].sets if text in longer else None, n) for text, n in enumerate(counts)]
            values = problem.values(keeps)
            for text in going:
                gains = self._gains(values[text].numpy(), float(alone[text][0]))
                beams[text] = longer[text].best(gains, self.beam)
        problem.note("worth", [float(beam.scores[0]) / n for beam, n in zip(beams, counts, strict=True)])
        rows = [
            torch.from_numpy(shifted_ranks(beam.orders[0], values[0] - values[1:]))
            for beam, values in zip(beams, alone, strict=True)
        ]
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        bounds = sets_at_most(units, self.beam)
        # The text itself, and all units alone removed.
        sizes = [0] * (units - 1) + [units, 1]
        for depth, bound in enumerate(bounds, start=1):
            sizes[depth] += bound if self.objective != "comprehensiveness" else 0
            sizes[units - depth] += bound if self.objective != "sufficiency" else 0
        return Cost(forwards=sum(min(limit, comb(units, size)) for size, limit in enumerate(sizes)))

    def _keeps(self, sets: Bool[np.ndarray, "beams units"] | None, units: int) -> Bool[Tensor, "_masks _units"]:
        """The keeps that a text's sets need: each set kept, then each set removed, whichever the objective uses."""
        if sets is None:
            return torch.zeros(0, units, dtype=torch.bool)
        kept = torch.from_numpy(sets)
        if self.objective == "sufficiency":
            return kept
        return ~kept if self.objective == "comprehensiveness" else torch.cat([kept, ~kept])

    def _gains(self, values: Float[np.ndarray, " _masks"], full: float) -> Float[np.ndarray, " beams"]:
        """The gain of each set, from the values of the keeps of `_keeps`."""
        if self.objective == "sufficiency":
            return values - full
        if self.objective == "comprehensiveness":
            return full - values
        kept, removed = np.split(values, 2)
        gains: Float[np.ndarray, " beams"] = kept - removed
        return gains
