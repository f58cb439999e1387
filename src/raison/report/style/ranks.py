"""Numbers among those of other texts, in words."""

from raison.core.note_names import AMONG, RANKING
from raison.core.results import number_rank
from raison.core.results.explanation import Explanation
from raison.core.targets.ranking import places_of


def among_texts(e: Explanation) -> str:
    """The rank of the number among those of the texts that were explained with it."""
    if AMONG not in e.notes:
        return ""
    known = number_rank.NumberRank.read(e.notes[AMONG])
    away = known.distance(e.value_full)
    side = "below" if away < 0 else "above"
    return f", rank {known.rank} of {known.texts} texts, {abs(away):.1f} SD {side} their mean"


def among_documents(e: Explanation) -> str:
    """The ranks of the two documents, and the difference between them."""
    numbers = e.notes.get(RANKING, ())
    places = places_of(e.target)
    if len(numbers) < number_rank.FEWEST or not places or max(places) >= len(numbers) or min(places) < 0:
        return ""
    first, second = (number_rank.NumberRank.of(numbers[place], numbers) for place in places)
    apart = f", {abs(e.value_full) / first.sd:.1f} SD of their numbers" if first.sd else ""
    return f", ranks {first.rank} and {second.rank} of {first.texts} documents{apart}"
