"""Explanations as HTML: a standalone page, and a fragment for notebooks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.layout import ExplanationLayout, layout
from raison.report.explanations.listed import ListEntry, excerpt, heads_of, listed
from raison.report.explanations.output_layout import OutputLayout, output_layout, states
from raison.report.explanations.pairwise_agreement import agreements
from raison.report.explanations.several import are_targets, common_scale, targets_layout, together
from raison.report.style import phrases
from raison.report.style.markup import assets, document, rendered
from raison.report.style.phrases import AnyExplanation


@dataclass(frozen=True, slots=True)
class ExplanationArticle:
    """An explanation on a page of several: its row in their list, and its layout."""

    told: ListEntry
    explanation: ExplanationLayout | None = None
    output: OutputLayout | None = None

    @property
    def states(self) -> dict[str, object]:
        """The data that the page's script shows for an output."""
        if self.output is None:
            return {}
        named = {name: asdict(state) for name, state in states(self.output).items()}
        return {"palette": self.output.scale.palette(), "states": named}


LISTS = ("texts.css", "listing.css")
"""Styles of a page with a list of its content."""


def page(explanations: AnyExplanation | Sequence[AnyExplanation]) -> str:
    """A standalone page of one or more explanations, without any link to the network.

    Several targets of one text get a matrix, and a tab each. For two explanations of one text the page shows their
    agreement; if there are more, that of any two that are ticked.
    """
    shown = [explanations] if isinstance(explanations, AnyExplanation) else list(explanations)
    outputs = all(isinstance(e, GenerationExplanation) for e in shown)
    title = heading = f"{len(shown)} {'explained outputs' if outputs else 'explanations'}"
    targets = targets_layout([e for e in shown if isinstance(e, Explanation)]) if are_targets(shown) else None
    if len(shown) == 1 or targets:
        title = heading = _title(shown[0])
        heading = title if outputs else "Explanation"
    versions = " ".join(["raison", *sorted({e.version for e in shown if e.version})])
    many = len(shown) > 1 and not targets
    alike = agreements(shown)
    values = {
        "heading": heading,
        "articles": [_article(number, e) for number, e in enumerate(shown)],
        "targets": targets,
        "heads": heads_of(shown) if many else None,
        "together": asdict(on_one_scale) if many and (on_one_scale := together(shown)) else None,
        "alike": alike,
        "agreement": next(iter(alike.values()), None) if len(shown) == 2 else None,
        "versions": versions,
    }
    styles = (*_styles(shown), "page.css", *(LISTS * many))
    live = {"generation.js": _has_output(shown), "tabs.js": targets, "listing.js": many, "several.js": many}
    return document(title, rendered("explanations.html", values), styles, ["page.js", *filter(live.get, live)])


def fragment(e: AnyExplanation) -> str:
    """One explanation for a notebook: scoped styles, no script, light or dark like the notebook."""
    return _fragment([e])


def beside(explanations: Sequence[Explanation]) -> str:
    """Explanations side by side for a notebook, their colours and bars on one scale if they have one."""
    return _fragment(explanations, common_scale(explanations))


def _fragment(explanations: Sequence[AnyExplanation], shared: float | None = None) -> str:
    articles = [_article(number, e, shared) for number, e in enumerate(explanations)]
    styles = assets((*_styles(explanations), "fragment.css"))
    agreement = next(iter(agreements(explanations).values()), None) if len(explanations) == 2 else None
    return str(rendered("fragment.html", {"styles": styles, "articles": articles, "agreement": agreement}))


def _has_output(shown: Sequence[AnyExplanation]) -> bool:
    return any(isinstance(e, GenerationExplanation) for e in shown)


def _styles(shown: Sequence[AnyExplanation]) -> tuple[str, ...]:
    has_matrix = _has_output(shown) or are_targets(shown)
    return ("explanation.css", "generation.css") if has_matrix else ("explanation.css",)


def _article(number: int, e: AnyExplanation, shared: float | None = None) -> ExplanationArticle:
    if isinstance(e, GenerationExplanation):
        return ExplanationArticle(listed(number, e), output=output_layout(e))
    return ExplanationArticle(listed(number, e), layout(e, shared))


def _title(e: AnyExplanation) -> str:
    """The predicted class; without exactly one, the model's output in words; or the written text."""
    if isinstance(e, GenerationExplanation):
        return f"Why “{phrases.shorten(e.output, 50)}”"
    prediction = e.prediction if e.outputs == "classes" else phrases.verdict(e).line
    return f"{prediction}: {excerpt(e)}"
