"""Owen values on a balanced binary tree over the units in reading order."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.numerics.shapley.budget import FORMULA, Samples, usual_samples
from raison.numerics.shapley.tree import OwenTree, tree_evaluations

ROUND, ROUNDS = 5, 8
"""Clusters split before pending ones are ranked again: five, as in shap, or an eighth of all splits if that is more,
so that evaluations fill batches.
"""


@dataclass(frozen=True)
class PartitionShap(Method):
    """Shapley values of a game played between halves: of the text, of each half, and so on down to the units.

    A cluster of k > 1 units is cut into its first k // 2 units and the rest. A cluster C in a context S (units outside
    it that are present) has the credit v(S with C) - v(S). Its halves A and B divide this credit by the Shapley values
    of two players: A gets half of v(S with A) - v(S) and half of v(S with C) - v(S with B). Each half then divides the
    first part in context S and the second in context S with B. A unit's score is the sum of what reaches it: the Owen
    value (Owen 1977) for the nested unions of the tree. Returns (batch, units), signed, in units of the target.

    `samples` is the maximum number of evaluations per text, the full and the empty text included; None is 4 n + 128.
    The exact values take E(n) = 2 + sum over clusters at depth d of 2 2^d, about 2/3 n^2 (108 for 12 units). With
    fewer, the waiting cluster with the largest |credit| is split first: five or an eighth of all splits at a time, for
    all texts together. A cluster that is never split is shared equally by its units. min(samples, E(n)) forward passes,
    one fewer if that is odd. The note `solution` is "exact" or the number of credits that were shared.

    Guarantees the sum v(all) - v(empty) always, and the Owen values if exact. These are not the Shapley values: a unit
    joins only sets that respect the tree. A unit that changes nothing scores zero only if the result is exact.

    Differences from shap's PartitionExplainer: the tree is balanced and in reading order (for text, shap scores merges
    by punctuation). The budget counts the two ends and is never exceeded. With more than about 80 evaluations, more
    than five clusters are split per round, so fewer splits use the newest credits. Ties are resolved by age, not at
    random.

    Reference: owen1977values; lundberg2017unified.
    """

    samples: Samples = None

    reference: ClassVar[str] = "owen1977values"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.COMPLETE, Property.ADAPTIVE})
    passes: ClassVar[str] = f"min(samples, E(n)) forward, E(n) about 2/3 n^2; samples = {FORMULA} unless given"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        splits = [self._splits(n) for n in counts]
        # Where all clusters will be split, their order does not matter: a whole depth is one round.
        whole = [self.cost(n).forwards >= tree_evaluations(n) for n in counts]
        most = [2**n if all_ else max(ROUND, k // ROUNDS) for n, k, all_ in zip(counts, splits, whole, strict=True)]
        ends = problem.values([torch.tensor([[False] * n, [True] * n]) for n in counts])
        trees = [OwenTree.planted(n, k, *v.tolist()) for n, k, v in zip(counts, splits, ends, strict=True)]
        while any(tree.growing for tree in trees):
            keeps = [torch.from_numpy(tree.ask(m)) for tree, m in zip(trees, most, strict=True)]
            values_of = problem.values(keeps)
            for tree, values in zip(trees, values_of, strict=True):
                tree.tell(values.numpy())
        problem.note("solution", [f"{len(tree.pending)} shared" if tree.pending else "exact" for tree in trees])
        return pad_sequence([torch.from_numpy(tree.owen()) for tree in trees], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2 + 2 * self._splits(units))

    def _splits(self, units: int) -> int:
        samples = usual_samples(units) if self.samples is None else self.samples
        return (min(samples, tree_evaluations(units)) - 2) // 2
