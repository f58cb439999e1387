from collections import Counter
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest

from raison.numerics.shapley import progressive
from raison.numerics.shapley.progressive import (
    beginnings,
    class_weights,
    coalition_weights,
    expected_coalitions,
    mask_law,
    optimal_draw,
    pass_weights,
    sample_masks,
    shapley_distribution,
)

LAWS = [(sampling, suffix) for sampling in ("optimal", "shapley") for suffix in (True, False)]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An own cache on disk, and none in memory."""
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    mask_law.cache_clear()
    yield tmp_path
    mask_law.cache_clear()


def masks_of(units, size, last, suffix):
    """All masks of a draw (i, j), as tuples of units counted from 1."""
    tail = tuple(range(last + 1, units + 1)) if suffix else ()
    return [(*early, last, *tail) for early in combinations(range(1, last), size - 1)]


def enumerated(units, size, last, suffix):
    """The average number of coalitions of each class in the chain of such a mask, and of the full set."""
    found = np.zeros((units, units))
    masks = masks_of(units, size, last, suffix)
    for mask in masks:
        for length in range(1, len(mask) + 1):
            found[length - 1, mask[length - 1] - 1] += 1 / len(masks)
    return found


def by_coalition(units, law):
    """The expected number of each single coalition from one mask, over all draws and all their masks."""
    found = Counter()
    for size in range(1, units):
        for last in range(size, units + 1):
            masks = masks_of(units, size, last, law.suffix)
            for mask in masks:
                for length in range(1, len(mask) + 1):
                    found[mask[:length]] += law.draw[size - 1, last - 1] / len(masks)
    return found


def single(units, size, last):
    draw = np.zeros((units, units))
    draw[size - 1, last - 1] = 1
    return draw


@pytest.mark.parametrize("suffix", [True, False])
@pytest.mark.parametrize("units", range(2, 9))
def test_expected_coalitions_equal_enumeration(units, suffix):
    for size in range(1, units):
        for last in range(size, units + 1):
            every = enumerated(units, size, last, suffix)
            found = expected_coalitions(single(units, size, last), suffix)
            np.testing.assert_allclose(found[:-1], every[:-1], atol=1e-13)
            assert not found[-1].any()
            # Divided by the mask's own number of units they are a distribution, once the full set is counted.
            active = size + (units - last) * suffix
            full = float(suffix and size == last)
            assert (found.sum() + full) / active == pytest.approx(1)
            assert progressive.mask_sizes(units, suffix)[size - 1, last - 1] == active


def test_the_formula_of_the_docstring():
    units = 7
    for size in range(1, units):
        for last in range(size, units + 1):
            expected = np.zeros((units, units))
            for k in range(1, units):
                for end in range(k, units + 1):
                    if k < size and end < last:
                        ways = comb(end - 1, k - 1) * comb(last - end - 1, size - k - 1)
                        expected[k - 1, end - 1] = ways / comb(last - 1, size - 1)
                    elif end >= last and k == size + end - last:
                        expected[k - 1, end - 1] = 1
            np.testing.assert_allclose(expected_coalitions(single(units, size, last)), expected, atol=1e-13)


def test_equation_14_as_printed_is_no_distribution():
    """Its sum over k and l, with the 1 / i of its proof; the corrected count sums to one."""
    printed, corrected = [], []
    for size in range(1, 7):
        for last in range(size, 8):
            ends = [(k, end) for k in range(1, size + 1) for end in range(k, last + 1)]
            scale = comb(last - 1, size - 1) * size
            printed.append(sum(comb(e - 1, k - 1) * comb(last - e, size - k) for k, e in ends) / scale)
            corrected.append(
                1 / size
                + sum(comb(e - 1, k - 1) * comb(last - e - 1, size - k - 1) for k, e in ends if k < size and e < last)
                / scale
            )
    assert max(printed) > 2
    assert corrected == pytest.approx([1] * len(corrected))


def test_several_laws_at_once():
    laws = np.stack([single(6, 2, 4), single(6, 3, 3), shapley_distribution(6)])
    together = expected_coalitions(laws)
    for law, found in zip(laws, together, strict=True):
        np.testing.assert_allclose(found, expected_coalitions(law), atol=1e-15)


@pytest.mark.parametrize("units", range(2, 9))
def test_shapley_distribution_counts_coalitions(units):
    """Every coalition of k units has the kernel's weight, up to one constant."""
    found = np.zeros((units, units))
    for size in range(1, units):
        for members in combinations(range(1, units + 1), size):
            found[size - 1, members[-1] - 1] += 1 / (comb(units, size) * size * (units - size))
    np.testing.assert_allclose(shapley_distribution(units), found / found.sum(), atol=1e-14)


