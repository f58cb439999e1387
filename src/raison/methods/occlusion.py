"""Occlusion: leave one unit out."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem


@dataclass(frozen=True)
class Occlusion(Method):
    """The decrease of the target when one unit is removed and all others stay.

    score_i = v(all) - v(all but i) (the erasure of Li et al. 2016, without its division; the occlusion test of Zeiler
    and Fergus 2014, section 4.2), with v the target and removal the problem's own. Returns (batch, units), signed, in
    units of the target.

    n + 1 forward passes.

    Guarantees no sum: units that are redundant each score low, and units that need each other are each credited with
    the whole effect. A unit that changes nothing scores zero.

    Differences from the papers: Li et al. take the relative change of the log-likelihood, averaged over a data set;
    here it is the plain difference of the target for one text (of="log_odds" is the nearest choice).

    Reference: li2016understanding, after zeiler2014visualizing.
    """

    reference: ClassVar[str] = "li2016understanding"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.DUMMY})
    passes: ClassVar[str] = "n + 1 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        keeps = [
            torch.cat([torch.ones(1, n, dtype=torch.bool), ~torch.eye(n, dtype=torch.bool)])
            for n in problem.encoding.unit_counts
        ]
        return pad_sequence([values[0] - values[1:] for values in problem.values(keeps)], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=units + 1)
