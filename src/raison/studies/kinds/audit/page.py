"""The page of an audit: advice first, then a table of lights, the evidence as figures, and how it was judged."""

from collections.abc import Sequence
from urllib.parse import quote

from raison.core.results import Summary
from raison.report import phrases
from raison.report.html_tables import breakable, grid, minus, scores_table, settings_list
from raison.report.markup import NOTHING, Markup, document, html, joined, lines
from raison.report.parts import definitions, figures, warnings_box
from raison.report.plots import pareto_plot
from raison.report.tables import warnings
from raison.report.trust_plots import attack_plots, randomisation_plots, substitution_plots
from raison.runs.statistics import pareto
from raison.studies.kinds.audit.results import COMPREHENSIVE, ORDER, SUFFICIENT, Audit, Evidence, Light, MethodAudit
from raison.studies.kinds.audit.words import LIGHTS, OVERALL, QUESTIONS, RULES, SHORT, answer, title

STYLES = ("explanation.css", "page.css", "study.css", "audit.css")


def page(audit: Audit, draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    parts = [
        html("<h1>{}</h1>", title(audit)),
        _advice(audit),
        warnings_box(warnings(audit.table)),
        _verdicts(audit),
        _figures(audit) if draw else NOTHING,
        _rules(),
        _left_out(audit),
        _faithfulness(audit),
        _provenance(audit),
    ]
    return document(title(audit), lines(parts), STYLES)


def lamp(light: Light, words: str) -> Markup:
    """A light with its meaning in words."""
    return html('<span class="light {}">{}</span>', light, words)


def file_of(method: str) -> str:
    """The page of a method."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in method)
    return f"method-{'-'.join(part for part in kept.split('-') if part)}.html"


def interval(value: Summary | None) -> str:
    """A mean with its interval."""
    if value is None or not value.count:
        return ""
    return minus(f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]")


def _advice(audit: Audit) -> Markup:
    if audit.recommended is None:
        kind, said = "advice none", html("<strong>No method can be recommended.</strong>")
    else:
        kind = "advice" if audit[audit.recommended].light == "green" else "advice careful"
        link = html('<a href="{}">{}</a>', quote(file_of(audit.recommended)), audit.recommended)
        said = html("Recommended: <strong>{}</strong>", link)
    return html(
        '<article class="raison {}">\n<p>{}</p>\n<p>{}</p>\n<p>{}, tried on {}.</p></article>',
        kind,
        said,
        audit.reason,
        _counts(audit),
        phrases.count(audit.header["texts"], "text"),
    )


def _counts(audit: Audit) -> str:
    lights = [one.light for one in audit.methods]
    said = {"green": "pass", "amber": "are to be used with care", "red": "fail"}
    return ", ".join(f"{lights.count(light)} {words}" for light, words in said.items()) + (  # type: ignore[arg-type]
        f" of {phrases.count(len(lights), 'method')}"
    )


def _verdicts(audit: Audit) -> Markup:
    head = ["method", "verdict", *SHORT.values(), "passes", "time"]
    rows = [
        [
            html('<a href="{}">{}</a>', quote(file_of(one.method)), breakable(one.method)),
            html('<td class="verdict">{}</td>', lamp(one.light, LIGHTS[one.light])),
            *(_cell(found) for found in one.evidence),
            f"{one.passes:,.0f}",
            phrases.seconds(one.seconds),
        ]
        for one in audit.methods
    ]
    return html(
        '<article class="raison" id="verdicts">\n<h2>Which explanations can be trusted</h2>\n{}\n'
        '<p class="caption">Small: what the light is set by, mean with its 95 % interval over texts. A method\'s name '
        "leads to its evidence. Passes are those that a text takes alone, a backward pass counting as two; time is "
        "what it took here, where methods share predictions.</p></article>",
        grid("Verdicts", head, rows),
    )


def _cell(found: Evidence) -> Markup:
    light = lamp(found.light, answer(found))
    return html('<td class="verdict">{}<small>{}</small></td>', light, interval(found.value))


def _figures(audit: Audit) -> Markup:
    curves = list(randomisation_plots(audit.runs, ORDER))
    attacks = [
        figure for make in (attack_plots, substitution_plots) for _, drawn in make(audit.runs) for figure in drawn
    ]
    fronts = [
        pareto_plot(f"front{number}", metric, higher, pareto(audit.table, metric))
        for number, (metric, higher) in enumerate(((COMPREHENSIVE, True), (SUFFICIENT, False)))
    ]
    parts = [
        _plots("Faithfulness against cost", fronts, "Mean with its 95 % interval against passes per text."),
        _plots("Randomised blocks", curves, _CURVES),
        _plots("Attacks", attacks, _ATTACKS),
    ]
    return html('<article class="raison" id="figures">\n<h2>The evidence</h2>\n{}</article>', lines(parts))


_CURVES = html(
    "Spearman's correlation between the explanation and that of the same model whose blocks were filled with random "
    "values, mean with its 95 % interval. From left to right more blocks are random. A curve that stays high belongs "
    "to a method that does not look at the model."
)
_ATTACKS = html(
    "What the best attack did, mean with its 95 % interval. Noise: the best of random changes of the same size, for "
    "comparison."
)


def _plots(heading: str, drawn: Sequence[Markup], caption: str) -> Markup:
    if not drawn:
        return NOTHING
    return html('<h3>{}</h3>\n{}\n<p class="caption">{}</p>', heading, figures(drawn), caption)


def _rules() -> Markup:
    return html(
        '<article class="raison" id="rules">\n<h2>How the lights are set</h2>\n<dl class="questions">\n{}</dl>\n'
        "<p>{}</p></article>",
        joined(html("<dt>{}</dt><dd>{}</dd>\n", QUESTIONS[question], rule) for question, rule in RULES.items()),
        OVERALL,
    )


def _left_out(audit: Audit) -> Markup:
    if not audit.left_out:
        return NOTHING
    items = joined(html("<li>{}: {}</li>\n", what, why) for what, why in audit.left_out)
    return html(
        '<article class="raison" id="left-out">\n<h2>What was left out, and why</h2>\n<ul>\n{}</ul></article>', items
    )


def _faithfulness(audit: Audit) -> Markup:
    return html(
        '<article class="raison" id="scores">\n<h2>Scores</h2>\n<details><summary>All metrics</summary>\n'
        "{}\n{}</details></article>",
        scores_table(audit.table),
        settings_list(audit.table),
    )


def _provenance(audit: Audit) -> Markup:
    header = audit.header
    facts = {
        "Model": f"{header['model']} ({header['parameters']:,} parameters, {header['blocks']} blocks)",
        "Data": f"{header['data']}, {phrases.count(header['texts'], 'text')}",
        "Explained": f"{header['of']} of the predicted class, {header['unit']} by {header['unit']}",
        "Randomised": _asked(audit, "randomisation"),
        "Attacked": _asked(audit, "attacks"),
        "Time": phrases.seconds(sum(header.get("spent", {}).values())),
        "Estimated before": phrases.seconds(header["estimate"]["seconds"]) if header.get("estimate") else "",
        "Versions": ", ".join(f"{name} {version}" for name, version in header["versions"].items()),
    }
    return html(
        '<article class="raison" id="about">\n<h2>About this audit</h2>\n<dl>\n{}</dl></article>', definitions(facts)
    )


def _asked(audit: Audit, part: str) -> str:
    asked = audit.trust.header[part]
    return "" if asked is None else phrases.count(asked["texts"], "text")


def of_method(audit: Audit, one: MethodAudit) -> Markup:
    """The questions with their answers, as a list."""
    items = joined(
        html(
            "<dt>{}</dt><dd>{}<br>{}</dd>\n",
            QUESTIONS[found.question],
            lamp(found.light, answer(found)),
            minus(found.says),
        )
        for found in one.evidence
    )
    return html(
        '<article class="raison">\n<p>{}</p>\n<dl class="questions">\n{}</dl>\n<p>It costs {}.{}</p></article>',
        lamp(one.light, LIGHTS[one.light]),
        items,
        f"{one.passes:,.0f} passes and {phrases.seconds(one.seconds)} a text",
        " It is the one that this audit recommends." if one.method == audit.recommended else "",
    )
