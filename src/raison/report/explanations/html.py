"""Explanations as HTML: a standalone page, and a fragment for notebooks."""

import json
import math
from collections.abc import Mapping, Sequence

from raison.core.explanation import Explanation
from raison.core.notes import AUTO, EXTENDED
from raison.core.unknown import NOTE
from raison.report.explanations.layout import (
    AnswerPart,
    Piece,
    largest,
    parts,
    piece_score,
    pieces,
    strongest,
    text_labels,
)
from raison.report.explanations.several import are_targets, matrix
from raison.report.style import phrases
from raison.report.style.colours import level, scale_of
from raison.report.style.markup import NOTHING, Markup, asset, document, html, joined, lines

TOP = 8


def page(explanations: Explanation | Sequence[Explanation]) -> str:
    """A standalone page of one or more explanations, without any link to the network.

    Several targets of one text have a matrix, and a tab each.
    """
    shown = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    tabs = are_targets(shown)
    one = len(shown) == 1 or tabs
    title = f"{_title(shown[0])}: {excerpt(shown[0])}" if one else f"{len(shown)} explanations"
    body = html(
        '<h1>{}</h1>\n{}{}\n<footer>{}</footer>\n<div id="tip" role="tooltip" hidden></div>',
        "Explanation" if one else title,
        lines([_tabs(shown), matrix(shown)]) if tabs else _contents(shown),
        lines(_article(e, f"explanation-{number}") for number, e in enumerate(shown, 1)),
        " ".join(["raison", *sorted({e.version for e in shown if e.version})]),
    )
    if tabs:
        styles = ("explanation.css", "generation.css", "page.css")
        return document(title, body, styles, asset("page.js") + asset("tabs.js"))
    return document(title, body, ("explanation.css", "page.css"), asset("page.js"))


def fragment(e: Explanation) -> str:
    """One explanation for a notebook: scoped styles, no script, light or dark like the notebook."""
    return str(html("<style>\n{}{}</style>\n{}", asset("explanation.css"), asset("fragment.css"), _article(e, "")))


def compact(e: Explanation, heading: str, anchor: str, scores: Markup = NOTHING) -> Markup:
    """One of several explanations of the same text: what they share is said once elsewhere, details are folded."""
    scale = largest(e)
    parts = [
        html("<h2>{}</h2>", heading),
        html('<p class="goal">{}</p>', scores) if scores else NOTHING,
        _texts(e, scale),
        _legend(e, scale),
        *_cautions(e),
        html("<details><summary>Strongest {}s</summary>\n{}</details>", e.unit, _ranking(e, scale)),
        _provenance(e),
    ]
    return html('<article class="raison" id="{}">\n{}\n</article>', anchor, lines(parts))


def beside(explanations: Sequence[Explanation]) -> str:
    """Explanations side by side for a notebook, their colours and bars on one scale."""
    scale = max(map(largest, explanations))
    articles = lines(_article(e, "", scale) for e in explanations)
    style = html("<style>\n{}{}</style>", asset("explanation.css"), asset("fragment.css"))
    return str(html('{}\n<div class="raison-beside">\n{}\n</div>', style, articles))


def headline(e: Explanation) -> Markup:
    """What was predicted and what is explained, as two paragraphs."""
    return html('{}\n<p class="goal">Explained: {}</p>', _verdict(e), _goal(e))


def _goal(e: Explanation) -> str:
    return f"{phrases.goal(e)}, {e.unit} by {e.unit}"


def _verdict(e: Explanation) -> Markup:
    told = phrases.verdict(e)
    return html('<p class="verdict">{} <b>{}</b> {}</p>', told.lead, told.said, told.rest)


def _cautions(e: Explanation) -> list[Markup]:
    return [html('<p class="warning">Warning: {}.</p>', caution) for caution in phrases.cautions(e)]


def _title(e: Explanation) -> str:
    """The predicted class; if there is none or several, the model's output in words."""
    return e.prediction if e.outputs == "classes" else phrases.verdict(e).line


def excerpt(e: Explanation, width: int = 60) -> str:
    """The first words of the text, or of both texts of a pair."""
    return phrases.shorten(e.text if isinstance(e.text, str) else " / ".join(e.text), width)


