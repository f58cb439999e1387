"""A result as one row of a list: the beginning of its text, the model's output, and the target."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.citation_words import goal, score
from raison.report.explanations.layout import largest, strongest
from raison.report.style import phrases
from raison.report.style.markup import minus
from raison.report.style.phrases import AnyExplanation

Listable = AnyExplanation | Citations
BEGINS = 100
"""Number of characters of a text in a list."""
STRONGEST = 3
"""Number of units named next to a text."""
WIDTH = 24
"""Maximum number of characters of a unit's name."""
HEADS: Mapping[str, tuple[str, str]] = {
    "classes": ("predicted", "probability"),
    "labels": ("labels", "highest"),
    "number": ("output", "score"),
    "statement": ("written", "probability"),
    "output": ("written", "tokens"),
    "answer": ("answer", "statements"),
}
"""Columns for the model's output, by its kind."""
OTHER = ("said", "size")
"""The same if one list has several kinds."""


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A result in a list: the model's output, and the number `sure` by which `share` is sorted."""

    number: int
    said: str
    share: str
    sure: float
    explained: str
    method: str
    units: int
    begins: str


@dataclass(frozen=True, slots=True)
class Strong:
    """A unit or a source with its score (None for NaN), and its text."""

    text: str
    score: float | None
    said: str


def listed(number: int, one: Listable) -> ListEntry:
    """A result as a row of a list; the first has the number 0."""
    words, share, sure = _said(one)
    units = len(one.sources) if isinstance(one, Citations) else len(one.units)
    return ListEntry(number + 1, words, share, sure, _explained(one), one.method, units, excerpt(one, BEGINS))


def heads_of(results: Sequence[Listable]) -> tuple[str, str]:
    """The columns of the model's output."""
    return HEADS.get(common_kind(results), OTHER)


def common_kind(results: Sequence[Listable]) -> str:
    """The kind of all the models' outputs; "" for several kinds."""
    kinds = {kind_of(one) for one in results}
    return kinds.pop() if len(kinds) == 1 else ""


def common_unit(results: Sequence[Listable]) -> str:
    """The name of the units of all results; "unit" if they differ."""
    units = {"source" if isinstance(one, Citations) else one.unit for one in results}
    return units.pop() if len(units) == 1 else "unit"


def kind_of(one: Listable) -> str:
    """The kind of the model's output: a kind of prediction, an output, or an answer from sources."""
    if isinstance(one, Explanation):
        return one.outputs
    return "output" if isinstance(one, GenerationExplanation) else "answer"


def excerpt(one: Listable, width: int = 60) -> str:
    """The first words of the text, of both texts of a pair, of a prompt or of a question."""
    if isinstance(one, Citations):
        return phrases.shorten(one.question or one.prompt, width)
    if isinstance(one, GenerationExplanation):
        return phrases.shorten(one.prompt, width)
    return phrases.shorten(one.text if isinstance(one.text, str) else " / ".join(one.text), width)


def strongest_of(one: Listable) -> tuple[Strong, ...]:
    """The units with the largest absolute scores; for an answer, the sources with the largest effect on it."""
    if isinstance(one, Citations):
        return _top_sources(one)
    e = one if isinstance(one, Explanation) else one.whole()
    scored = [(e.units[unit], e.scores[unit]) for unit in strongest(e, STRONGEST)]
    places = phrases.decimals(largest(e))
    return tuple(
        Strong(phrases.named(unit, WIDTH), one if math.isfinite(one) else None, minus(phrases.score(e, one, places)))
        for unit, one in scored
    )


def _top_sources(c: Citations) -> tuple[Strong, ...]:
    best = {name: max(row[place] for row in c.scores) for place, name in enumerate(c.ids)}
    named = dict.fromkeys(c.top(number) for number in range(len(c.statements)))
    ranked = sorted(named, key=lambda name: -best[name])[:STRONGEST]
    return tuple(Strong(phrases.shorten(name, WIDTH), best[name], score(c, best[name])) for name in ranked)


def _explained(one: Listable) -> str:
    if isinstance(one, Citations):
        return goal(one)
    if isinstance(one, GenerationExplanation):
        return f"{phrases.quantity(one.of)} of each token"
    return phrases.target(one) if one.against is None else f"{phrases.target(one)} over {one.against}"


def _said(one: Listable) -> tuple[str, str, float]:
    """The model's output, its share or its size, and the number by which it is sorted."""
    if isinstance(one, Citations):
        return phrases.shorten(one.answer, BEGINS), str(len(one.statements)), len(one.statements)
    if isinstance(one, GenerationExplanation):
        return phrases.shorten(one.output, BEGINS), str(len(one.tokens)), len(one.tokens)
    verdict = phrases.verdict(one)
    if one.outputs == "number":
        return one.target, verdict.said, one.value_full
    if one.outputs == "labels":
        return ", ".join(one.decided) or "none", phrases.percent(max(one.probabilities)), max(one.probabilities)
    return verdict.said, verdict.rest, one.confidence or 0.0
