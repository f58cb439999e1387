"""The report of a study or a comparison: a page, tables as Markdown and LaTeX, a page for every text."""

from collections.abc import Sequence
from pathlib import Path

from raison.core.errors import DataError
from raison.jobs.store import write_whole
from raison.report import plots
from raison.report.examples import Asked, asked_in, examples_of
from raison.report.shown import shown_texts
from raison.report.tables import comments, escape_markdown, latex, markdown
from raison.report.texts import write_texts
from raison.runs.agreement import read_agreement
from raison.runs.run import Run
from raison.runs.table import comparison
from raison.studies.kinds.comparison.examples_page import examples_markdown, examples_page
from raison.studies.kinds.comparison.page import page
from raison.studies.kinds.comparison.results import StudyRuns, read_study
from raison.studies.kinds.comparison.section import Section, note, warnings

PAGE = "index.html"
MARKDOWN = "tables.md"
LATEX = "tables.tex"
TEXTS = "texts"
EXAMPLES = "examples.html"
EXAMPLES_MARKDOWN = "examples.md"


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report of what a folder holds so far, by default into its folder `report`; the page's path.

    Reads records only; where explanations are beside them, every text gets its page, and so do the examples that the
    study asks for. `draw` plots, which needs matplotlib. Raises DataError where the folder holds neither a study nor
    a comparison, or matplotlib is missing.
    """
    study = read_study(folder)
    if draw:
        plots.require()
    target = folder / "report" if out is None else out
    asked = asked_in(study.file)
    sections = [_section(name, run, target, asked) for name, run in study.runs.items()]
    write_whole(target / MARKDOWN, _markdown(study, sections))
    write_whole(target / LATEX, _latex(study, sections))
    if asked is not None and any(section.examples for section in sections):
        write_whole(target / EXAMPLES, examples_page(study, sections, asked.top))
        write_whole(target / EXAMPLES_MARKDOWN, examples_markdown(study, sections, asked.top))
    write_whole(target / PAGE, page(study, sections, draw))
    return target / PAGE


def _section(name: str, run: Run, target: Path, asked: Asked | None) -> Section:
    try:
        table = comparison(run)
    except DataError:
        # Nothing that all methods have judged yet; the page says so.
        table = None
    title = f"{run.header['model']} on {run.header['data']}"
    texts = shown_texts(run)
    has_texts = write_texts(run, texts, title, target / TEXTS / name)
    pairs = read_agreement(run.folder) if run.folder else ()
    place = f"{TEXTS}/{name}/index.html" if has_texts else None
    return Section(name, title, run, table, pairs, place, examples_of(run, texts, asked) if asked else ())


def _markdown(study: StudyRuns, sections: Sequence[Section]) -> str:
    parts = [f"# {escape_markdown(study.title)}"]
    about = study.file.get("about")
    parts += [escape_markdown(str(about))] if about else []
    parts += [f"**{escape_markdown(warning)}**" for warning in warnings(study, sections)]
    for section in sections:
        parts.append(f"## {escape_markdown(section.title)}")
        shown = section.table
        parts.append("No text is finished yet.\n" if shown is None else markdown(shown, note(study, section)))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _latex(study: StudyRuns, sections: Sequence[Section]) -> str:
    lines = [study.title, *warnings(study, sections), "The tables need the package booktabs."]
    tables = [latex(section.table, note(study, section)) for section in sections if section.table is not None]
    return comments(lines) + "\n" + "\n".join(tables)