@pytest.mark.parametrize(("sampling", "suffix"), LAWS)
@pytest.mark.parametrize("units", range(2, 9))
def test_weights_equal_enumeration(units, sampling, suffix):
    law = mask_law(units, sampling, suffix)
    counts = {s: count for s, count in by_coalition(units, law).items() if count > 0 and len(s) < units}
    total = sum(counts.values())
    kernel = {k: 1 / (comb(units, k) * k * (units - k)) for k in range(1, units)}
    norm = sum(comb(units, k) * weight for k, weight in kernel.items())
    rows = np.array([[unit in s for unit in range(1, units + 1)] for s in counts])
    np.testing.assert_allclose(
        coalition_weights(rows, law), [kernel[len(s)] / norm / (count / total) for s, count in counts.items()]
    )
    of_class, target = Counter(), Counter()
    for s, count in counts.items():
        of_class[len(s), s[-1]] += count / total
    for k in kernel:
        for members in combinations(range(1, units + 1), k):
            target[k, members[-1]] += kernel[k] / norm
    ratios = {key: target[key] / of_class[key] for key in of_class}
    np.testing.assert_allclose(class_weights(rows, law), [ratios[len(s), s[-1]] for s in counts])
    if not suffix:
        np.testing.assert_allclose(class_weights(rows, law), coalition_weights(rows, law))


@pytest.mark.parametrize(("sampling", "suffix"), LAWS)
@pytest.mark.parametrize("units", range(2, 9))
def test_the_paper_s_weights_equal_enumeration(units, sampling, suffix):
    """P^D of equation 15 from every mask of every draw, the coalitions of one mask sharing what the mask counts."""
    law = mask_law(units, sampling, suffix)
    share = np.zeros((units, units))
    for size in range(1, units):
        for last in range(size, units + 1):
            active = size + (units - last) * suffix
            share += law.draw[size - 1, last - 1] * enumerated(units, size, last, suffix) / active
    assert share.sum() == pytest.approx(1)
    np.testing.assert_allclose(law.share[:-1], share[:-1], atol=1e-13)
    members = [s for k in range(1, units) for s in combinations(range(1, units + 1), k) if share[k - 1, s[-1] - 1] > 0]
    rows = np.array([[unit in s for unit in range(1, units + 1)] for s in members])
    kernel = {k: 1 / (comb(units, k) * k * (units - k)) for k in range(1, units)}
    norm = sum(comb(units, k) * weight for k, weight in kernel.items())
    expected = [comb(s[-1] - 1, len(s) - 1) * kernel[len(s)] / norm / share[len(s) - 1, s[-1] - 1] for s in members]
    np.testing.assert_allclose(pass_weights(rows, law), expected)


def test_with_the_suffix_coalitions_of_a_class_differ():
    law = mask_law(6, "shapley")
    rows = np.array([[True, False, True, False, False, False], [False, True, True, False, False, False]])
    by_class, each = class_weights(rows, law), coalition_weights(rows, law)
    assert by_class[0] == pytest.approx(by_class[1])
    # A run of units comes from the suffix too: it is met more often and weighs less.
    assert each[1] < 0.9 * each[0]


@pytest.mark.parametrize(("sampling", "suffix"), LAWS)
def test_masks_follow_the_law(sampling, suffix):
    law = mask_law(5, sampling, suffix)
    masks = sample_masks(law, 20000, np.random.default_rng(3))
    seen = Counter()
    for mask, times in zip(*np.unique(masks, axis=0, return_counts=True), strict=True):
        rows = beginnings(mask)
        assert rows.sum(axis=1).tolist() == [*range(1, min(int(mask.sum()), 4) + 1)]
        assert all((row <= mask).all() for row in rows)
        for row in rows:
            seen[tuple((np.flatnonzero(row) + 1).tolist())] += times / len(masks)
    expected = {s: count for s, count in by_coalition(5, law).items() if len(s) < 5 and count > 0}
    assert set(seen) <= set(expected)
    for members, count in expected.items():
        assert seen[members] == pytest.approx(count, abs=0.02)


