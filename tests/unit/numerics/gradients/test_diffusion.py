"""The diffusion process that baselines are drawn from."""

import math

import numpy as np
import pytest
import torch

from raison.core.errors import InputError
from raison.numerics.gradients.diffusion import check_timestep, draw_noise, draw_times, signal_shares


@pytest.mark.parametrize("timesteps", [2, 10, 500, 1000])
def test_linear_shares_are_the_product_over_all_steps_so_far(timesteps):
    found = signal_shares(timesteps, "linear").tolist()
    share = 1.0
    for t in range(1, timesteps + 1):
        share *= 1 - (1e-4 + (0.02 - 1e-4) * (t - 1) / (timesteps - 1))
        assert found[t - 1] == pytest.approx(share, rel=1e-10)


def test_known_ends_of_the_linear_schedule():
    assert float(signal_shares(500, "linear")[0]) == pytest.approx(1 - 1e-4)
    # With T = 1000, four hundred-thousandths of the signal are left (Ho et al. 2020, section 4).
    assert float(signal_shares(1000, "linear")[-1]) == pytest.approx(4.0e-5, rel=0.02)
    assert signal_shares(1, "linear").tolist() == pytest.approx([1 - 1e-4])


@pytest.mark.parametrize("timesteps", [1, 10, 500])
def test_cosine_shares_follow_the_formula(timesteps):
    found = signal_shares(timesteps, "cosine").tolist()
    start = math.cos(0.008 / 1.008 * math.pi / 2) ** 2
    for t in range(1, timesteps + 1):
        curve = math.cos((t / timesteps + 0.008) / 1.008 * math.pi / 2) ** 2
        assert found[t - 1] == pytest.approx(curve / start, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_shares_fall_from_one_towards_zero(schedule):
    shares = signal_shares(300, schedule)
    assert shares.dtype == torch.float64
    assert bool((shares.diff() < 0).all())
    assert 0.99 < float(shares[0]) < 1
    assert 0 <= float(shares[-1]) < 0.1


def test_timesteps_are_drawn_uniformly_from_one_to_the_last():
    drawn = draw_times(np.random.default_rng(0), 20_000, 5, None)
    counts = torch.bincount(drawn, minlength=6)
    assert counts[0] == 0
    # Six standard deviations of a share of 1/5.
    assert ((counts[1:] / 20_000 - 0.2).abs() < 6 * math.sqrt(0.2 * 0.8 / 20_000)).all()
    assert draw_times(np.random.default_rng(0), 3, 1, None).tolist() == [1, 1, 1]


def test_a_fixed_timestep_draws_nothing():
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    assert draw_times(rng, 4, 10, 7).tolist() == [7, 7, 7, 7]
    assert rng.random() == other.random()


def test_noise_is_standard_normal():
    noise = draw_noise(np.random.default_rng(2), (200, 5, 20))
    assert noise.shape == (200, 5, 20)
    assert noise.dtype == torch.float64
    # Six standard errors of 20 000 numbers.
    assert abs(float(noise.mean())) < 6 / math.sqrt(20_000)
    assert abs(float(noise.var()) - 1) < 6 * math.sqrt(2 / 20_000)


def test_a_diffused_number_has_the_stated_mean_and_variance():
    share = signal_shares(500, "linear")[99]
    drawn = share.sqrt() * 3 + (1 - share).sqrt() * draw_noise(np.random.default_rng(3), (40_000,))
    deviation = math.sqrt(1 - share)
    assert abs(float(drawn.mean()) - 3 * math.sqrt(share)) < 6 * deviation / math.sqrt(40_000)
    assert float(drawn.std()) == pytest.approx(deviation, rel=0.03)


@pytest.mark.parametrize("t", [501, 10_000])
def test_refuses_timesteps_after_the_last(t):
    with pytest.raises(InputError, match=f"t of rpi cannot be {t}: give a timestep from 1 to 500"):
        check_timestep("rpi", 500, t)


@pytest.mark.parametrize("t", [None, 1, 500])
def test_accepts_timesteps_of_the_process(t):
    check_timestep("rpi", 500, t)
