"""RPI-G: Randomized Path-Integration over attention, with gradients only."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.method import Rngs
from raison.core.problem import Problem
from raison.integration.randomized import RandomPaths, Variant


@dataclass(frozen=True)
class RpiG(RandomPaths):
    """RPI without the product with the attention: integrates gradients alone, from random attention to the model's.

    m^r = phi((a - b^r) / n . sum_{j=1}^n dv/da(v_j)), v_j = b^r + j / n (a - b^r): equation 4 of Barkan et al. 2024
    without its factor v_j, the ablation RPI-G of their table 6. Everything else, including the settings, is as in
    `rpi`: the baselines b^r are drawn from the diffusion process over the attention a, and phi is the mean over heads
    and the row that the prediction is made from.

    Returns (batch, tokens), signed, in units of the target: as the steps grow, one map's entries over all heads, rows
    and tokens, before phi, sum to the target's change from b^r to a. Without a metric: the mean of the maps.

    R n forward and backward passes per layer, and 1 whole forward pass per layer. The former run only the layers from
    the lowest to the top, but count as whole passes.

    Guarantees no sum over the scores: phi leaves the other rows out.

    `variant="code"` is as in `rpi`; the published code has no RPI-G, so this is its RPI without the product.

    Reference: barkan2024rpi.
    """

    variant: Variant = "paper"

    multiply: ClassVar[bool] = False
    passes: ClassVar[str] = (
        "(baselines steps + 1) |layers| forward + baselines steps |layers| backward, upper layers only"
    )

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        return self.drawn_maps(problem, rngs)
