"""The page of an audit: advice first, then a table of lights, the evidence as figures, and how it was judged."""

from collections.abc import Sequence
from urllib.parse import quote

from raison.core.results import Summary
from raison.report import phrases
from raison.report.audit_words import LIGHTS, OVERALL, QUESTIONS, RULES, SHORT, answer, title
from raison.report.html_tables import breakable, grid, minus, scores_table, settings_list
from raison.report.markup import document, escape
from raison.report.plots import pareto_plot
from raison.report.trust_plots import attack_plots, randomisation_plots, substitution_plots
from raison.runs.audit import COMPREHENSIVE, ORDER, SUFFICIENT, Audit, Evidence, Light, MethodAudit
from raison.runs.statistics import pareto

STYLES = ("explanation.css", "page.css", "study.css", "audit.css")


def page(audit: Audit, draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    parts = [
        f"<h1>{escape(title(audit))}</h1>",
        _advice(audit),
        _verdicts(audit),
        _figures(audit) if draw else "",
        _rules(),
        _left_out(audit),
        _faithfulness(audit),
        _provenance(audit),
    ]
    return document(title(audit), "\n".join(part for part in parts if part), STYLES)


def lamp(light: Light, words: str) -> str:
    """A light with its meaning in words."""
    return f'<span class="light {light}">{escape(words)}</span>'


def file_of(method: str) -> str:
    """The page of a method."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in method)
    return f"method-{'-'.join(part for part in kept.split('-') if part)}.html"


def interval(value: Summary | None) -> str:
    """A mean with its interval, as HTML."""
    if value is None or not value.count:
        return ""
    return minus(f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]")


def _advice(audit: Audit) -> str:
    texts = phrases.count(audit.header["texts"], "text")
    if audit.recommended is None:
        return (
            f'<article class="raison advice none">\n<p><strong>No method can be recommended.</strong></p>\n'
            f"<p>{escape(audit.reason)}</p>\n<p>{_counts(audit)}, tried on {texts}.</p></article>"
        )
    kind = "advice" if audit[audit.recommended].light == "green" else "advice careful"
    link = f'<a href="{quote(file_of(audit.recommended))}">{escape(audit.recommended)}</a>'
    return (
        f'<article class="raison {kind}">\n<p>Recommended: <strong>{link}</strong></p>\n'
        f"<p>{escape(audit.reason)}</p>\n<p>{_counts(audit)}, tried on {texts}.</p></article>"
    )


def _counts(audit: Audit) -> str:
    lights = [one.light for one in audit.methods]
    said = {"green": "pass", "amber": "are to be used with care", "red": "fail"}
    return ", ".join(f"{lights.count(light)} {words}" for light, words in said.items()) + (  # type: ignore[arg-type]
        f" of {phrases.count(len(lights), 'method')}"
    )


def _verdicts(audit: Audit) -> str:
    head = ["method", "verdict", *(escape(words) for words in SHORT.values()), "passes", "time"]
    rows = [
        [
            f'<a href="{quote(file_of(one.method))}">{breakable(one.method)}</a>',
            f'<td class="verdict">{lamp(one.light, LIGHTS[one.light])}</td>',
            *(_cell(found) for found in one.evidence),
            f"{one.passes:,.0f}",
            escape(phrases.seconds(one.seconds)),
        ]
        for one in audit.methods
    ]
    return (
        f'<article class="raison" id="verdicts">\n<h2>Which explanations can be trusted</h2>\n'
        f"{grid('Verdicts', head, rows)}\n"
        '<p class="caption">Small: what the light is set by, mean with its 95 % interval over texts. A method\'s name '
        "leads to its evidence. Passes are those that a text takes alone, a backward pass counting as two; time is "
        "what it took here, where methods share predictions.</p></article>"
    )


def _cell(found: Evidence) -> str:
    return f'<td class="verdict">{lamp(found.light, answer(found))}<small>{interval(found.value)}</small></td>'


def _figures(audit: Audit) -> str:
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
    body = "\n".join(part for part in parts if part)
    return f'<article class="raison" id="figures">\n<h2>The evidence</h2>\n{body}</article>'


_CURVES = (
    "Spearman's correlation between the explanation and that of the same model whose blocks were filled with random "
    "values, mean with its 95 % interval. From left to right more blocks are random. A curve that stays high belongs "
    "to a method that does not look at the model."
)
_ATTACKS = (
    "What the best attack did, mean with its 95 % interval. Noise: the best of random changes of the same size, for "
    "comparison."
)


def _plots(heading: str, figures: Sequence[str], caption: str) -> str:
    if not figures:
        return ""
    body = "\n".join(f"<figure>{svg}</figure>" for svg in figures)
    return f'<h3>{heading}</h3>\n<div class="plots">\n{body}</div>\n<p class="caption">{caption}</p>'


def _rules() -> str:
    items = "".join(
        f"<dt>{escape(QUESTIONS[question])}</dt><dd>{escape(rule)}</dd>\n" for question, rule in RULES.items()
    )
    return (
        f'<article class="raison" id="rules">\n<h2>How the lights are set</h2>\n<dl class="questions">\n{items}</dl>\n'
        f"<p>{escape(OVERALL)}</p></article>"
    )


def _left_out(audit: Audit) -> str:
    if not audit.left_out:
        return ""
    items = "".join(f"<li>{escape(what)}: {escape(why)}</li>\n" for what, why in audit.left_out)
    return f'<article class="raison" id="left-out">\n<h2>What was left out, and why</h2>\n<ul>\n{items}</ul></article>'


def _faithfulness(audit: Audit) -> str:
    return (
        '<article class="raison" id="scores">\n<h2>Scores</h2>\n<details><summary>All metrics</summary>\n'
        f"{scores_table(audit.table)}\n{settings_list(audit.table)}</details></article>"
    )


def _provenance(audit: Audit) -> str:
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
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>\n" for name, value in facts.items() if value)
    return f'<article class="raison" id="about">\n<h2>About this audit</h2>\n<dl>\n{items}</dl></article>'


def _asked(audit: Audit, part: str) -> str:
    asked = audit.trust.header[part]
    return "" if asked is None else phrases.count(asked["texts"], "text")


def of_method(audit: Audit, one: MethodAudit) -> str:
    """The questions with their answers, as a list."""
    items = "".join(
        f"<dt>{escape(QUESTIONS[found.question])}</dt>"
        f"<dd>{lamp(found.light, answer(found))}<br>{minus(found.says)}</dd>\n"
        for found in one.evidence
    )
    cost = f"{one.passes:,.0f} passes and {phrases.seconds(one.seconds)} a text"
    chosen = " It is the one that this audit recommends." if one.method == audit.recommended else ""
    return (
        f'<article class="raison">\n<p>{lamp(one.light, LIGHTS[one.light])}</p>\n<dl class="questions">\n{items}</dl>\n'
        f"<p>It costs {escape(cost)}.{chosen}</p></article>"
    )
