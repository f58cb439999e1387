"""Occlusion by levels: leave one group of units out, then single units of the groups that matter most."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.inputs.unit import runs_of
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import EXACT, GROUPS
from raison.core.problem import Problem
from raison.core.settings.fields import Setting

Groups = list[list[int]]


@dataclass(frozen=True)
class HierarchicalOcclusion(Method):
    """The decrease of the target when one unit is removed, for the units of the groups whose removal matters most.

    First every group g is left out, d_g = v(all) - v(all but g). Then score_i = v(all) - v(all but i) for the units of
    at most `opened` groups with the largest d_g > 0, each at least `share` of the largest (Liu et al. 2025,
    hierarchical attribution). A group is a run of units with the same name, such as the sentences of a source; a unit
    without a name is a group by itself. Returns (batch, units), signed, in units of the target.

    The scores of opened groups and of single units are exact: those of `occlusion`. Units of other groups score 0. The
    note `groups` has d_g in the order of the text, `exact` the numbers of the units whose scores are known.

    1 + groups + units of opened groups forward passes.

    Guarantees no sum. A unit that matters is missed if its group does not matter, for example because another group
    says the same.

    Unlike coarse_to_fine it has two levels, those of sources and their sentences: it is exact where it looks, and its
    passes grow with the groups. A text without named groups is one level, and this is `occlusion` for more passes.

    Differences from the paper: the drops also decide which groups are opened, not a number alone; the target is any
    scalar, where the paper has the answer's log-probability.

    Reference: liu2025attribot; li2016understanding.
    """

    opened: Annotated[int, Setting(least=0)] = 2
    share: Annotated[float, Setting(least=0, most=1, words="a share of the largest drop, from 0 to 1")] = 0.1

    reference: ClassVar[str] = "liu2025attribot"
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.SIGNED, Property.DUMMY, Property.ADAPTIVE, Property.GROUPED}
    )
    passes: ClassVar[str] = "at most 2 n + 1 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        groups = [runs_of(units) for units in problem.encoding.units]
        counts = problem.encoding.unit_counts
        firsts = problem.values([_without(text_groups, n) for text_groups, n in zip(groups, counts, strict=True)])
        drops = [values[0] - values[1:] for values in firsts]
        known = [self._known(text_groups, drop) for text_groups, drop in zip(groups, drops, strict=True)]
        seconds = problem.values([_without([[i] for i in units], n) for units, n in zip(known, counts, strict=True)])
        rows = []
        for n, text_units, values in zip(counts, known, seconds, strict=True):
            row = torch.zeros(n, dtype=torch.float64)
            row[text_units] = values[0] - values[1:]
            rows.append(row)
        problem.note(GROUPS, [drop.tolist() for drop in drops])
        problem.note(EXACT, known)
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        # Groups of one unit need no second look, so there are at most half as many others.
        return Cost(forwards=1 + units + units // 2)

    def most_keeps(self, units: int, groups: int) -> int:
        return 1 + groups + units

    def _known(self, groups: Groups, drops: Float[Tensor, " groups"]) -> list[int]:
        """The units that are looked at: those of the opened groups, and single ones, which were already."""
        least = self.share * float(drops.max())
        several = [
            number
            for number, group in enumerate(groups)
            if len(group) > 1 and drops[number] > 0 and drops[number] >= least
        ]
        opened = sorted(several, key=lambda number: -float(drops[number]))[: self.opened]
        return [unit for number, group in enumerate(groups) if number in opened or len(group) == 1 for unit in group]


def _without(groups: Groups, units: int) -> Bool[Tensor, "masks units"]:
    """Everything, and everything but each group."""
    keeps = torch.ones(1 + len(groups), units, dtype=torch.bool)
    for number, group in enumerate(groups, 1):
        keeps[number, group] = False
    return keeps
