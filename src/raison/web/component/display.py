"""Shows results in the caller's environment: many explanations in a notebook as a table, others as the report does."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from raison.core.errors import InputError
from raison.core.inputs.missing import is_missing
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.data.class_labels import labels_as_classes
from raison.report.explanations.listed import Listable
from raison.report.pages import showing
from raison.report.pages.listing import listing
from raison.report.pages.showing import Showable

if TYPE_CHECKING:
    from pandas import DataFrame

BESIDE = 4
"""Maximum number of explanations that a notebook shows side by side; more become a table."""
LABEL = "label"
"""The column of a frame that holds the texts' own labels."""


@dataclass(frozen=True, slots=True)
class Many:
    """What is shown, and the labels that the caller gave."""

    shown: Sequence[Showable]
    labels: Sequence[object] | None


def show(result: "Showable | Iterable[Showable] | DataFrame", labels: Sequence[str | int] | None = None) -> None:
    """Show a result, or several: explanations side by side on one scale, others below each other.

    In a notebook, more than four explanations of one kind (predictions, outputs, citations) are shown as a table of
    their texts, which can be sorted and filtered and opens the map of each text. `labels` are the texts' own labels,
    which the table shows next to the predictions. A pandas frame with explanations in one of its columns is shown in
    the same way; its column `label` has the labels.

    Outside of a notebook everything is printed in the terminal. Raises InputError for anything that is not a result,
    for explanations of different quantities side by side, which have no common scale, and for labels that are not
    classes.
    """
    many = _framed(result) if _is_frame(result) else Many(showing.results(cast("Showable", result)), labels)
    explanations = [one for one in many.shown if isinstance(one, Explanation)]
    count = len(explanations)
    if many.labels is not None and len(many.labels) != count:
        raise InputError(f"there are {len(many.labels)} labels for {count} explanations: give one for each.")
    # Checked in a terminal, too, which does not show them.
    known = _as_classes(explanations, many.labels)
    table = _alike(many.shown)
    if showing.in_notebook() and table and (len(table) > BESIDE or many.labels is not None):
        _display(table, known if explanations else [None] * len(table))
    else:
        showing.show(many.shown)


def _alike(shown: Sequence[object]) -> list[Listable]:
    """Results of one kind, which can be rows of one table; none if there are several kinds."""
    for kind in (Explanation, GenerationExplanation, Citations):
        if all(isinstance(one, kind) for one in shown):
            return [one for one in shown if isinstance(one, kind)]
    return []


def _display(explanations: Sequence[Listable], labels: Sequence[str | None]) -> None:
    if find_spec("anywidget") is None:
        showing.display([listing(explanations, labels)])
        return
    from IPython.display import display

    from raison.web.component.listing import Listing

    display(Listing(explanations, labels))


def _as_classes(explanations: Sequence[Explanation], labels: Sequence[object] | None) -> list[str | None]:
    if labels is None:
        return [None] * len(explanations)
    classes = {e.classes for e in explanations if e.outputs == "classes"}
    names = ["" if is_missing(label) else _named(label) for label in labels]
    if len(classes) != 1:
        if any(names):
            raise InputError("labels are compared with predictions, and these are not all of one model's classes.")
        return [None] * len(explanations)
    return labels_as_classes(names, classes.pop())


def _named(label: object) -> str:
    # A column of whole numbers in which one is missing holds floats.
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _is_frame(result: object) -> bool:
    # Whoever has a frame has imported pandas.
    pandas = cast("Any", sys.modules.get("pandas"))
    return pandas is not None and isinstance(result, pandas.DataFrame)


def _framed(frame: Any) -> Many:
    """The explanations of a frame and its labels. Raises InputError unless one column holds explanations."""
    columns = {str(name): list(frame[name]) for name in frame.columns}
    named = [name for name, cells in columns.items() if cells and _alike(cells)]
    if len(named) != 1:
        what = f"explanations in {' and '.join(named)}" if named else "no column of explanations"
        raise InputError(f"the frame has {what}: show one column, raison.show(frame[name]).")
    results = _alike(columns[named[0]])
    return Many(results, columns.get(LABEL) if isinstance(results[0], Explanation) else None)
