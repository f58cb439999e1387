"""Generated outputs as the component draws them: the answer token by token, and the prompt's map for each."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from raison.core.errors import InputError
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import Fields, plain_values
from raison.report.explanations.layout import MatrixRow, ScaleEnds
from raison.report.explanations.output_layout import OutputLayout, PromptColouring, output_layout, span_state, states
from raison.report.explanations.pairwise_agreement import agreement
from raison.report.style import phrases
from raison.report.style.markup import minus
from raison.web.component.views import PaintedPassage, from_to, painted_ends, painted_passage, seen

OWN_SCALES = "Each map has a scale of its own, and so has each token"


@dataclass(frozen=True, slots=True)
class PaintedCell:
    """A score of the matrix; `said` names its unit."""

    value: str
    said: str
    colour: str


@dataclass(frozen=True, slots=True)
class PaintedToken:
    """A token of the answer with its row of the matrix; `start` and `end` count the answer's code points."""

    text: str
    start: int
    end: int
    against: str
    probability: str
    heading: str
    cells: tuple[PaintedCell, ...]


@dataclass(frozen=True, slots=True)
class PaintedOutput:
    """An explained output as the component draws it; `states` are of the whole and of each token."""

    written: str
    goal: str
    unit: str
    signed: bool
    method: str
    passages: tuple[PaintedPassage, ...]
    ends: ScaleEnds
    strip: str
    tokens: tuple[PaintedToken, ...]
    names: tuple[str, ...]
    matrix_ends: ScaleEnds
    palette: tuple[str, ...]
    states: Mapping[str, PromptColouring]
    cautions: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    """Remarks on this output and the one that it is compared with."""


def output_seen(body: Mapping[str, object]) -> dict[str, object]:
    """The explained output of a JSON object {"explanation": ...}, as plain JSON values for the component.

    `beside` may name another one, with which it is compared.
    """
    e, other = _read(body), body.get("beside")
    remarks = () if other is None else tuple(_of_two(_read({"explanation": other}), e))
    return plain_values(asdict(_painted(output_layout(e), remarks)))


def span_seen(body: Mapping[str, object]) -> dict[str, object]:
    """The state of the output tokens `first` to `last`, counted from 0."""
    e = _read(body)
    first, last = (_number(body, name, e) for name in ("first", "last"))
    if first > last:
        raise InputError(f"the span's first token, {first}, comes after its last, {last}: swap them.")
    return plain_values(asdict(span_state(output_layout(e), first, last)))


def token_seen(body: Mapping[str, object]) -> dict[str, object]:
    """One output token, `token`, as a separate map."""
    e = _read(body)
    return seen([e.token(_number(body, "token", e))])


def _of_two(first: GenerationExplanation, second: GenerationExplanation) -> Iterator[str]:
    """Remarks on two outputs side by side; for the same output, how its probability changes."""
    if first.output == second.output:
        yield from_to("probability of the answer", *(math.exp(e.log_probability) for e in (first, second)))
    yield agreement(first.whole(), second.whole())
    yield OWN_SCALES


def _read(body: Mapping[str, object]) -> GenerationExplanation:
    fields = Fields(body, "a request")
    fields.need(["explanation"])
    return GenerationExplanation.from_dict(fields.mapping("explanation"))


def _number(body: Mapping[str, object], name: str, e: GenerationExplanation) -> int:
    fields = Fields(body, "a request")
    fields.need([name])
    number = fields.whole(name)
    if number >= len(e.tokens):
        raise InputError(f"there is no output token {number}: there are {len(e.tokens)}, counted from 0.")
    return number


def _painted(shown: OutputLayout, remarks: tuple[str, ...]) -> PaintedOutput:
    e = shown.e
    return PaintedOutput(
        written=phrases.shorten(e.output, 200),
        goal=shown.goal,
        unit=e.unit,
        signed=e.signed,
        method=e.method,
        passages=tuple(painted_passage(shown.whole, passage) for passage in shown.whole.passages),
        ends=painted_ends(shown.whole.ends),
        strip=shown.scale.gradient(),
        tokens=tuple(_token(shown, number, row) for number, row in enumerate(shown.rows)),
        names=shown.names,
        matrix_ends=painted_ends(shown.ends),
        palette=tuple(shown.scale.palette()),
        states=states(shown),
        cautions=tuple(phrases.cautions(e)),
        facts=tuple((name, str(fact)) for name, fact in shown.facts.items()),
        remarks=remarks,
    )


def _token(shown: OutputLayout, number: int, row: MatrixRow) -> PaintedToken:
    token, before = shown.e.tokens[number], len(shown.e.prompt)
    cells = tuple(
        PaintedCell(minus(cell.value), f"{shown.names[cell.unit]}: {minus(cell.value)}", shown.scale.css(cell.level))
        for cell in row.cells
    )
    place = (token.start - before, token.end - before)
    return PaintedToken(row.text, *place, row.against, row.probability, row.heading, cells)