def _tabs(shown: list[Explanation]) -> Markup:
    """A link for each target."""
    links = joined(
        html('<a class="out" href="#explanation-{}"><bdi translate="no">{}</bdi></a>', number, phrases.named_target(e))
        for number, e in enumerate(shown, 1)
    )
    return html('<nav class="raison tabs" aria-label="Targets"><div class="output">{}</div></nav>', links)


def _contents(shown: list[Explanation]) -> Markup:
    if len(shown) < 2:
        return NOTHING
    items = joined(
        html(
            '<li><a href="#explanation-{}"><bdi>{}</bdi></a> {}, {}</li>\n',
            number,
            excerpt(e),
            phrases.verdict(e).line,
            e.method,
        )
        for number, e in enumerate(shown, 1)
    )
    return html('<nav aria-label="Explanations"><ol>\n{}</ol></nav>\n', items)


def _article(e: Explanation, anchor: str, shared: float | None = None) -> Markup:
    """One explanation; `shared` is the end of the scale that it has in common with others."""
    scale = largest(e) if shared is None else shared
    parts = [
        _verdict(e),
        html('<p class="goal">Explained: {}, with {}</p>', _goal(e), phrases.made_by(e)),
        _texts(e, scale),
        _legend(e, scale),
        *_cautions(e),
        _ranking(e, scale),
        _provenance(e),
    ]
    identity = html(' id="{}"', anchor) if anchor else NOTHING
    return html('<article class="raison"{}>\n{}\n</article>', identity, lines(parts))


def _texts(e: Explanation, scale: float) -> Markup:
    ranks = {unit: rank for rank, unit in enumerate(strongest(e, len(e.scores)), 1)}
    blocks = []
    for number, (label, text) in enumerate(zip(text_labels(e), pieces(e), strict=True)):
        shown = zip(text, parts(e, number, [piece.text for piece in text]), strict=True)
        spans = joined(_span(e, piece, _boxed(parts_of_piece), scale, ranks) for piece, parts_of_piece in shown)
        heading = html('<p class="label">{}</p>\n', label) if label else NOTHING
        blocks.append(html('{}<div class="text {}" dir="auto" lang="" translate="no">{}</div>', heading, e.unit, spans))
    return lines(blocks)


def _boxed(parts_of_piece: Sequence[AnswerPart]) -> Markup:
    """A piece with a box around what of the answer is in it."""
    return joined(box(part, part.text) for part in parts_of_piece)


def box(part: AnswerPart, content: str) -> str:
    """Content in a box if it is inside the answer, open towards the rest of the answer."""
    if not part.inside:
        return content
    return html('<span class="answer{}{}">{}</span>', " opens" * part.opens, " closes" * part.closes, content)


def _span(e: Explanation, piece: Piece, content: Markup, scale: float, ranks: dict[int, int]) -> Markup:
    if not piece.units:
        return content
    score = piece_score(e, piece)
    value = _score(e, score, phrases.decimals(scale))
    rank = min(ranks[unit] for unit in piece.units)
    shared = f" ({phrases.count(len(piece.units), e.unit)} together)" if len(piece.units) > 1 else ""
    unread = not phrases.unknown_units(e).isdisjoint(piece.units)
    names = "".join(f"{e.units[unit].name}: " for unit in piece.units if e.units[unit].name)
    tip = f"{names}{value}{shared}, rank {rank} of {len(e.scores)}{', unknown to the model' * unread}"
    known = math.isfinite(score)
    return html(
        '<span class="unit{}{}"{} data-units="{}" tabindex="0" role="group" title="{}" aria-label="{}: {}">{}</span>',
        "" if known else " none",
        " unread" * unread,
        html(' style="{}"', scale_of(e.signed).css(level(score, scale))) if known else NOTHING,
        " ".join(map(str, piece.units)),
        tip,
        piece.text.strip(),
        tip,
        content,
    )


