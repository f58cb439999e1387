"""Explanations as files; the file's ending selects the format."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.results.scores import Comparison, Scores
from raison.core.settings.reading import dump
from raison.jobs.disk import write_named
from raison.report.explanations.citations_page import page as citations_page
from raison.report.explanations.drawing import svg
from raison.report.explanations.html import page
from raison.report.figures.scores import png
from raison.report.pages.latex import latex
from raison.report.style.phrases import AnyExplanation

Saved = (
    AnyExplanation
    | Citations
    | Comparison
    | Sequence[Explanation]
    | Sequence[GenerationExplanation]
    | Sequence[Citations]
)

_TABLES: Mapping[str, Callable[[Comparison], str]] = {
    ".html": Comparison.to_html,
    ".json": lambda table: table.to_json(indent=1) + "\n",
    ".csv": Comparison.to_csv,
    ".md": Comparison.to_markdown,
    ".tex": Comparison.to_latex,
}
_KINDS: Mapping[str, Callable[[Explanation], str | bytes]] = {".svg": svg, ".tex": latex, ".png": png}


def save(e: Saved, path: str | Path) -> Path:
    """Save an explanation to a file: .html, .json, .svg, .tex or .png (which needs matplotlib).

    For an output, .svg, .tex and .png show the sum over its tokens. Citations, and several results of one kind (such as
    the explanations of target="each"), become one .html or .json. A comparison is saved as .html, .json, .csv, .md or
    .tex. Raises InputError for another ending.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"the file is {path!r:.60}: what is saved comes first, then the file's name.")
    file = Path(path)
    write_named(file, content_of(e, file.suffix.lower(), file.name))
    return file


def content_of(e: Saved, kind: str, name: str = "") -> str | bytes:
    """The content of such a file; errors call it `name`."""
    if isinstance(e, Scores):
        raise InputError("scores of one method have no page: write e.to_json() or e.to_frame().to_csv() to a file.")
    if isinstance(e, Comparison):
        if kind in _TABLES:
            return _TABLES[kind](e)
        known = ", ".join(_TABLES)
        raise InputError(f"cannot save a comparison as '{name or kind}': give a name that ends in one of {known}.")
    if not isinstance(e, AnyExplanation | Citations):
        return _several(list(e) if isinstance(e, Iterable) else [], kind)
    if kind == ".html":
        return e.to_html()
    if kind == ".json":
        return e.to_json(indent=1) + "\n"
    if isinstance(e, Citations):
        raise InputError(f"cannot save citations as '{name or kind}': give a name that ends in .html or .json.")
    if kind in _KINDS:
        return _KINDS[kind](e if isinstance(e, Explanation) else e.whole())
    known = ", ".join(sorted({".html", ".json", *_KINDS}))
    raise InputError(f"cannot save an explanation as '{name or kind}': give a name that ends in one of {known}.")


def _several(results: list[Any], kind: str) -> str:
    kinds = (Explanation, GenerationExplanation, Citations)
    of = next((of for of in kinds if results and all(isinstance(one, of) for one in results)), None)
    if of is None:
        raise InputError(
            "what is saved is an explanation, citations or a comparison, or a list that has at least one and only one "
            "kind of these: explanations of predictions, explanations of outputs, citations. Save comparisons, and the "
            "lists of target='each', one by one."
        )
    if kind == ".html":
        return citations_page(results) if of is Citations else page(results)
    if kind == ".json":
        return json_of(results) + "\n"
    raise InputError(f"cannot save {len(results)} results as '{kind}': give a name that ends in .html or .json.")


def json_of(results: Sequence[AnyExplanation] | Sequence[Citations]) -> str:
    """Several results as a JSON array, which `list_from_json` of their class reads."""
    return dump([one.to_dict() for one in results], 1)
