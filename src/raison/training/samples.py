"""Parts of a data set in which every label has its share."""

import random
from collections import defaultdict
from dataclasses import replace

from raison.core.errors import InputError
from raison.data.dataset import Dataset, Label


def stratified(data: Dataset, count: int, seed: int) -> Dataset:
    """`count` rows at random, of every label as many as its share, in the order of the data.

    Rows without a label are one group. Raises InputError where there are fewer rows.
    """
    if count > len(data):
        raise InputError(
            f"{data.name} has {len(data)} texts and {count} are asked for: ask for fewer (--texts, --validation), or "
            "give more."
        )
    rng = random.Random(seed)
    groups: dict[Label, list[int]] = defaultdict(list)
    for number, row in enumerate(data.rows):
        groups[row.label].append(number)
    for numbers in groups.values():
        rng.shuffle(numbers)
    # Largest remainders: shares rounded down, and what is left goes to those that lost most.
    exact = {label: count * len(numbers) / len(data) for label, numbers in groups.items()}
    quota = {label: int(share) for label, share in exact.items()}
    lost = sorted(exact, key=lambda label: (quota[label] - exact[label], str(label)))
    for label in lost[: count - sum(quota.values())]:
        quota[label] += 1
    chosen = sorted(number for label, numbers in groups.items() for number in numbers[: quota[label]])
    return replace(data, rows=tuple(data.rows[number] for number in chosen))