def _legend(e: Explanation, scale: float) -> Markup:
    against, towards = phrases.ends(e)
    places = phrases.decimals(scale)
    low, high = (_score(e, end, places) for end in (-scale if e.signed else 0.0, scale))
    return html(
        '<div class="legend"><span class="soft">{}</span><span>{}</span><span class="strip" style="background:{}">'
        '</span><span>{}</span><span class="soft">{}</span></div>{}{}',
        against,
        low,
        scale_of(e.signed).gradient(),
        high,
        towards,
        _box_legend(e),
        _unread_legend(e),
    )


def _unread_legend(e: Explanation) -> Markup:
    told = phrases.unread(e)
    if told is None:
        return NOTHING
    return html('\n<p class="goal boxed"><span class="unread">underlined</span> unknown to the model: {}</p>', told)


def _box_legend(e: Explanation) -> Markup:
    told = phrases.certainty(e)
    if told is None:
        return NOTHING
    return html(
        '\n<p class="goal boxed"><span class="answer opens closes">boxed</span> the answer that is explained, '
        '<bdi translate="no">{}</bdi></p>',
        told,
    )


def _ranking(e: Explanation, scale: float) -> Markup:
    shown = strongest(e, TOP)
    rest = set(range(len(e.scores))) - set(shown)
    note = NOTHING
    if rest:
        total = _score(e, sum(e.scores[unit] for unit in sorted(rest)), phrases.decimals(scale))
        weaker = phrases.count(len(rest), f"weaker {e.unit}")
        note = html('\n<p class="rest">{} add up to {}</p>', weaker, total)
    return html(
        '<table class="top"><caption>Strongest {}s</caption><tbody>\n{}</tbody></table>{}',
        e.unit,
        joined(_bar_row(e, unit, scale) for unit in shown),
        note,
    )


def _bar_row(e: Explanation, unit: int, scale: float) -> Markup:
    score = e.scores[unit]
    value = level(score, scale) if math.isfinite(score) else 0.0
    side, kind, room = ("for" if value > 0 else "against", "axis", 50) if e.signed else ("amount", "axis amount", 100)
    colours = scale_of(e.signed).css(0.75 if value > 0 else -0.75)
    bar = html('<span class="bar {}" style="width:{:.1f}%;{}"></span>', side, room * abs(value), colours)
    return html(
        '<tr data-unit="{}"><td>{}</td><td><span class="{}">{}</span></td>'
        '<th scope="row"><bdi translate="no">{}</bdi></th></tr>\n',
        unit,
        _score(e, score, phrases.decimals(scale)),
        kind,
        bar if value else NOTHING,
        phrases.named(e.units[unit], 90),
    )


_TOLD = (AUTO, "completeness_gap", "caution", "unsteady", "selected_by", "candidates", NOTE, EXTENDED)
"""Notes that the page phrases itself."""


def _provenance(e: Explanation) -> Markup:
    config = ", ".join(f"{name}={_plain(value)}" for name, value in e.config.items())
    facts = {
        "Value": phrases.value_change(e),
        "Gap": phrases.gap(e),
        "Chosen": phrases.choice(e),
        "Probabilities": phrases.shares(e) or None,
        "Method": f"{e.method}: {config}" if config else e.method,
        "Model": e.model,
        "Removal": e.removal,
        "Unknown": phrases.unread(e),
        "Extended": phrases.extended(e),
        "Seed": e.seed,
        "Cost": phrases.effort(e),
        **{f"Note: {name}": _plain(value) for name, value in e.notes.items() if name not in _TOLD},
        "Version": f"raison {e.version}" if e.version else None,
    }
    return folded_facts(facts)


def folded_facts(facts: Mapping[str, object]) -> Markup:
    """How something was computed, folded: names with their values, without those that are None."""
    return html(
        "<details><summary>How this was computed</summary>\n<dl>\n{}</dl></details>",
        joined(html("<dt>{}</dt><dd>{}</dd>\n", name, fact) for name, fact in facts.items() if fact is not None),
    )


def _plain(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, float) for item in value):
        # Columns of numbers are aligned for comparison.
        return ", ".join(f"{item:.3g}" for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _score(e: Explanation, value: float, places: int) -> str:
    """With a true minus sign, which is as wide as the plus and read aloud by screen readers."""
    return phrases.score(e, value, places).replace("-", "\N{MINUS SIGN}")
