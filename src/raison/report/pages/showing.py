"""Shows results in the caller's environment: in a notebook as HTML, otherwise in the terminal."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from raison.core.errors import InputError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.scores import Comparison, Scores
from raison.report.explanations.citations_page import fragment as citations_fragment
from raison.report.explanations.citations_terminal import citations_text
from raison.report.explanations.html import beside, fragment
from raison.report.explanations.several import are_targets
from raison.report.explanations.terminal import beside_text, explanation_text, targets_text
from raison.report.style import phrases
from raison.report.style.phrases import AnyExplanation
from raison.report.tables.html import results_fragment
from raison.report.tables.terminal import table

Showable = AnyExplanation | Citations | Comparison | Scores


def show(result: Showable | Iterable[Showable]) -> None:
    """Show a result, or several: explanations side by side, on one scale if they have one, others below each other.

    Targets of one text, as target="each" gives them, are a matrix in the terminal. In a notebook as HTML, elsewhere in
    the terminal. Raises InputError for anything that is not a result, and for explanations of different quantities,
    which have no common scale.
    """
    shown = results(result)
    explanations = [one for one in shown if isinstance(one, Explanation)]
    together = len(explanations) > 1 and len(explanations) == len(shown)
    if together:
        _check_scale(explanations)
    if in_notebook():
        display([beside(explanations)] if together else [_html(one) for one in shown])
        return
    together_text = targets_text if are_targets(explanations) else beside_text
    parts = [together_text(explanations)] if together else [_text(one) for one in shown]
    spaced = [line for part in parts for line in (part, Text(""))][:-1]
    console = Console(highlight=False)
    try:
        console.print(Group(*spaced))
    except UnicodeEncodeError:
        # A terminal that is not of UTF-8 shows what it can. The first console still holds what it could not write.
        again = Console(highlight=False)
        with again.capture() as captured:
            again.print(Group(*spaced))
        again.file.write(captured.get().encode(again.encoding, "replace").decode(again.encoding))


def results(result: Showable | Iterable[Showable]) -> list[Showable]:
    """The results to show. Raises InputError for anything else, and for an empty list."""
    if isinstance(result, Showable):
        return [result]
    shown = list(result) if isinstance(result, Iterable) and not isinstance(result, str) else [result]
    for place, one in enumerate(shown):
        if not isinstance(one, Showable):
            raise InputError(f"results[{place}] is {one!r:.60}: give explanations, comparisons or scores.")
    if not shown:
        raise InputError("nothing to show: give at least one explanation.")
    return shown


def in_notebook() -> bool:
    """Whether IPython runs here with a kernel, whose front end shows HTML."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def display(fragments: list[str]) -> None:
    """HTML in the notebook, one output each."""
    from IPython import display as output

    for fragment_ in fragments:
        output.display(output.HTML(fragment_))


def _check_scale(explanations: list[Explanation]) -> None:
    kinds = {e.of: phrases.quantity(e.of) for e in explanations}
    if len(kinds) > 1:
        raise InputError(
            f"explanations of {' and '.join(kinds.values())} have no common scale: explain the same quantity (of=), or "
            "show each alone."
        )


def _html(result: Showable) -> str:
    if isinstance(result, Citations):
        return citations_fragment(result)
    return fragment(result) if isinstance(result, AnyExplanation) else results_fragment(result)


def _text(result: Showable) -> RenderableType:
    if isinstance(result, Citations):
        return citations_text(result)
    return explanation_text(result) if isinstance(result, AnyExplanation) else table(result)
