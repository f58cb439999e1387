"""The kinds of model output, which decide what is explained and how it is shown. This file never needs torch."""

from typing import Literal

Outputs = Literal["classes", "labels", "number", "statement"]
"""One of several classes, any of several labels (each with its own probability), or one number in its own units (a
rating, a similarity, a reward); or the likelihood of a statement that a language model wrote.
"""

EVERY: frozenset[Outputs] = frozenset({"classes", "labels", "number", "statement"})
PROBABILITIES: frozenset[Outputs] = frozenset({"classes", "labels"})
"""The kinds with a probability for each class or label."""

THRESHOLD = 0.5
"""The probability from which a label counts as predicted."""


def outputs_of(classes: tuple[str, ...], multi_label: bool) -> Outputs:
    """One output without a sigmoid is a number: a softmax over it would always be 1."""
    if multi_label:
        return "labels"
    return "number" if len(classes) == 1 else "classes"
