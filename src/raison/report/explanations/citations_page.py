"""Citations as HTML: the answer next to its sources. A statement colours the sources that it depends on, a source the
statements that depend on it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from raison.core.note_names import NOISE
from raison.core.results.citations import Citations
from raison.report.explanations.citation_words import ORIGINS, goal, light, score, support
from raison.report.style import phrases
from raison.report.style.colours import Scale, level
from raison.report.style.markup import assets, document, minus, rendered

STYLES = ("explanation.css", "generation.css", "citations.css")


@dataclass(frozen=True, slots=True)
class SourcePiece:
    """Characters of a source: a sentence with its number, or text between sentences (None)."""

    text: str
    sentence: int | None


@dataclass(frozen=True, slots=True)
class EvidenceCell:
    """The evidence on a statement and a source in words, and its colour."""

    told: str
    css: str


@dataclass(frozen=True, slots=True)
class CitationStates:
    """The data of a page's script: a palette, and for each statement the shades of sources and of their sentences.

    `told` describes each source.
    """

    palette: list[str]
    scores: list[list[int]]
    told: list[list[str]]
    within: list[list[int]]


@dataclass(frozen=True, slots=True)
class CitationsArticle:
    """Citations as a page shows them; without a script, the colours are those of the first statement."""

    c: Citations
    goal: str
    sources: list[list[SourcePiece]]
    origins: list[str]
    cells: list[list[EvidenceCell]]
    facts: dict[str, object]
    low: str
    high: str
    gradient: str
    states: CitationStates

    @property
    def script_data(self) -> dict[str, object]:
        """The states as plain values."""
        return asdict(self.states)


def page(citations: Citations | Sequence[Citations]) -> str:
    """A standalone page of one or more questions, without any link to the network."""
    shown = [citations] if isinstance(citations, Citations) else list(citations)
    one = phrases.shorten(shown[0].question or shown[0].answer, 60)
    title = one if len(shown) == 1 else f"{len(shown)} answers and their sources"
    versions = " ".join(["raison", *sorted({c.version for c in shown if c.version})])
    values = {"heading": "Answer and sources", "articles": [*map(article, shown)], "versions": versions}
    return document(title, rendered("citations.html", values), (*STYLES, "page.css"), ("citations.js",))


def fragment(c: Citations) -> str:
    """Citations for a notebook: scoped styles, no script."""
    values = {"styles": assets((*STYLES, "fragment.css")), "articles": [article(c)]}
    return str(rendered("citations_fragment.html", values))


def article(c: Citations) -> CitationsArticle:
    """The layout of the citations."""
    largest = max(abs(one) for row in c.scores for one in row)
    scale = Scale(c.signed)
    count = len(c.statements)
    cells = [[_cell(c, i, j, largest) for j in range(len(c.sources))] for i in range(count)]
    return CitationsArticle(
        c,
        f"{goal(c)}, with {c.method}",
        [_pieces(c, j) for j in range(len(c.sources))],
        [ORIGINS.get(statement.origin or "", "") for statement in c.statements],
        cells,
        _facts(c),
        score(c, -largest if c.signed else 0.0),
        score(c, largest),
        scale.gradient(),
        CitationStates(
            palette=scale.palette(),
            scores=[[scale.place(level(one, largest)) for one in row] for row in c.scores],
            told=[[cell.told for cell in row] for row in cells],
            within=[_inner(c, i, largest) for i in range(count)],
        ),
    )


def _inner(c: Citations, statement: int, largest: float) -> list[int]:
    """The shade of each sentence; one that the method did not examine has that of its source."""
    homes = [c.ids.index(sentence.name) for sentence in c.sentences]
    return [
        Scale(c.signed).place(level(c.scores[statement][home] if value is None else value, largest))
        for value, home in zip(c.within[statement], homes, strict=True)
    ]


def _pieces(c: Citations, number: int) -> list[SourcePiece]:
    source = c.sources[number]
    pieces, reached = [], source.start
    for place, sentence in enumerate(c.sentences):
        if sentence.name == source.name:
            if sentence.start > reached:
                pieces.append(SourcePiece(c.prompt[reached : sentence.start], None))
            pieces.append(SourcePiece(sentence.text, place))
            reached = sentence.end
    return [*pieces, SourcePiece(c.prompt[reached : source.end], None)]


def _cell(c: Citations, statement: int, number: int, largest: float) -> EvidenceCell:
    value = c.scores[statement][number]
    details = [score(c, value)]
    if c.intervals:
        low, high = c.intervals[statement][number]
        details.append(f"95 % interval {score(c, low)} to {score(c, high)}")
    if c.checks:
        details.append(light(c, statement, number))
    if c.supported:
        details.append(support(c, statement, number))
    return EvidenceCell(", ".join(details), Scale(c.signed).css(level(value, largest)))


def _facts(c: Citations) -> dict[str, object]:
    config = ", ".join(f"{name}={value}" for name, value in c.config.items())
    return {
        "Method": f"{c.method}: {config}" if config else c.method,
        "Model": c.model,
        "Template": c.template,
        "Removal": c.removal,
        "Seed": c.seed,
        "Cost": phrases.effort(c),
        **{f"Note: {name}": minus(str(value)) for name, value in c.notes.items() if name != NOISE},
        **({"Noise": phrases.noise(c.notes)} if NOISE in c.notes else {}),
        "Version": f"raison {c.version}",
    }
