"""Labels of a plot that stand in no one's way."""

from collections.abc import Sequence

import numpy as np
import pytest

from raison.report.figures.labels import ADVANCE, HEIGHT, place, shorten_apart, spread


def test_labels_cover_neither_each_other_nor_points() -> None:
    rng = np.random.default_rng(0)
    points = [(float(x), float(y)) for x, y in rng.uniform((120, 100), (360, 220), (10, 2))]
    texts = [f"a_method_{number}" for number in range(len(points))]
    boxes = _boxes(points, texts)
    for number, (left, bottom, right, top) in enumerate(boxes):
        assert min(left, bottom, 480 - right, 330 - top) >= 0
        for x, y in points:
            assert not (left < x < right and bottom < y < top)
        for other in boxes[number + 1 :]:
            assert left >= other[2] or other[0] >= right or bottom >= other[3] or other[1] >= top


def _boxes(points: Sequence[tuple[float, float]], texts: Sequence[str]) -> list[tuple[float, float, float, float]]:
    boxes = []
    for text, label in zip(texts, place(points, texts, (0, 0, 480, 330)), strict=True):
        width = ADVANCE * len(text)
        left = label.x - {"left": 0, "right": width, "center": width / 2}[label.anchor]
        boxes.append((left, label.y - HEIGHT / 2, left + width, label.y + HEIGHT / 2))
    return boxes


def test_spread_keeps_order_and_distance() -> None:
    assert spread([10.0, 100.0]) == [10.0, 100.0]
    found = spread([50.0, 51.0, 49.0, 200.0], gap=12)
    assert found == [50.0, 62.0, 38.0, 200.0]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["lime", "lime(samples=64)"], ["lime", "lime(samples=64)"]),
        (["kernel_shap(samples=1600)", "occlusion"], ["kernel_shap(samples=…", "occlusion"]),
        # Alike to the last character that fits: what they share goes, not what tells them apart.
        (
            ["aml(metric='aopc_sufficiency', steps=10)", "aml(metric='aopc_sufficiency', steps=25)", "lime"],
            ["aml(…10)", "aml(…25)", "lime"],
        ),
        (["a long sentence about x", "a long sentence about y"], ["…x", "…y"]),
        (2 * ["the same and too long for it"], 2 * ["the same and too lon…"]),
    ],
)
def test_texts_that_are_cut_are_told_apart(texts: list[str], said: list[str]) -> None:
    assert shorten_apart(texts, 21) == said
