"""Parts of a data set: every class has its share, and the texts to judge by are none of those to learn from."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from raison.core.errors import InputError
from raison.data import Dataset, Row
from raison.data.digest import dataset_digest as digest
from raison.training.preparation.samples import split, stratified, stratified_rows

# Sorted by label, as some data sets are: the first rows are of one class only.
ROWS = tuple(Row(f"text {n}", 0 if n < 60 else 1 if n < 90 else "rare", n + 1) for n in range(100))
DATA = Dataset("sorted", ROWS, sha256="abc", labels=("no", "yes"))


def counts(data: Dataset) -> dict[object, int]:
    return dict(Counter(row.label for row in data.rows))


@pytest.mark.parametrize("count", [1, 2, 7, 10, 33, 50, 99, 100])
@pytest.mark.parametrize("seed", [0, 5])
def test_every_label_has_its_share_and_the_count_is_exact(count: int, seed: int) -> None:
    part = stratified(DATA, count, seed)
    assert len(part) == count
    for label, whole in ((0, 60), (1, 30), ("rare", 10)):
        assert abs(counts(part).get(label, 0) - count * whole / 100) < 1


def test_what_is_left_goes_to_those_that_lost_most() -> None:
    # 4.2, 2.1 and 0.7 of 7.
    assert counts(stratified(DATA, 7, 0)) == {0: 4, 1: 2, "rare": 1}
    # 1.2, 0.6 and 0.2 of 2.
    assert counts(stratified(DATA, 2, 0)) == {0: 1, 1: 1}


def test_rows_stay_whole_and_in_their_order() -> None:
    part = stratified(DATA, 40, 3)
    assert set(part.rows) <= set(ROWS)
    assert all(first.number < second.number for first, second in pairwise(part.rows))
    assert replace(part, rows=ROWS) == DATA
    assert part.rows == tuple(ROWS[place] for place in stratified_rows(DATA, 40, 3))
    assert stratified(DATA, 100, 3) == DATA


def test_the_seed_decides() -> None:
    drawn = [stratified(DATA, 40, seed).rows for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    # Over many seeds, a class's rows are drawn alike.
    often = Counter(row.number for seed in range(300) for row in stratified(DATA, 10, seed).rows if row.label == 0)
    assert len(often) == 60
    # 30 are expected of each, with a standard deviation of 5.2.
    assert max(abs(often[n] - 30) for n in range(1, 61)) < 25


def test_rows_without_labels_are_one_group() -> None:
    data = Dataset("d", tuple(replace(row, label=None if row.label == 0 else row.label) for row in ROWS))
    assert counts(stratified(data, 20, 0)) == {None: 12, 1: 6, "rare": 2}


def test_too_few_rows() -> None:
    with pytest.raises(InputError, match=r"sorted has 100 texts, but 101 are needed.*--texts, --validation"):
        stratified(DATA, 101, 0)
    with pytest.raises(InputError, match="has 0 texts"):
        stratified(Dataset("empty", ()), 1, 0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_split_of_one_data_set_shares_no_row(seed: int) -> None:
    learned, judged = split(DATA, None, 40, 20, seed)
    assert counts(learned) == {0: 24, 1: 12, "rare": 4}
    assert counts(judged) == {0: 12, 1: 6, "rare": 2}
    assert not set(learned.rows) & set(judged.rows)
    for part in (learned, judged):
        assert all(first.number < second.number for first, second in pairwise(part.rows))


def test_a_split_counts_equal_rows_one_by_one() -> None:
    data = Dataset("d", (ROWS[0],) * 30)
    assert [len(part) for part in split(data, None, 20, 10, 0)] == [20, 10]


def test_other_texts_to_judge_by() -> None:
    dev = Dataset("dev", tuple(replace(row, text=f"other {row.text}") for row in ROWS))
    learned, judged = split(DATA, dev, 100, 10, 0)
    assert learned == DATA
    assert (judged.name, counts(judged)) == ("dev", {0: 6, 1: 3, "rare": 1})
    with pytest.raises(InputError, match="dev has 100 texts, but 101"):
        split(DATA, dev, 100, 101, 0)
    with pytest.raises(InputError, match="sorted has 100 texts, but 101"):
        split(DATA, None, 100, 1, 0)


def test_a_digest_tells_texts_and_their_order_apart() -> None:
    others = [
        replace(DATA, rows=ROWS[:-1]),
        replace(DATA, rows=ROWS[::-1]),
        replace(DATA, rows=(replace(ROWS[0], text="text 0 "), *ROWS[1:])),
        replace(DATA, rows=(replace(ROWS[0], text=("text", "0")), *ROWS[1:])),
    ]
    assert len({digest(data) for data in (DATA, *others)}) == 5
    assert digest(DATA) == digest(replace(DATA, name="renamed", sha256=""))
    assert digest(Dataset("d", (Row("half a pair \ud83d", None, 1),)))
