"""Integration over a layer's attention along paths from randomly drawn baselines (Barkan et al. 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.attention import AttentionSite
from raison.core.layers import Layers
from raison.core.problem import Problem
from raison.core.target import Of
from raison.numerics.diffusion import Schedule, draw_noise, draw_times, signal_shares

Variant = Literal["paper", "code"]
Baselines = Float[Tensor, "maps heads query key"]


@dataclass(frozen=True, slots=True)
class RandomPaths:
    """Draws baselines for a site's attention and integrates from each of them; see raison.methods.rpi.

    `t` is the timestep that every baseline is drawn at, None a uniform choice among `timesteps`. `multiply` is the
    product with the attention of equation 4. Of the drawn numbers, a layer's are its own: maps of a layer are the same
    alone and beside those of others.
    """

    baselines: int
    steps: int
    timesteps: int
    t: int | None
    schedule: Schedule
    variant: Variant
    multiply: bool

    def maps(
        self, problem: Problem, text: int, layers: Layers, rng: np.random.Generator
    ) -> Float[Tensor, "maps tokens"]:
        """The maps of one text: layer after layer, one for each baseline."""
        seed = int(rng.integers(2**63))
        found = []
        for site in problem.attention_sites(text, layers.among):
            starts = self.draw(problem, site, np.random.default_rng([seed, site.layer]))
            found.append(self.integrate(problem, text, site, starts))
        return torch.cat(found)

    def draw(self, problem: Problem, site: AttentionSite, rng: np.random.Generator) -> Baselines:
        """Baselines in place of a site's attention, one after another: fewer of them are the first ones."""
        own = site.probabilities
        drawn = [
            (draw_times(rng, 1, self.timesteps, self._timestep), draw_noise(rng, tuple(own.shape)).to(own))
            for _ in range(self.baselines)
        ]
        times = torch.cat([time for time, _ in drawn]).to(own.device)
        noise = torch.stack([noise for _, noise in drawn])
        if self.variant == "paper":
            kept = signal_shares(self.timesteps, self.schedule).to(own)[times - 1][:, None, None, None]
            return kept.sqrt() * own + (1 - kept).sqrt() * noise
        # The code's schedule has one variance more, and its noise the variance as standard deviation.
        kept = signal_shares(self.timesteps + 1, self.schedule).to(own)[times][:, None, None, None]
        if problem.encoding.prefix_length:
            noise = torch.where(site.input_rows.bool()[:, None], noise, own)
        return kept.sqrt() * own + (1 - kept) * noise

    def integrate(
        self, problem: Problem, text: int, site: AttentionSite, starts: Baselines
    ) -> Float[Tensor, "maps key"]:
        """Equation 4 for each baseline: heads' mean, prediction rows by their shares. In float64, on the CPU."""
        own, read, count = site.probabilities, site.read, len(self._positions())
        positions = self._positions().to(own)
        sums = own.new_zeros(len(starts), own.shape[0], len(read), own.shape[2])

        def path(points: Sequence[int]) -> Float[Tensor, "points heads query key"]:
            index = torch.as_tensor(points, device=own.device)
            start = starts[index // count]
            return start + positions[index % count, None, None, None] * (own - start)

        of: Of | None = "logit" if self.variant == "code" else None
        for found in problem.attention_slopes(text, site, path, len(starts) * count, of):
            products = found.gradients * found.attention if self.multiply else found.gradients
            sums.index_add_(0, torch.as_tensor(found.points, device=own.device) // count, products)
        way = own[None, :, read] if self.variant == "code" else own[:, read] - starts[:, :, read]
        maps = (way * sums / count).mean(1)
        return torch.einsum("rqk,q->rk", maps, site.rows[read]).double().cpu()

    @property
    def _timestep(self) -> int | None:
        return self.timesteps if self.variant == "code" and self.t is None else self.t

    def _positions(self) -> Float[Tensor, " points"]:
        """j / n for j = 1 ... n, in the code from 0 on."""
        return torch.arange(0 if self.variant == "code" else 1, self.steps + 1, dtype=torch.float64) / self.steps
