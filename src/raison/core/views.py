"""The views of explanations and results, by name: they lie in raison.report, far above, and load when asked for."""

from enum import StrEnum
from importlib import import_module


class View(StrEnum):
    """A file of raison.report and its function that takes a result and returns text."""

    EXPLANATION_PAGE = "html.page"
    EXPLANATION_FRAGMENT = "html.fragment"
    GENERATION_TEXT = "generation_terminal.generation_plain"
    GENERATION_PAGE = "generation_page.page"
    GENERATION_FRAGMENT = "generation_page.fragment"
    RESULTS_TEXT = "terminal.results_plain"
    RESULTS_PAGE = "html_tables.results_page"
    RESULTS_FRAGMENT = "html_tables.results_fragment"
    MARKDOWN = "tables.markdown"
    LATEX = "tables.latex"
    CSV = "tables.csv_text"


def rendered(result: object, view: View) -> str:
    """The result as the view shows it."""
    file, function = view.split(".")
    found: str = vars(import_module(f"raison.report.{file}"))[function](result)
    return found
