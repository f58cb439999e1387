"""The different texts of a problem: with several targets per text, work that is independent of the target is done once
per text.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.problem import Problem

Result = TypeVar("Result")


def distinct(encoding: Encoding) -> dict[int, list[int]]:
    """The first row of each text that differs in its tokens or units from those before, and all its rows.

    If predictions are read at places of a text, every row differs.
    """
    if encoding.spans is not None:
        return {row: [row] for row in range(len(encoding))}
    first: dict[tuple[tuple[int, ...], ...], int] = {}
    groups: dict[int, list[int]] = {}
    lines = [encoding.input_ids, encoding.type_ids, encoding.unit_ids, encoding.attention_mask]
    for row, parts in enumerate(zip(*(line.tolist() for line in lines), strict=True)):
        groups.setdefault(first.setdefault(tuple(map(tuple, parts)), row), []).append(row)
    return groups


def in_distinct_batches(
    problem: Problem, run: Callable[[list[int]], Result]
) -> Iterator[tuple[list[int], list[int], Result]]:
    """Run the first row of each different text in batches: rows, the place of each in the result, and the result."""
    same = distinct(problem.encoding)
    firsts = list(same)
    batches = problem.model.ask(Passes).in_batches(
        problem.encoding.select(firsts), lambda rows: run([firsts[row] for row in rows])
    )
    for batch, result in batches:
        places = [(text, place) for place, row in enumerate(batch) for text in same[firsts[row]]]
        yield [text for text, _ in places], [place for _, place in places], result
