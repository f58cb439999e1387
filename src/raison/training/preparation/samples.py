"""Stratified samples of a data set."""

import random
from collections import defaultdict
from dataclasses import replace

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Label


def stratified(data: Dataset, count: int, seed: int) -> Dataset:
    """`count` rows at random, each label in proportion, in the order of the data.

    Rows without a label are one group. Raises InputError if there are fewer rows.
    """
    return replace(data, rows=tuple(data.rows[number] for number in stratified_rows(data, count, seed)))


def stratified_rows(data: Dataset, count: int, seed: int) -> list[int]:
    """The places, counted from 0, of the rows that `stratified` takes."""
    if count > len(data):
        raise InputError(
            f"{data.name} has {len(data)} texts, but {count} are needed: use fewer (--texts, --validation), or "
            "give more."
        )
    rng = random.Random(seed)
    groups: dict[Label, list[int]] = defaultdict(list)
    for number, row in enumerate(data.rows):
        groups[row.label].append(number)
    for numbers in groups.values():
        rng.shuffle(numbers)
    # Largest remainders: shares are rounded down, and the rest goes to the largest fractions.
    exact = {label: count * len(numbers) / len(data) for label, numbers in groups.items()}
    quota = {label: int(share) for label, share in exact.items()}
    lost = sorted(exact, key=lambda label: (quota[label] - exact[label], str(label)))
    for label in lost[: count - sum(quota.values())]:
        quota[label] += 1
    return sorted(number for label, numbers in groups.items() for number in numbers[: quota[label]])


def split(data: Dataset, dev: Dataset | None, learned: int, judged: int, seed: int) -> tuple[Dataset, Dataset]:
    """`learned` texts for training and `judged` ones for validation, from `dev` or otherwise from `data`; no row in
    both.

    Labels keep their proportions. Raises InputError if there are fewer rows.
    """
    if dev is not None:
        return stratified(data, learned, seed), stratified(dev, judged, seed)
    both = stratified(data, learned + judged, seed)
    held_out = set(stratified_rows(both, judged, seed))
    parts = [tuple(row for n, row in enumerate(both.rows) if (n in held_out) == taken) for taken in (False, True)]
    return replace(both, rows=parts[0]), replace(both, rows=parts[1])
