"""The report on a folder of any kind: its page, Markdown, LaTeX, and further pages."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from raison.jobs.folder import refuse_links
from raison.report.pages import explained_files, writing
from raison.report.tables.records import Document
from raison.runs.files.folder import is_folder, read
from raison.studies.folder import WrittenStudy
from raison.studies.kind import kind_of

REPORT = "report"


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report on a folder's contents so far, by default into its folder `report`; returns the page's path.

    Reads only records; if explanations are stored with them, single texts get their pages. `draw` plots, which needs
    matplotlib. Raises DataError if the folder holds nothing of any kind, or matplotlib is missing.
    """
    if out is None:
        refuse_links(folder, REPORT)
    if is_folder(folder):
        document = partial(explained_files.sections, read(folder))
    else:
        document = partial(document_of, kind_of(folder).results.read(folder))
    return writing.write(document, folder / REPORT if out is None else out, draw)


def document_of(results: WrittenStudy, target: Path | None = None) -> Document:
    """The kind's report on the results, with its origin, preceded by the reasons why it covers only a part, if so.

    Pages of single texts are written into the folder `target`, if given.
    """
    document = kind_of(results.folder).sections.sections(results, target)
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items() if version)
    return replace(
        document,
        title=results.title,
        file=results.file,
        text=results.text,
        digest=results.digest,
        warnings=(*_partial(results), *document.warnings),
        facts={**document.facts, "Digest": results.digest, "Versions": versions},
    )


def _partial(results: WrittenStudy) -> Iterator[str]:
    limit = results.header.limit
    if limit is not None:
        yield f"This study was run with --limit {limit}: at most the first {limit:,} rows of each data set."
    yield from results.unfinished()
