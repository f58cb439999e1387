"""The report of a study of trust: a page, and its tables as Markdown and LaTeX."""

from pathlib import Path

from raison.jobs.store import write_whole
from raison.report import plots
from raison.report.tables import comments, escape_markdown
from raison.studies.kinds.comparison.report import LATEX, MARKDOWN, PAGE
from raison.studies.kinds.trainings.report import claim_line, latex_table, markdown_table, plain_table
from raison.studies.kinds.trust.claims import trust_verdicts
from raison.studies.kinds.trust.page import LEFT_OUT, MODELS, page, sections, warnings
from raison.studies.kinds.trust.sections import left_out
from raison.trust.results import TrustRuns, read_trust


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report of what a folder holds so far, by default into its folder `report`; the page's path.

    Raises DataError where the folder holds no study of trust, or matplotlib is missing for plots.
    """
    study = read_trust(folder)
    if draw:
        plots.require()
    target = folder / "report" if out is None else out
    write_whole(target / MARKDOWN, _markdown(study))
    write_whole(target / LATEX, _latex(study))
    write_whole(target / PAGE, page(study, draw))
    return target / PAGE


def text_tables(study: TrustRuns) -> str:
    """The tables of areas and attacks, for a terminal."""
    shown = [grid for title, grids in sections(study) if title != MODELS for grid in grids]
    return "\n\n".join(plain_table(grid) for grid in shown) + "\n"


def _markdown(study: TrustRuns) -> str:
    parts = [f"# {escape_markdown(study.title)}"]
    about = study.file.get("about")
    parts += [escape_markdown(str(about))] if about else []
    parts += [f"**{escape_markdown(warning)}**" for warning in warnings(study)]
    verdicts = trust_verdicts(study)
    if verdicts:
        parts += ["## Claims", "\n".join(claim_line(verdict) for verdict in verdicts)]
    for title, grids in sections(study):
        parts.append(f"## {escape_markdown(title)}")
        for grid in grids:
            parts += [f"### {escape_markdown(grid.title)}", markdown_table(grid), escape_markdown(grid.caption)]
    reasons = [f"- {escape_markdown(f'{what}: {why}')}" for what, why in left_out(study)]
    parts += [f"## {LEFT_OUT}", "\n".join(reasons)] if reasons else []
    parts.append(escape_markdown(f"{study.title}, digest {study.header['digest']}."))
    return "\n\n".join(parts) + "\n"


def _latex(study: TrustRuns) -> str:
    lines = [study.title, *warnings(study), f"digest {study.header['digest']}", "The tables need the package booktabs."]
    return comments(lines) + "\n" + "\n".join(latex_table(grid) for _, grids in sections(study) for grid in grids)
