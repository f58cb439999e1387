"""How explanations agree from text to text: what the plot shows is what the records hold."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from raison.report.figures.data import Spread
from raison.report.figures.plots import drawn
from raison.runs.agreement import FILE, read_agreement
from raison.studies.kinds.comparison.sections import spreads

PAIRS = """{"pairs": [
 {"first": "mp_pi", "second": "kernel_shap", "spearman": [1.0, 0.5], "top_k_overlap": [1.0, 1.0], "cosine": [0.9, 0.5]},
 {"first": "mp_pi", "second": "random", "spearman": [0.0, null], "top_k_overlap": [0.0, 0.0], "cosine": [0.1, null]},
 {"first": "kernel_shap", "second": "random",
  "spearman": [null, null], "top_k_overlap": [null, null], "cosine": [null, null]}
]}"""


def test_every_method_is_compared_with_those_it_has_cosines_with(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(PAIRS, encoding="utf-8")
    pairs = read_agreement(tmp_path)
    assert [pair.cosines for pair in pairs] == [(0.9, 0.5), (0.1,), ()]
    shown = "".join(map(drawn, spreads(pairs, 3)))
    titles = re.findall(r'aria-label="cosine with ([^"]+)"', shown)
    assert titles == ["mp_pi", "kernel_shap", "random"]
    of_random = shown[shown.index('aria-label="cosine with random"') :]
    assert "mp_pi" in of_random
    assert "kernel_shap" not in of_random
    assert list(spreads((), 0)) == []


def test_the_dot_is_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the lines are quartiles and the 5th to 95th percentiles, of each row in its order."""
    seen: list[tuple[float, ...]] = []
    monkeypatch.setattr(Axes, "hlines", lambda _axes, y, low, high, **_look: seen.append((y, low, high)))
    monkeypatch.setattr(Axes, "plot", lambda _axes, x, y, *_look, **_more: seen.append((y[0], x[0])))
    values = np.linspace(0, 1, 101) ** 2
    svg = drawn(Spread("x", "cosine", (("one", values), ("two", 1 - values))))
    assert svg.index("one") < svg.index("two")
    np.testing.assert_allclose(seen[0], (2, 0.05**2, 0.95**2))
    np.testing.assert_allclose(seen[1], (2, 0.25**2, 0.75**2))
    np.testing.assert_allclose(seen[2], (2, 0.25))
    np.testing.assert_allclose(seen[5], (1, 0.75))
