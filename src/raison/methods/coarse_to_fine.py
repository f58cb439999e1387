"""Effects of parts of a text, removed and alone, from coarse to fine."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.perturbation.halving import Halving

ROUNDS = 8
"""One eighth of all halvings are made before effects are ranked again, so that evaluations fill batches."""
EACH = 4
"""Evaluations of a halving: each half removed, and each half alone."""


@dataclass(frozen=True)
class CoarseToFine(Method):
    """Effects of parts of a text, split in half where the effect is large; for texts with more units than the budget
    has passes.

    A part C has the effect e(C) = 1/2 (v(all) - v(all but C)) + 1/2 (v(C) - v(none)), the mean of what it takes away
    from the whole text (Li et al. 2016) and what it adds to the empty one, with v the target and removal the problem's
    own. The whole text is one part; the part of several units with the largest |e| is cut into its first half and the
    rest, until the passes are spent: an eighth of all halvings at a time, for all texts together. A unit's score is its
    part's effect, divided by the part's units. Returns (batch, units), signed, in units of the target.

    `samples` is the maximum number of evaluations per text, the full and the empty text included, four for each
    halving. With 4 n - 2 every unit is a separate part.

    Guarantees no sum, and no zero for a unit that changes nothing while it shares a part with others. Redundant units,
    and units that need each other, get at least a part of their effect: each of the two contexts shows one of these
    cases.

    Unlike hierarchical_occlusion it needs no groups: it cuts a text wherever the effects are large, as far as the
    passes reach, and every unit has a score. There, groups are named, a few are opened, and the scores are exact.

    Differences from the papers: the parts and both contexts. benchmarks/results/few_passes.md compares its faithfulness
    with that of kernel_shap at equal passes, by the length of the text.

    Reference: li2016understanding, after zeiler2014visualizing.
    """

    samples: Annotated[
        int, Setting(least=2, words="a whole number of at least 2, as the full and the empty text count")
    ] = 100

    reference: ClassVar[str] = "li2016understanding"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.ADAPTIVE})
    passes: ClassVar[str] = "at most samples forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        ends = problem.values([torch.tensor([[False] * n, [True] * n]) for n in counts])
        texts = [Halving.whole(n, self._halvings(n), float(v[1] - v[0])) for n, v in zip(counts, ends, strict=True)]
        while any(text.going_on for text in texts):
            inside = [
                torch.from_numpy(text.ask(max(1, self._halvings(n) // ROUNDS)))
                for text, n in zip(texts, counts, strict=True)
            ]
            alone, without = problem.values(inside), problem.values([~parts for parts in inside])
            for text, (none, whole), put_in, left in zip(texts, ends, alone, without, strict=True):
                text.tell(((whole - left + put_in - none) / 2).numpy())
        return pad_sequence([torch.from_numpy(text.scores()) for text in texts], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2 + EACH * self._halvings(units))

    def _halvings(self, units: int) -> int:
        return min((self.samples - 2) // EACH, units - 1)
