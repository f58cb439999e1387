"""Explanations as files; the file's ending selects the format."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from raison.core.errors import InputError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import dump
from raison.jobs.disk import write_named
from raison.report.explanations.drawing import svg
from raison.report.explanations.html import page
from raison.report.figures.scores import png
from raison.report.pages.latex import latex
from raison.report.style.phrases import AnyExplanation

_KINDS: Mapping[str, Callable[[Explanation], str | bytes]] = {".svg": svg, ".tex": latex, ".png": png}


def save(e: AnyExplanation | Citations | Sequence[Explanation], path: str | Path) -> Path:
    """Save an explanation to a file: .html, .json, .svg, .tex or .png (which needs matplotlib).

    For an output, .svg, .tex and .png show the sum over its tokens. Citations and several explanations, such as those
    of target="each", become one .html or .json. Raises InputError for another ending.
    """
    file = Path(path)
    write_named(file, content_of(e, file.suffix.lower(), file.name))
    return file


def content_of(e: AnyExplanation | Citations | Sequence[Explanation], kind: str, name: str = "") -> str | bytes:
    """The content of such a file; errors call it `name`."""
    if not isinstance(e, AnyExplanation | Citations):
        return _several(list(e), kind)
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


def _several(explanations: list[Explanation], kind: str) -> str:
    if not explanations or not all(isinstance(e, Explanation) for e in explanations):
        raise InputError(
            "a list that is saved has at least one explanation of a prediction, and nothing else: save outputs, "
            "citations and the lists of target='each' one by one."
        )
    if kind == ".html":
        return page(explanations)
    if kind == ".json":
        return json_of(explanations) + "\n"
    raise InputError(
        f"cannot save {len(explanations)} explanations as '{kind}': give a name that ends in .html or .json."
    )


def json_of(explanations: Sequence[Explanation]) -> str:
    """Several explanations as a JSON array; `Explanation.from_dict` reads each of its items."""
    return dump([e.to_dict() for e in explanations], 1)
