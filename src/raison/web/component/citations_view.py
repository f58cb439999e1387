"""Statements and sources as the component draws them: the sources of each statement, and the reverse."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from raison.core.results.citations import Citations
from raison.core.settings.reading import Fields, plain_values
from raison.report.explanations.citations_page import CitationsArticle, CitationStates, SourcePiece, article
from raison.report.style import phrases
from raison.report.style.markup import minus


@dataclass(frozen=True, slots=True)
class PaintedStatement:
    """A statement with its origin in words, and its row of the table."""

    text: str
    short: str
    origin: str
    cells: tuple[tuple[str, str], ...]
    """The description of each source, and its colour."""


@dataclass(frozen=True, slots=True)
class PaintedSource:
    """A source by its id, in pieces."""

    name: str
    pieces: tuple[SourcePiece, ...]


@dataclass(frozen=True, slots=True)
class PaintedCitations:
    """Citations as the component draws them."""

    question: str
    goal: str
    statements: tuple[PaintedStatement, ...]
    sources: tuple[PaintedSource, ...]
    low: str
    high: str
    strip: str
    states: CitationStates
    facts: tuple[tuple[str, str], ...]


def citations_seen(body: Mapping[str, object]) -> dict[str, object]:
    """The citations of a JSON object {"citations": ...}, as plain JSON values for the component."""
    fields = Fields(body, "a request")
    fields.need(["citations"])
    shown = article(Citations.from_dict(fields.mapping("citations")))
    return plain_values(asdict(_painted(shown)))


def _painted(shown: CitationsArticle) -> PaintedCitations:
    c = shown.c
    rows = zip(c.statements, shown.origins, shown.cells, strict=True)
    return PaintedCitations(
        question=c.question,
        goal=shown.goal,
        statements=tuple(
            PaintedStatement(
                one.text,
                phrases.shorten(one.text, 60),
                origin,
                tuple((minus(cell.told), cell.css) for cell in cells),
            )
            for one, origin, cells in rows
        ),
        sources=tuple(PaintedSource(name, tuple(pieces)) for name, pieces in zip(c.ids, shown.sources, strict=True)),
        low=minus(shown.low),
        high=minus(shown.high),
        strip=shown.gradient,
        states=shown.states,
        facts=tuple((name, str(fact)) for name, fact in shown.facts.items()),
    )
