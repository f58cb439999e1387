"""Two scales: white at zero, readable on every shade, distinct for colour-blind readers."""

import math

import pytest

from raison.report.style import colours
from raison.report.style.colours import SIGNED, Scale

UNSIGNED = Scale(signed=False)
LEVELS = [step / 50 for step in range(-50, 51)]
# Severe protanopia, deuteranopia and tritanopia (Machado et al. 2009), on linear RGB.
VISION = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("scale", [SIGNED, UNSIGNED])
@pytest.mark.parametrize("ground", [colours.WHITE, colours.DARK])
def test_zero_is_the_ground(ground: str, scale: Scale) -> None:
    assert scale.shade(0.0, ground) == ground
    assert scale.shade(-0.0, ground) == ground


@pytest.mark.parametrize("scale", [SIGNED, UNSIGNED])
def test_zero_is_white_by_default(scale: Scale) -> None:
    assert scale.shade(0.0) == "#ffffff"


@pytest.mark.parametrize("ground", [colours.WHITE, colours.DARK])
def test_red_is_for_and_blue_against(ground: str) -> None:
    for value in (0.2, 0.6, 1.0):
        red, _, blue = _rgb(SIGNED.shade(value, ground))
        assert red > blue
        red, _, blue = _rgb(SIGNED.shade(-value, ground))
        assert blue > red


@pytest.mark.parametrize("scale", [SIGNED, UNSIGNED])
@pytest.mark.parametrize("ground", [colours.WHITE, colours.DARK])
@pytest.mark.parametrize("value", LEVELS)
def test_text_reads_on_every_shade(value: float, ground: str, scale: Scale) -> None:
    background = scale.shade(value, ground)
    assert colours.contrast(colours.ink(background), background) >= 4.5


@pytest.mark.parametrize(("scale", "sign"), [(SIGNED, 1), (SIGNED, -1), (UNSIGNED, 1)])
def test_stronger_is_further_from_the_ground(scale: Scale, sign: int) -> None:
    light = [colours.contrast(scale.shade(sign * step / 20), colours.WHITE) for step in range(21)]
    dark = [colours.contrast(scale.shade(sign * step / 20, colours.DARK), colours.DARK) for step in range(21)]
    assert light == sorted(light)
    assert dark == sorted(dark)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("ground", [colours.WHITE, colours.DARK])
@pytest.mark.parametrize("value", [0.4, 0.7, 1.0])
def test_signs_stay_apart_for_colour_blind_readers(vision: str, ground: str, value: float) -> None:
    first, second = (_seen(SIGNED.shade(sign * value, ground), VISION[vision]) for sign in (1, -1))
    assert math.dist(first, second) > 0.2


def test_contrast_is_that_of_wcag() -> None:
    assert colours.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colours.contrast("#ffffff", "#ffffff") == 1
    assert colours.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_scale_is_symmetric_in_the_largest_absolute_score() -> None:
    largest = colours.peak([0.1, -0.4, math.nan, 0.2])
    assert largest == 0.4
    assert [colours.level(score, largest) for score in (-0.4, -0.2, 0.0, 0.2)] == [-1.0, -0.5, 0.0, 0.5]


def test_all_zero_scores_are_all_white() -> None:
    assert colours.peak([0.0, 0.0]) == 0.0
    assert SIGNED.shade(colours.level(0.0, 0.0)) == colours.WHITE
    assert colours.peak([]) == 0.0


def test_terminal_leaves_its_own_ground_near_zero() -> None:
    assert SIGNED.terminal_style(0.0) == ""
    assert SIGNED.terminal_style(1.0) == "#ffffff on #b2182b"
    assert SIGNED.terminal_style(-1.0) == "#ffffff on #2166ac"


@pytest.mark.parametrize("ground", [colours.WHITE, colours.DARK])
@pytest.mark.parametrize("value", [0.4, 0.7, 1.0])
def test_amounts_are_neither_for_nor_against(ground: str, value: float) -> None:
    """The hue of the unsigned scale is far from both of the signed one's, for the usual kind of colour vision."""
    amount = [channel / 255 for channel in _rgb(UNSIGNED.shade(value, ground))]
    for sign in (1, -1):
        assert math.dist(amount, [channel / 255 for channel in _rgb(SIGNED.shade(sign * value, ground))]) > 0.15


def test_the_scales_end_where_their_scores_do() -> None:
    assert SIGNED.steps(2) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert UNSIGNED.steps(2) == [0.0, 0.5, 1.0]
    assert SIGNED.gradient().count("light-dark") == 9
    assert UNSIGNED.gradient().count("light-dark") == 5


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def _seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
    linear = [(channel / 255) ** 2.2 for channel in _rgb(colour)]
    mixed = [sum(weight * channel for weight, channel in zip(row, linear, strict=True)) for row in matrix]
    return [max(0.0, min(1.0, channel)) ** (1 / 2.2) for channel in mixed]
