"""Baselines from a Gaussian diffusion process (Barkan et al. 2024, section 3.2.1)."""

from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.errors import InputError
from raison.core.settings.fields import Setting

Schedule = Literal["linear", "cosine"]
Timestep = Annotated[
    int | None, Setting(least=1, words="a timestep from 1 to the number of timesteps, or None to draw one per baseline")
]
"""A step of the process, or None for a random one."""
FIRST_BETA, LAST_BETA = 1e-4, 0.02
"""Ends of the linear schedule of variances (Ho et al. 2020)."""
COSINE_OFFSET = 0.008
"""Keeps the cosine schedule's first variance from vanishing (Nichol and Dhariwal 2021)."""


def signal_shares(timesteps: int, schedule: Schedule) -> Float[Tensor, " timesteps"]:
    """alpha-bar_t for t = 1 ... T, in float64: the share of the variance that the start keeps after t steps.

    "linear": alpha-bar_t = prod_{j <= t} (1 - beta_j), with beta rising linearly from 1e-4 to 0.02.
    "cosine": alpha-bar_t = c(t) / c(0), c(t) = cos^2((t / T + 0.008) / 1.008 . pi / 2).
    """
    if schedule == "linear":
        betas = torch.linspace(FIRST_BETA, LAST_BETA, timesteps, dtype=torch.float64)
        return (1 - betas).cumprod(0)
    times = torch.arange(timesteps + 1, dtype=torch.float64) / timesteps
    curve = torch.cos((times + COSINE_OFFSET) / (1 + COSINE_OFFSET) * torch.pi / 2).square()
    return curve[1:] / curve[0]


def draw_times(rng: np.random.Generator, count: int, timesteps: int, t: int | None) -> Int[Tensor, " count"]:
    """A timestep for each baseline: uniform over 1 ... T, or always `t`."""
    drawn = rng.integers(1, timesteps, size=count, endpoint=True) if t is None else np.full(count, t)
    return torch.from_numpy(drawn)


def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Float[Tensor, "..."]:
    """Independent standard normal numbers in float64."""
    return torch.from_numpy(rng.standard_normal(shape))


def check_timestep(method: str, timesteps: int, t: int | None) -> None:
    """Raise InputError for a timestep after the last."""
    if t is not None and t > timesteps:
        raise InputError(
            f"t of {method} cannot be {t}: give a timestep from 1 to {timesteps}, or None to draw one per baseline."
        )
