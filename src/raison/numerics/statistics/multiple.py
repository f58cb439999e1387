"""Multiple tests: corrected p-values."""

import math
from collections.abc import Sequence

from raison.core.errors import InputError


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values of Holm (1979), in the order given; they bound the chance of any false finding.

    With the m p-values sorted, p_(1) <= ... <= p_(m), the adjusted one is max over j <= i of (m - j + 1) p_(j), at
    most 1. NaN stands for a test that was not made: it stays NaN and does not count in m. Raises InputError on a
    number outside 0..1.
    """
    wrong = [p for p in p_values if not (math.isnan(p) or 0 <= p <= 1)]
    if wrong:
        raise InputError(f"a p-value is a number from 0 to 1, or NaN for a test that was not run; got {wrong[0]}.")
    made = sorted((i for i, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i])
    adjusted = [math.nan] * len(p_values)
    highest = 0.0
    for place, i in enumerate(made):
        highest = max(highest, min(1.0, (len(made) - place) * p_values[i]))
        adjusted[i] = highest
    return tuple(adjusted)
