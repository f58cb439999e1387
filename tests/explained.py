"""Explanations whose scores a test chooses."""

import re
from collections.abc import Sequence

from raison.core.inputs.unit import Text, Unit, segments
from raison.core.results.explanation import Explanation


def of_words(text: Text, scores: Sequence[float] | None = None, pattern: str = r"\S+") -> Explanation:
    """Of the parts of the text that match the pattern, its words if not stated; without scores, all are 0."""
    units = tuple(
        Unit(match.start(), match.end(), match.group(), number)
        for number, part in enumerate(segments(text))
        for match in re.finditer(pattern, part)
    )
    return Explanation(
        text=text,
        unit="word",
        units=units,
        scores=(0.0,) * len(units) if scores is None else tuple(map(float, scores)),
        classes=("negative", "positive"),
        probabilities=(0.25, 0.75),
        target="positive",
        against=None,
        of="probability",
        value_full=0.75,
        value_empty=0.5,
        method="occlusion",
        config={},
        model="demo/sst2",
        removal="mask",
        seed=0,
        evaluations=12,
        gradients=0,
        seconds=0.5,
    )