@pytest.mark.parametrize("units", [3, 5, 10, 20])
def test_optimal_masks_come_nearer_to_the_shapley_distribution(units):
    target, sizes = shapley_distribution(units), progressive.mask_sizes(units)
    optimal, shapley = (expected_coalitions(draw / sizes) for draw in (optimal_draw(units), target))
    optimal, shapley = optimal / optimal.sum(), shapley / shapley.sum()
    assert np.linalg.norm(optimal - target) < 0.95 * np.linalg.norm(shapley - target)
    # No other law of the same support, and none that puts a little more on any class, is nearer in least squares.
    found = expected_coalitions(optimal_draw(units) / sizes)
    scale = (found * target).sum() / (found * found).sum()
    singles = [single(units, k, j) / sizes for k in range(1, units) for j in range(k, units + 1)]
    gradient = (expected_coalitions(np.stack(singles)) * (scale * found - target)).sum((1, 2))
    assert gradient.min() > -1e-9


def test_the_optimal_law_is_one_with_and_without_the_suffix():
    target = shapley_distribution(6)
    for suffix in (True, False):
        draw = optimal_draw(6, suffix)
        assert draw.sum() == pytest.approx(1)
        assert draw.min() >= 0
        found = expected_coalitions(draw / progressive.mask_sizes(6, suffix), suffix)
        assert np.abs(found / found.sum() - target).sum() < 0.7


def test_long_texts_take_the_shapley_distribution_and_stay_finite():
    law = mask_law(400, "optimal")
    np.testing.assert_array_equal(law.draw, shapley_distribution(400))
    assert law.draw.sum() == pytest.approx(1)
    rows = np.concatenate([beginnings(mask) for mask in sample_masks(law, 5, np.random.default_rng(0))])
    for weights in (class_weights(rows, law), coalition_weights(rows, law)):
        assert np.isfinite(weights).all()
        assert (weights > 0).all()


def test_the_cache_is_read(cache, monkeypatch):
    first = mask_law(7, "optimal").draw
    stored = cache / "progressive" / "equation-16-suffix-7.npy"
    assert [path.name for path in stored.parent.iterdir()] == ["equation-16-suffix-7.npy"]
    mask_law.cache_clear()
    monkeypatch.setattr(progressive, "optimal_draw", lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(mask_law(7, "optimal").draw, first)


def other_size(path: Path) -> None:
    np.save(path, np.full((3, 3), 1 / 9))


def negative(path: Path) -> None:
    np.save(path, np.linspace(-1, 1.0816326530612246, 49).reshape(7, 7) / 2)


@pytest.mark.parametrize(
    "spoil",
    [lambda p: p.write_bytes(b"no array"), lambda p: p.write_bytes(p.read_bytes()[:200]), other_size, negative],
    ids=["no array", "cut off", "another size", "no distribution"],
)
def test_a_broken_file_is_computed_again(cache, spoil):
    first = mask_law(7, "optimal").draw
    stored = cache / "progressive" / "equation-16-suffix-7.npy"
    spoil(stored)
    mask_law.cache_clear()
    np.testing.assert_array_equal(mask_law(7, "optimal").draw, first)
    np.testing.assert_array_equal(np.load(stored), first)


def test_a_cache_that_cannot_be_written_is_no_error(cache):
    (cache / "progressive").write_text("a file where the folder should be", encoding="utf-8")
    assert mask_law(5, "optimal").draw.sum() == pytest.approx(1)


def test_a_failed_write_leaves_nothing_behind(cache, monkeypatch):
    def full(file, array):
        raise OSError("no space left")

    monkeypatch.setattr(np, "save", full)
    assert mask_law(5, "optimal").draw.sum() == pytest.approx(1)
    assert list((cache / "progressive").iterdir()) == []
