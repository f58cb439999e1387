"""Many results as one table of their texts with folded maps, for notebooks without a running kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.citations_page import STYLES as CITED
from raison.report.explanations.citations_page import CitationsArticle
from raison.report.explanations.citations_page import article as cited
from raison.report.explanations.layout import ExplanationLayout, layout
from raison.report.explanations.listed import Listable, ListEntry, Strong, common_unit, heads_of, listed, strongest_of
from raison.report.explanations.output_layout import OutputLayout, output_layout
from raison.report.style.markup import assets, rendered, scripts

MOST = 100
"""Maximum number of texts of a table: each has its map, and all are stored in the notebook's file."""
STYLES = ("explanation.css", "generation.css", "citations.css", "fragment.css", "listing.css", "texts.css")


@dataclass(frozen=True, slots=True)
class ListedText:
    """A text of the table: its description, its own label (None if unknown), and its folded content, one of three
    kinds."""

    told: ListEntry
    strongest: tuple[Strong, ...]
    label: str | None
    wrong: bool
    shown: ExplanationLayout | None = None
    output: OutputLayout | None = None
    cited: CitationsArticle | None = None


def listing(results: Sequence[Listable], labels: Sequence[str | None]) -> str:
    """The first hundred as a fragment for notebooks; a small script sorts and filters, if scripts run."""
    pairs = enumerate(zip(results[:MOST], labels, strict=False))
    written = any(not isinstance(one, Explanation) for one in results)
    values = {
        "styles": assets(STYLES if written else [name for name in STYLES if name not in CITED[1:]]),
        "script": scripts(["listing.js"]),
        "entries": [_entry(number, one, label) for number, (one, label) in pairs],
        "count": len(results),
        "heads": heads_of(results),
        "labelled": any(label is not None for label in labels),
        "unit": common_unit(results),
    }
    return str(rendered("listing.html", values))


def _entry(number: int, one: Listable, label: str | None) -> ListedText:
    entry, strongest = listed(number, one), strongest_of(one)
    if isinstance(one, Citations):
        return ListedText(entry, strongest, label, False, cited=cited(one))
    if isinstance(one, GenerationExplanation):
        return ListedText(entry, strongest, label, False, output=output_layout(one))
    return ListedText(entry, strongest, label, label is not None and label != one.prediction, layout(one))
