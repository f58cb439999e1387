"""Lights of sources, and what they say of a statement together."""

import numpy as np
import pytest

from raison.explaining.sources.source_necessity import _checks, _origin

NO_NOISE = np.zeros(0)
QUIET = np.array([0.0, 0.01, -0.01, 0.02])


@pytest.mark.parametrize(
    ("drops", "noise", "whole", "lights", "origin"),
    [
        ([2.0, 0.0], QUIET, 2.0, ["used", "not used"], "sources"),
        ([0.0, 0.0], QUIET, 2.0, ["not used", "not used"], "together"),
        ([0.0, 0.05], QUIET, 0.05, ["not used", "not used"], "memory"),
        ([0.0, 0.05], NO_NOISE, 0.05, ["not used", "not used"], "memory"),
        ([0.0, 0.05], NO_NOISE, 2.0, ["not used", "not used"], "undecided"),
        # One source speaks for the statement, the other against it: without both, nothing changes.
        ([0.5, -0.5], NO_NOISE, 0.0, ["undecided", "not used"], "undecided"),
    ],
)
def test_lights_and_origin(drops: list[float], noise: np.ndarray, whole: float, lights: list[str], origin: str) -> None:
    heard = [noise] * len(drops)
    checks = _checks(np.array(drops), heard)
    assert [check.light for check in checks] == lights
    assert _origin(checks, heard, whole) == origin
