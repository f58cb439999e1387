"""Upper bounds of the passes that explanations and citations state, known before anything runs.

A server's limit and every estimate use these. The two passes of a text's prediction and of its full removal belong to
no explanation and are not counted, except for citations, which state them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.inputs.unit import Unit
from raison.core.method import Cost, Method, Property
from raison.core.metric import Metric
from raison.core.results.explanation import Explanation
from raison.explaining.returned_values import announced
from raison.explaining.sources.citation_settings import CitationSettings
from raison.models.tokens.sourced import Sourced
from raison.models.tokens.written_answer import WrittenAnswer


@dataclass(frozen=True, slots=True)
class TextSize:
    """The units of a text, and all its tokens, special ones included."""

    units: int
    tokens: int


@dataclass(frozen=True, slots=True)
class CitationSize:
    """What decides the cost of citing: exact numbers, or upper bounds where the answer is not known yet."""

    sources: int
    sentences: int
    statements: int
    answer_tokens: int
    """Those of all statements together."""
    tokens: int
    """Those of the prompt with the whole answer."""
    lights: int
    """Masked prompts for the lights, with the whole prompt and the one without sources; see `lit`."""

    @classmethod
    def of(cls, answered: WrittenAnswer, draws: int) -> "CitationSize":
        """The size of a known answer."""
        statements = answered.tokens(answered.statements)
        whole = cls.of_any_answer(answered.source, len(answered.output.ids), draws)
        return replace(whole, statements=len(statements), answer_tokens=sum(map(len, statements)))

    @classmethod
    def of_any_answer(cls, source: Sourced, new_tokens: int, draws: int) -> "CitationSize":
        """An upper bound for every answer of at most `new_tokens` tokens: statements share no token.

        Random texts are not drawn, which takes long for many sources: at most, `draws` serve each source alone.
        """
        sources = len(source.sources)
        return cls(
            sources=sources,
            sentences=len(source.sentences),
            statements=new_tokens,
            answer_tokens=new_tokens,
            tokens=len(source.prompt.ids) + new_tokens,
            lights=2 + (sources * (1 + draws) if draws else 0),
        )


def of_text(method: Method, size: TextSize, predictions: int = 1) -> Cost:
    """One text. With target="each", each of its `predictions` states the passes that it would take alone."""
    return method.total_cost(size.units, size.tokens).times(predictions)


def of_tokens(method: Method, size: TextSize, count: int) -> Cost:
    """A prediction of several tokens, which share forward passes and have backward passes of their own."""
    return of_text(method, size).of_tokens(count)


def of_output(method: Method, prompt: TextSize, count: int, earlier: bool = False) -> Cost:
    """An output of `count` tokens. With `earlier`, every token has one unit more than the one before, and therefore
    shares no pass with it."""
    if not earlier:
        return of_tokens(method, TextSize(prompt.units, prompt.tokens + count), count)
    sizes = (TextSize(prompt.units + number, prompt.tokens + number) for number in range(count))
    return sum((of_text(method, size) for size in sizes), Cost())


def of_choice(method: Method, choosers: Sequence[Metric], units: Sequence[Unit]) -> Cost:
    """The choice among all maps that a method offers for a text: keeps that metrics share are evaluated once."""
    return Cost(count_keeps(choosers, units) * method.maps)


def of_citations(size: CitationSize, how: CitationSettings) -> Cost:
    """All statements, scores of whole sources where those of sentences do not add up to them, and the lights."""
    method = how.method
    units = size.sentences if how.within == "sentence" else size.sources
    cost = _of_statements(method, units, size)
    if how.scores_apart:
        cost += _of_statements(method, size.sources, size)
    # A baseline of embeddings cannot delete: the prompt without its sources is then read with these replaced as well.
    return cost + Cost(size.lights + bool(method.needs))


def _of_statements(method: Method, units: int, size: CitationSize) -> Cost:
    """All statements by one level of units. They share the forward passes of keeps that do not depend on values."""
    cost = of_tokens(method, TextSize(units, size.tokens), size.answer_tokens)
    if Property.ADAPTIVE not in method.properties:
        return cost
    return Cost(min(cost.forwards * size.statements, method.most_keeps(units, size.sources)), cost.backwards)


def count_keeps(metrics: Sequence[Metric], units: Sequence[Unit]) -> int:
    """Different keeps that metrics ask for on one explanation, the whole text not counted."""
    stand_in = blank_explanation(units)
    keys = {
        (removal, row.tobytes())
        for metric in metrics
        for removal, keeps in announced(metric, stand_in).items()
        for row in keeps
        if not row.all()
    }
    return len(keys)


def blank_explanation(units: Sequence[Unit]) -> Explanation:
    """An explanation of no text, whose scores rise from unit to unit: what metrics ask for is known from it."""
    return Explanation(
        text="any text",
        unit="word",
        units=tuple(units),
        scores=tuple(float(number) for number in range(len(units))),
        classes=("",),
        probabilities=(1.0,),
        target="",
        against=None,
        of="probability",
        value_full=1.0,
        value_empty=0.0,
        method="random",
        config={},
        model="",
        removal="mask",
        seed=0,
        evaluations=0,
        gradients=0,
        seconds=0.0,
    )
