"""Random scores: what every other method has to beat."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting


@dataclass(frozen=True)
class Random(Method):
    """Independent standard normal scores, the baseline without information.

    score_i ~ N(0, 1), from the text's own generator. Returns (batch, units), without a unit. 0 passes. With `draws` = N
    it offers N such maps for a metric to choose from, as a control for methods that choose theirs in this way. Without
    selection it returns the first.

    Guarantees nothing: it does not look at the model. Ties have probability zero, so every order of the units is
    equally likely. The random rationales of DeYoung et al. 2020 are uniform instead of normal numbers; metrics depend
    only on the order.

    Reference: deyoung2020eraser.
    """

    reference: ClassVar[str] = "deyoung2020eraser"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.RANDOM, Property.CANDIDATES})
    passes: ClassVar[str] = "0"
    draws: Annotated[int, Setting(least=1)] = 1

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return _draw(problem, rngs)

    @property
    def maps(self) -> int:
        return self.draws

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        return torch.stack([_draw(problem, rngs) for _ in range(self.draws)])

    def cost(self, units: int) -> Cost:
        return Cost()


def _draw(problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
    counts = problem.encoding.unit_counts
    rows = [torch.from_numpy(rng.standard_normal(n)) for n, rng in zip(counts, rngs, strict=True)]
    return pad_sequence(rows, batch_first=True)
