"""The page of a study of trust."""

from collections.abc import Mapping
from typing import Any

from raison.report import phrases, study_tables
from raison.report.html_tables import breakable, grid
from raison.report.markup import NOTHING, Markup, document, html, lines
from raison.report.parts import about, figures, study_file, warnings_box
from raison.report.trust_plots import attack_plots, randomisation_plots, substitution_plots
from raison.studies.kinds.trainings.page import STYLES, anchor, contents, section
from raison.studies.kinds.trainings.sections import Grid
from raison.studies.kinds.trust.claims import trust_verdicts
from raison.studies.kinds.trust.sections import area_grids, attack_grids, left_out, model_grid
from raison.trust.records import Order
from raison.trust.results import TrustRuns

RANDOMISATION, ATTACKS, LEFT_OUT, MODELS = "Randomised blocks", "Attacks", "Left out", "Models"
_CURVES: dict[Order, str] = {
    "cascading": (
        "Spearman's correlation of the explanation with that of the model as it was (full), while more and more blocks "
        "have random parameters, from the last one back until all have. Mean over texts; the band: its 95 % interval. "
        "A line that stays up belongs to a method that does not look at what the model has learned."
    ),
    "independent": (
        "The same where one block at a time is randomised and all others are as they were: from the last block on the "
        "left to the first on the right."
    ),
}
_ATTACKED = (
    "Mean over texts with its 95 % interval. Lines: solid for the unconstrained objective (only the prediction must "
    "hold), dashed for the constrained one (the probability, too); dotted: the best of random changes of the same "
    "size. Bars: the dotted mark is that control."
)


def sections(study: TrustRuns) -> list[tuple[str, list[Grid]]]:
    """The tables under their headings; a heading without tables is left out."""
    found = [(RANDOMISATION, area_grids(study)), (ATTACKS, attack_grids(study)), (MODELS, [model_grid(study)])]
    return [(title, grids) for title, grids in found if grids]


def page(study: TrustRuns, draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    shown = sections(study)
    drawn = {RANDOMISATION: _curves(study), ATTACKS: _attacked(study)} if draw else {}
    reasons = _left_out(study)
    parts = [
        html("<h1>{}</h1>", study.title),
        _about(study),
        warnings_box(warnings(study)),
        contents([*(title for title, _ in shown), *([LEFT_OUT] if reasons else [])]),
        study_tables.claims(trust_verdicts(study)),
        *(section(title, grids, drawn.get(title, NOTHING)) for title, grids in shown),
        reasons,
        study_file(study.text, study.header["digest"]),
    ]
    return document(study.title, lines(parts), STYLES)


def warnings(study: TrustRuns) -> list[str]:
    """Everything that makes these numbers other than those of the whole study, one sentence each."""
    found = []
    limit = study.header["limit"]
    if limit is not None:
        found.append(
            f"This study was run with --limit {limit}: at most {phrases.count(limit, 'text')} of each data set."
        )
    for run in study.runs.values():
        if run.missing:
            found.append(
                f"{run.name}: unfinished, {run.wanted - run.missing:,} of {run.wanted:,} records. Means are over what "
                "there is; --resume goes on."
            )
        if run.dropped:
            found.append(f"{run.name}: {run.dropped} broken lines were left out; --resume does their work again.")
    return found


def _about(study: TrustRuns) -> Markup:
    header = study.header
    facts = {
        "Texts": "; ".join(dict.fromkeys(_texts(run.header) for run in study.runs.values())),
        "Digest": header["digest"],
        "Versions": ", ".join(f"{name} {version}" for name, version in header["versions"].items()),
    }
    return about(study.file, facts)


def _texts(run: Mapping[str, Any]) -> str:
    parts = (("randomisation", "randomised blocks"), ("attacks", "attacks"))
    counts = [f"{run[part]['texts']} for {words}" for part, words in parts if run[part]]
    return f"{run['source']}: {', '.join(counts)}"


def _curves(study: TrustRuns) -> Markup:
    parts = []
    for order, caption in _CURVES.items():
        panels = figures(randomisation_plots(study, order))
        if panels:
            parts.append(html('{}\n<p class="caption">{}</p>', panels, caption))
    return lines(parts)


def _attacked(study: TrustRuns) -> Markup:
    parts = []
    for data, drawn in (*attack_plots(study), *substitution_plots(study)):
        head = html("<h3>{}</h3>\n", data) if len(study.data) > 1 else NOTHING
        parts.append(html("{}{}", head, figures(drawn)))
    return lines([*parts, html('<p class="caption">{}</p>', _ATTACKED)]) if parts else NOTHING


def _left_out(study: TrustRuns) -> Markup:
    rows = [[breakable(what), html('<td class="says">{}</td>', why)] for what, why in left_out(study)]
    if not rows:
        return NOTHING
    table = grid(LEFT_OUT, ["what", "why"], rows)
    return html('<article class="raison" id="{}">\n<h2>{}</h2>\n{}</article>', anchor(LEFT_OUT), LEFT_OUT, table)
