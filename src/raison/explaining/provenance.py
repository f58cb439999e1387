"""What explanations that are reported as one have in common: those of an output's tokens, of an answer's statements."""

from collections.abc import Sequence
from dataclasses import asdict

from raison.core.method import Method
from raison.core.note_names import AUTO, CAUTION, DECOMPOSED, NOISE, SERVED, TRAINED_FOR, UNSTEADY
from raison.core.problem import StandIn
from raison.core.registry import name_of
from raison.core.results.explanation import Explanation
from raison.core.results.notes import noise_in

SAID = (AUTO, CAUTION, DECOMPOSED, TRAINED_FOR, UNSTEADY)
"""Notes in words, which a reader of the whole needs."""


def method_of(explained: Sequence[Explanation], requested: Method) -> StandIn:
    """The method that made all of them, or the requested one if it took several, as `auto` may for different numbers of
    units. Scores are signed if those of any are."""
    first, is_signed = explained[0], any(e.signed for e in explained)
    if all((e.method, e.config) == (first.method, first.config) for e in explained):
        return StandIn(first.method, first.config, is_signed)
    return StandIn(name_of(requested), asdict(requested), is_signed)


def said(explained: Sequence[Explanation]) -> dict[str, object]:
    """Their notes in words. If these differ, a note has every different sentence once."""
    notes: dict[str, object] = {}
    for name in SAID:
        values = [e.notes[name] for e in explained if name in e.notes]
        sentences = dict.fromkeys(one for value in values for one in (value if isinstance(value, list) else [value]))
        if sentences:
            notes[name] = "; ".join(map(str, sentences))
    return notes


def noise_of(explained: Sequence[Explanation]) -> dict[str, object]:
    """Their notes on a server's answers, of the one whose answers differ most."""
    noted = [e.notes for e in explained if SERVED in e.notes]
    worst = max(noted, key=noise_in, default={})
    return {name: worst[name] for name in (SERVED, NOISE) if name in worst}
