"""Many explanations as one table of their texts, whose maps are folded: what a notebook shows where no kernel runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import Bar, Layout, layout
from raison.report.pages.texts import HEADS, ListedText, listed
from raison.report.style import phrases
from raison.report.style.markup import assets, rendered

MOST = 100
"""Texts of a table: each has its map, and all lie in the notebook's file."""
STRONGEST = 3
"""Units that are named beside a text."""
STYLES = ("explanation.css", "fragment.css", "listing.css", "texts.css")


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of the table: what is said of it, its own label (None if not known), and its map."""

    told: ListedText
    label: str | None
    wrong: bool
    shown: Layout

    @property
    def strongest(self) -> tuple[tuple[str, Bar], ...]:
        """The strongest units, by their names."""
        bars = self.shown.bars[:STRONGEST]
        return tuple((phrases.named(self.shown.e.units[bar.unit], 24), bar) for bar in bars)


def listing(explanations: Sequence[Explanation], labels: Sequence[str | None]) -> str:
    """The first hundred as a fragment for notebooks; a small script sorts and filters where scripts run."""
    entries = [
        Entry(listed(number, e), label, label is not None and label != e.prediction, layout(e))
        for number, (e, label) in enumerate(zip(explanations[:MOST], labels, strict=False))
    ]
    first = explanations[0]
    values = {
        "styles": assets(STYLES),
        "script": assets(["texts.js"]),
        "entries": entries,
        "count": len(explanations),
        "heads": HEADS[first.outputs],
        "labelled": any(label is not None for label in labels),
        "unit": first.unit,
    }
    return str(rendered("listing.html", values))
