"""The views of explanations and results, by name: they live in raison.report and are loaded on demand."""

from enum import StrEnum
from importlib import import_module
from typing import Any


class View(StrEnum):
    """A module of raison.report and its function that takes a result and returns text."""

    EXPLANATION_PAGE = "explanations.html.page"
    EXPLANATION_FRAGMENT = "explanations.html.fragment"
    EXPLANATION_TEXT = "explanations.terminal.explanation_plain"
    CITATIONS_PAGE = "explanations.citations_page.page"
    CITATIONS_FRAGMENT = "explanations.citations_page.fragment"
    CITATIONS_TEXT = "explanations.citations_terminal.citations_plain"
    RESULTS_TEXT = "tables.terminal.results_plain"
    RESULTS_PAGE = "tables.html.results_page"
    RESULTS_FRAGMENT = "tables.html.results_fragment"
    MARKDOWN = "tables.results.markdown"
    LATEX = "tables.results.latex"
    CSV = "tables.results.csv_text"


def called(place: str, *arguments: object) -> Any:
    """Calls a function of raison.report, named like a view, that shows, draws or writes."""
    module, function = place.rsplit(".", 1)
    return vars(import_module(f"raison.report.{module}"))[function](*arguments)


def rendered(result: object, view: View) -> str:
    """The result as the view shows it."""
    output: str = called(view, result)
    return output
