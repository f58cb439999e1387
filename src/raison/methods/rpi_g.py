"""RPI-G: Randomized Path-Integration over attention, with gradients only."""

from dataclasses import dataclass, replace
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capability import Capability
from raison.core.internals.layers import LayerSpec
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.randomized import RandomPaths, Variant
from raison.numerics.gradients.diffusion import Schedule


@dataclass(frozen=True)
class RpiG(Method):
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

    baselines: int = 24
    steps: int = 30
    layers: LayerSpec | None = None
    timesteps: int = 500
    t: int | None = None
    schedule: Schedule = "linear"
    variant: Variant = "paper"

    reference: ClassVar[str] = "barkan2024rpi"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReplaceableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.RANDOM, Property.CANDIDATES, Property.PARTIAL}
    )
    passes: ClassVar[str] = (
        "(baselines steps + 1) |layers| forward + baselines steps |layers| backward, upper layers only"
    )

    def __post_init__(self) -> None:
        self._paths().check("rpi_g")

    @property
    def maps(self) -> int:
        return len(self._paths())

    @property
    def parts(self) -> tuple[Method, ...]:
        return tuple(replace(self, layers=number) for number in self._paths().in_layers().numbers)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return self.unselected(self.candidates(problem, rngs))

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        return self._paths().maps(problem, rngs)

    def unselected(self, maps: Float[Tensor, "maps batch scored"]) -> Float[Tensor, "batch scored"]:
        return maps.mean(0)

    def cost(self, units: int) -> Cost:
        return self._paths().cost()

    def _paths(self) -> RandomPaths:
        return RandomPaths(
            self.baselines, self.steps, self.timesteps, self.t, self.schedule, self.variant, self.layers, multiply=False
        )
