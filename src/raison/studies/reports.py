"""The report on a folder of any kind: its page, Markdown, LaTeX, and pages beside it."""

from functools import partial
from pathlib import Path

from raison.report.pages import explained_files, writing
from raison.runs.files.folder import is_folder, read
from raison.studies.kind import kind_of


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report on a folder's contents so far, by default into its folder `report`; the page's path.

    Reads records only; where explanations are beside them, single texts get their pages. `draw` plots, which needs
    matplotlib. Raises DataError where the folder holds nothing of any kind, or matplotlib is missing.
    """
    if is_folder(folder):
        document = partial(explained_files.sections, read(folder))
    else:
        kind = kind_of(folder)
        document = partial(kind.sections.sections, kind.results.read(folder))
    return writing.write(document, folder / "report" if out is None else out, draw)
