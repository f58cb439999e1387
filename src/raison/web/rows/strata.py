"""All texts of a row divided into slices by their known properties, with the accuracy in every slice."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raison.web.rows.lines import RunLine
from raison.web.rows.slices import Accuracy, accuracy_of

MOST = 30
"""Maximum number of labels and predictions with a slice, the most frequent ones."""
QUARTERS = (0.25, 0.5, 0.75)

By = Literal["label", "prediction", "units", "confidence"]


@dataclass(frozen=True, slots=True)
class Stratum:
    """A slice; `query` has the parameters by which GET /api/runs/texts gives it."""

    by: By
    query: Mapping[str, str | int | float]
    texts: int
    accuracy: Accuracy | None


def strata(lines: Sequence[RunLine]) -> list[Stratum]:
    """By label, by prediction, and by quarters of length and of confidence."""
    return [
        *_named(lines, "label", lambda line: line.label),
        # Nearly all written answers differ.
        *_named(lines, "prediction", lambda line: line.prediction if line.size is None else None),
        *_quarters(lines, "units", "least", "most", lambda line: line.units),
        *_quarters(lines, "confidence", "surer", "unsurer", lambda line: line.confidence),
    ]


def _named(lines: Sequence[RunLine], by: By, value: Callable[[RunLine], str | None]) -> Iterator[Stratum]:
    counts = Counter(name for line in lines if (name := value(line)) is not None)
    for name, count in counts.most_common(MOST):
        members = [line for line in lines if value(line) == name]
        yield Stratum(by, {by: name}, count, accuracy_of(members))


def _quarters(
    lines: Sequence[RunLine], by: By, least: str, most: str, value: Callable[[RunLine], float | None]
) -> Iterator[Stratum]:
    """Slices of about a quarter of the texts; equal values stay together, and each slice ends at a value that
    occurs."""
    known = sorted({number for line in lines if (number := value(line)) is not None})
    if len(known) < len(QUARTERS) + 1:
        return
    values = [number for line in lines if (number := value(line)) is not None]
    edges = np.quantile(values, QUARTERS, method="lower").tolist()
    start = known[0]
    for edge in [*dict.fromkeys(edges), known[-1]]:
        inside = [one for one in known if start <= one <= edge]
        if inside:
            members = [line for line in lines if (number := value(line)) is not None and start <= number <= edge]
            yield Stratum(by, {least: inside[0], most: inside[-1]}, len(members), accuracy_of(members))
        start = next((one for one in known if one > edge), float("inf"))
