"""Integration over a layer's attention along paths from randomly drawn baselines (Barkan et al. 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capability import Capability
from raison.core.internals.attention import AttentionSite
from raison.core.internals.layers import FORMS, Layers, LayerSpec
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.registry import name_of
from raison.core.settings.fields import Setting
from raison.core.targets.target import Of
from raison.numerics.gradients.diffusion import (
    Schedule,
    Timestep,
    check_timestep,
    draw_noise,
    draw_times,
    signal_shares,
)

Variant = Literal["signed", "paper", "code"]
"""Equation 4 as printed, the published code, or the code's formula in the last layer, whose maps keep their sign."""
NUMBERS = 1 << 24
"""Entries of baselines that are in memory together: 64 MB in single precision."""
Baselines = Float[Tensor, "maps heads query key"]


@dataclass(frozen=True)
class RandomPaths(Method):
    """Draws baselines for a site's attention and integrates from each of them; see raison.methods.rpi.

    `t` is the timestep that every baseline is drawn at; None is the last of `timesteps`, or with `variant="paper"` a
    uniform choice among them. Each layer has its own random numbers, so that its maps depend on no other layer.
    """

    baselines: Annotated[int, Setting(least=1)] = 24
    steps: Annotated[int, Setting(least=1)] = 30
    layers: Annotated[LayerSpec | None, Setting(words=FORMS)] = None
    """By default the last (the paper's text), or the third last (its code)."""
    timesteps: Annotated[int, Setting(least=1)] = 500
    t: Timestep = None
    schedule: Schedule = "linear"
    variant: Variant = "signed"

    multiply: ClassVar[bool]
    """Whether the gradients are multiplied by the attention, as in equation 4."""
    reference: ClassVar[str] = "barkan2024rpi"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReplaceableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.RANDOM, Property.CANDIDATES, Property.PARTIAL}
    )

    def consistent(self) -> None:
        check_timestep(name_of(self), self.timesteps, self.t)
        self._in_layers()

    @property
    def maps(self) -> int:
        return self.baselines * len(self._in_layers())

    @property
    def parts(self) -> tuple[Method, ...]:
        return tuple(replace(self, layers=number) for number in self._in_layers().numbers)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return self.unselected(self.candidates(problem, rngs))

    def drawn_maps(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch tokens"]:
        """All texts' maps: layer after layer, one for each baseline; zero on padding."""
        layers = self._in_layers()
        maps = torch.zeros(self.maps, *problem.encoding.input_ids.shape, dtype=torch.float64)
        for text, rng in enumerate(rngs):
            seed = int(rng.integers(2**63))
            layer_maps = []
            for site in problem.attention_sites(text, layers.among):
                layer_rng = np.random.default_rng([seed, site.layer])
                for count in self._portions(site):
                    layer_maps.append(self.integrate(problem, text, site, self._draw(problem, site, layer_rng, count)))
            maps[:, text, : layer_maps[0].shape[1]] = torch.cat(layer_maps)
        return maps

    def unselected(self, maps: Float[Tensor, "maps batch scored"]) -> Float[Tensor, "batch scored"]:
        return maps.mean(0)

    def cost(self, units: int) -> Cost:
        """A pass for each point of every path, and one that records the attention of each layer."""
        layers, points = len(self._in_layers()), self.baselines * len(self._positions())
        return Cost(forwards=layers * (points + 1), backwards=layers * points)

    def _in_layers(self) -> Layers:
        """The requested layers."""
        default = "third_last" if self.variant == "code" else "last"
        return Layers.of(default if self.layers is None else self.layers, name_of(self))

    def _portions(self, site: AttentionSite) -> list[int]:
        """Numbers of baselines that are in memory together."""
        size = max(1, NUMBERS // site.probabilities.numel())
        return [min(size, self.baselines - first) for first in range(0, self.baselines, size)]

    def _draw(self, problem: Problem, site: AttentionSite, rng: np.random.Generator, count: int) -> Baselines:
        """The next baselines for a site's attention, drawn one after another: the first ones are the same for every
        count."""
        attention = site.probabilities
        drawn = [
            (draw_times(rng, 1, self.timesteps, self._timestep), draw_noise(rng, tuple(attention.shape)).to(attention))
            for _ in range(count)
        ]
        times = torch.cat([time for time, _ in drawn]).to(attention.device)
        noise = torch.stack([noise for _, noise in drawn])
        if self.variant == "paper":
            kept = self._kept(self.timesteps).to(attention)[times - 1][:, None, None, None]
            return kept.sqrt() * attention + (1 - kept).sqrt() * noise
        # The code's schedule has one more variance, and it uses the variance as the noise's standard deviation.
        kept = self._kept(self.timesteps + 1).to(attention)[times][:, None, None, None]
        if problem.encoding.prefix_length:
            noise = torch.where(site.input_rows.bool()[:, None], noise, attention)
        return kept.sqrt() * attention + (1 - kept) * noise

    def integrate(
        self, problem: Problem, text: int, site: AttentionSite, starts: Baselines
    ) -> Float[Tensor, "maps key"]:
        """Equation 4 for each baseline: heads' mean, prediction rows by their shares. In float64, on the CPU."""
        attention, read, count = site.probabilities, site.read, len(self._positions())
        positions = self._positions().to(attention)
        sums = attention.new_zeros(len(starts), attention.shape[0], len(read), attention.shape[2])

        def path(points: Sequence[int]) -> Float[Tensor, "points heads query key"]:
            index = torch.as_tensor(points, device=attention.device)
            start = starts[index // count]
            return start + positions[index % count, None, None, None] * (attention - start)

        of: Of | None = None if self.variant == "paper" else "logit"
        for slopes in problem.attention_slopes(text, site, path, len(starts) * count, of):
            products = slopes.gradients * slopes.attention if self.multiply else slopes.gradients
            sums.index_add_(0, torch.as_tensor(slopes.points, device=attention.device) // count, products)
        way = attention[:, read] - starts[:, :, read] if self.variant == "paper" else attention[None, :, read]
        maps = (way * sums / count).mean(1)
        return torch.einsum("rqk,q->rk", maps, site.rows[read]).double().cpu()

    @property
    def _timestep(self) -> int | None:
        return self.timesteps if self.variant != "paper" and self.t is None else self.t

    def _kept(self, timesteps: int) -> Float[Tensor, " timesteps"]:
        return signal_shares(timesteps, self.schedule)

    def _positions(self) -> Float[Tensor, " points"]:
        """j / n for j = 1 ... n; in the published code from j = 0."""
        return torch.arange(1 if self.variant == "paper" else 0, self.steps + 1, dtype=torch.float64) / self.steps
