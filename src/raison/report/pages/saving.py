"""Explanations as files, of the kind that the file's name says."""

from collections.abc import Callable, Mapping
from pathlib import Path

from raison.core.errors import InputError
from raison.core.explanation import Explanation
from raison.core.generation import GenerationExplanation
from raison.jobs.store import write_whole
from raison.report.explanations.drawing import svg
from raison.report.figures.scores import png
from raison.report.pages.latex import latex

Explained = Explanation | GenerationExplanation

_KINDS: Mapping[str, Callable[[Explanation], str | bytes]] = {".svg": svg, ".tex": latex, ".png": png}


def save(e: Explained, path: str | Path) -> Path:
    """Write an explanation whole to a file: .html, .json, .svg, .tex or .png (which needs matplotlib).

    Of an output, .svg, .tex and .png show the sum over its tokens. Raises InputError for another ending.
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind == ".html":
        content: str | bytes = e.to_html()
    elif kind == ".json":
        content = e.to_json(indent=1) + "\n"
    elif kind in _KINDS:
        content = _KINDS[kind](e if isinstance(e, Explanation) else e.whole())
    else:
        known = ", ".join(sorted({".html", ".json", *_KINDS}))
        raise InputError(f"cannot save an explanation as '{file.name}': its name has to end in one of {known}.")
    write_whole(file, content)
    return file
