"""raison audit."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options
from raison.cli.readable_texts import TextSource, judged_rows
from raison.core.settings.fields import Setting
from raison.core.settings.reading import dump
from raison.explaining.settings import Settings
from raison.jobs.engine import Sharing
from raison.progress import progress_bar

if TYPE_CHECKING:
    from raison.studies.kinds.audit.results import Audit


@dataclass(frozen=True, slots=True)
class Auditing:
    """The options of a command that audits, besides the settings; see raison.audit."""

    texts: options.TextOptions
    methods: Annotated[
        tuple[str, ...], Setting("Comma-separated names or calls; by default all usual methods that the model allows.")
    ] = ()
    out: Annotated[Path | None, Setting("Folder for records and report; run again to resume.")] = None
    estimate: Annotated[bool, Setting("Only estimate the cost.")] = False

    def folder(self, model: str, data: str) -> Path:
        """The folder for the records and the report."""
        return Path("runs") / f"audit-{_plain_name(model)}-{_plain_name(data)}" if self.out is None else self.out


@options.from_records
def audit(
    source: Annotated[TextSource, options.But(defaults={"limit": 50})],
    entry: Annotated[options.Model, options.But(without=("explained", "calibrate"))],
    settings: Annotated[Settings, options.But(without=("target", "of", "precision"))],
    sharing: Sharing,
    auditing: Auditing,
    plots: options.Plots = True,
    json: options.Json = False,
) -> None:
    """Test which methods can be trusted on this model, and write a report with a recommendation.

    For a generative model, the data are questions with their sources (docs/cite.md).
    """
    from raison.methods import CATALOGUE
    from raison.studies.kinds.audit.work import audit as run
    from raison.studies.kinds.audit.work import estimate_audit
    from raison.studies.plans import load_entry
    from raison.studies.reports import write

    chosen = options.named(auditing.methods, CATALOGUE) or None
    model = load_entry(entry)
    data = judged_rows(model, source, settings)
    settings = replace(settings, target=data.target)
    if auditing.estimate:
        texts = auditing.texts
        with progress_bar("estimate", 1, True):
            cost = estimate_audit(
                model, data.texts, chosen, units=texts.units, language=texts.language, settings=settings
            )
        typer.echo(dump(cost.to_dict()) if json else cost.text())
        return
    folder = auditing.folder(model.name, data.name)
    audited = run(
        model,
        data.texts,
        chosen,
        out=folder,
        units=auditing.texts.units,
        language=auditing.texts.language,
        settings=settings,
        data=data.name,
        sharing=sharing,
        load=partial(load_entry, entry),
    )
    _show(audited, write(folder, None, options.plots_where_possible(plots)), json)


def _show(audited: "Audit", page: Path, json: bool) -> None:
    from raison.report.pages.writing import show
    from raison.studies.reports import document_of

    if json:
        typer.echo(dump(audited.to_dict() | {"page": str(page)}))
        return
    show(document_of(audited))
    typer.echo(page)


def _plain_name(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in name)
    return kept.strip("-.")
