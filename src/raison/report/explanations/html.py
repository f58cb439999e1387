"""Explanations as HTML: a standalone page, and a fragment for notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.layout import Layout, largest, layout
from raison.report.explanations.output_layout import OutputLayout, output_layout, token_layout
from raison.report.explanations.several import are_targets, targets_layout
from raison.report.style import phrases
from raison.report.style.markup import assets, document, minus, rendered
from raison.report.style.phrases import Explained

STEPS = 20
"""Shades between zero and an end of the scale; the script picks among them."""


@dataclass(frozen=True, slots=True)
class Article:
    """An explanation on a page of several: how the list of them tells it, and its layout."""

    excerpt: str
    told: str
    explanation: Layout | None = None
    output: OutputLayout | None = None

    @property
    def states(self) -> dict[str, object]:
        """What the page's script shows of an output."""
        return {} if self.output is None else _states(self.output)


def page(explanations: Explained | Sequence[Explained]) -> str:
    """A standalone page of one or more explanations, without any link to the network.

    Several targets of one text have a matrix, and a tab each.
    """
    shown = [explanations] if isinstance(explanations, Explained) else list(explanations)
    outputs = all(isinstance(e, GenerationExplanation) for e in shown)
    title = heading = f"{len(shown)} {'explained outputs' if outputs else 'explanations'}"
    targets = targets_layout([e for e in shown if isinstance(e, Explanation)]) if are_targets(shown) else None
    if len(shown) == 1 or targets:
        title = heading = _title(shown[0])
        heading = title if outputs else "Explanation"
    versions = " ".join(["raison", *sorted({e.version for e in shown if e.version})])
    values = {"heading": heading, "articles": [*map(_article, shown)], "targets": targets, "versions": versions}
    scripts = ("page.js", *(("generation.js",) * _has_output(shown)), *(("tabs.js",) * bool(targets)))
    return document(title, rendered("explanations.html", values), (*_styles(shown), "page.css"), scripts)


def fragment(e: Explained) -> str:
    """One explanation for a notebook: scoped styles, no script, light or dark like the notebook."""
    return _fragment([e])


def beside(explanations: Sequence[Explanation]) -> str:
    """Explanations side by side for a notebook, their colours and bars on one scale."""
    return _fragment(explanations, max(map(largest, explanations)))


def excerpt(e: Explanation, width: int = 60) -> str:
    """The first words of the text, or of both texts of a pair."""
    return phrases.shorten(e.text if isinstance(e.text, str) else " / ".join(e.text), width)


def _fragment(explanations: Sequence[Explained], shared: float | None = None) -> str:
    articles = [_article(e, shared) for e in explanations]
    styles = assets((*_styles(explanations), "fragment.css"))
    return str(rendered("fragment.html", {"styles": styles, "articles": articles}))


def _has_output(shown: Sequence[Explained]) -> bool:
    return any(isinstance(e, GenerationExplanation) for e in shown)


def _styles(shown: Sequence[Explained]) -> tuple[str, ...]:
    has_matrix = _has_output(shown) or are_targets(shown)
    return ("explanation.css", "generation.css") if has_matrix else ("explanation.css",)


def _article(e: Explained, shared: float | None = None) -> Article:
    if isinstance(e, GenerationExplanation):
        return Article(phrases.shorten(e.output, 60), e.method, output=output_layout(e))
    return Article(excerpt(e), f"{phrases.verdict(e).line}, {e.method}", layout(e, shared))


def _title(e: Explained) -> str:
    """The predicted class, or if there is none or several the model's output in words; or what was written."""
    if isinstance(e, GenerationExplanation):
        return f"Why “{phrases.shorten(e.output, 50)}”"
    told = e.prediction if e.outputs == "classes" else phrases.verdict(e).line
    return f"{told}: {excerpt(e)}"


def _states(shown: OutputLayout) -> dict[str, object]:
    """A palette, and for the whole output and each token the shade and value of each of the prompt's units."""
    states = {"all": _state(shown.whole, "Colours for the whole output", len(shown.e.units))}
    for number, row in enumerate(shown.rows):
        states[str(number)] = _state(token_layout(shown, number), row.heading, len(row.cells))
    return {"palette": [shown.scale.css(step) for step in shown.scale.steps(STEPS)], "states": states}


def _state(shown: Layout, heading: str, known: int) -> dict[str, object]:
    """The first `known` units were written before the token; a later one has neither a shade nor a value."""
    zero = STEPS if shown.scale.signed else 0
    units = [span for span in shown.passages[0].spans if span.is_unit]
    later = [min(span.piece.units) >= known for span in units]
    return {
        "heading": heading,
        "low": minus(shown.ends.low),
        "high": minus(shown.ends.high),
        "shades": [
            None if gone or span.level is None else round(span.level * STEPS) + zero
            for span, gone in zip(units, later, strict=True)
        ],
        "values": ["not written yet" if gone else minus(span.value) for span, gone in zip(units, later, strict=True)],
    }
