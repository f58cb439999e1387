"""Sentences about the gap between the sum of the scores and the change in value."""

from raison.core.note_names import COMPLETENESS_GAP
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation

MUCH = 0.25
"""The share of the change in value from which a gap is warned of."""
_WAY_OUT = "give the method more steps, if it has any, or use another one"


def gap(e: Explanation | GenerationExplanation) -> str | None:
    """The gap, for methods that note it; of an output, the sum over its tokens."""
    noted = e.notes.get(COMPLETENESS_GAP)
    if noted is None:
        return None
    if isinstance(e, Explanation):
        return completeness(e, noted)
    return f"{noted:+.2g} between the sums of the scores and the changes in value"


def completeness(e: Explanation, gap: float) -> str:
    """The gap between the sum of an explanation's scores and the change in value; a rounding error counts as none."""
    if abs(gap) <= 1e-6 * max(abs(e.value_full), abs(e.value_empty)):
        return "none: the scores add up to the change in value"
    return f"{gap:+.2g} between the sum of the scores and the change in value"


def caution_of_gap(e: Explanation | GenerationExplanation) -> str | None:
    """A sentence, without its full stop, if the scores are far from adding up to the change in value."""
    if isinstance(e, GenerationExplanation):
        noted = COMPLETENESS_GAP in e.notes
        far = [number for number in range(len(e.tokens)) if _is_far(e.token(number))] if noted else []
        if not far:
            return None
        return (
            f"the scores of {len(far)} of {len(e.tokens)} output tokens are far from adding up to the change in value: "
            f"{_WAY_OUT}"
        )
    if not _is_far(e):
        return None
    total, noted_gap = sum(e.scores), e.notes[COMPLETENESS_GAP]
    return f"the scores add up to {total:+.2g}, but the value changes by {total - noted_gap:+.2g}: {_WAY_OUT}"


def _is_far(e: Explanation) -> bool:
    noted = e.notes.get(COMPLETENESS_GAP)
    if noted is None:
        return False
    # The change that the method itself noted, which may start from another baseline than the removed text.
    change = sum(e.scores) - noted
    return abs(noted) > MUCH * abs(change) and abs(noted) > 1e-3 * max(abs(e.value_full), abs(e.value_empty))
