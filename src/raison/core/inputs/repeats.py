"""Texts that are given more than once: a repeat has the same explanation and scores, and is no new evidence."""

from collections.abc import Hashable, Sequence


def distinct(texts: Sequence[Hashable], targets: object = None) -> list[int]:
    """The numbers of texts that repeat no earlier one. With a list of targets, a repeat has the same target, too."""
    keys = [*zip(texts, targets, strict=True)] if isinstance(targets, list) else texts
    first: dict[Hashable, int] = {}
    for number, key in enumerate(keys):
        first.setdefault(key, number)
    return list(first.values())


def caution_of_repeats(texts: int, different: int) -> tuple[str, ...]:
    """What to report with results on texts of which only some are different: a sentence or none."""
    repeated = texts - different
    if not repeated:
        return ()
    return (
        f"{repeated:,} of {texts:,} texts {'repeats' if repeated == 1 else 'repeat'} others: n and the intervals count "
        "them as if they were independent",
    )
