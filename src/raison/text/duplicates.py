"""Near-duplicates among several texts, by the runs of words that they share."""

from collections.abc import Sequence
from typing import Final

from raison.text.segment import word_spans

RUN: Final = 5
"""Number of words of a run; a shorter text has one run."""
SHARED: Final = 0.5
"""Minimum share of the shorter text's runs that a near-duplicate shares."""


def near_duplicates(texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """For each text the numbers of all that are near-duplicates of it, itself included, ascending.

    Two texts are near-duplicates if at least half (SHARED) of the different runs of five words (RUN) of the one with
    fewer runs occur in the other, ignoring case and punctuation. A near-duplicate of a near-duplicate also counts as
    one.
    """
    runs = [_runs(text) for text in texts]
    group = list(range(len(texts)))
    for one in range(len(texts)):
        for other in range(one):
            fewest = min(len(runs[one]), len(runs[other]))
            if fewest and len(runs[one] & runs[other]) >= SHARED * fewest:
                old, new = group[one], group[other]
                group = [new if number == old else number for number in group]
    return tuple(tuple(n for n, number in enumerate(group) if number == group_number) for group_number in group)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = [text[start:end].casefold() for start, end in word_spans(text)]
    words = [word for word in words if any(map(str.isalnum, word))]
    return {tuple(words[first : first + RUN]) for first in range(max(1, len(words) - RUN + 1))} if words else set()
