"""Explanations as HTML: a standalone page, and a fragment for notebooks."""

import json
import math
from collections.abc import Sequence

from raison.core.explanation import Explanation
from raison.core.unknown import NOTE
from raison.report import phrases
from raison.report.colours import level, scale_of
from raison.report.layout import Part, Piece, largest, parts, piece_score, pieces, strongest, text_labels
from raison.report.markup import asset, document, escape

TOP = 8


def page(explanations: Explanation | Sequence[Explanation]) -> str:
    """A standalone page of one or more explanations, without any link to the network."""
    shown = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    title = f"{_title(shown[0])}: {excerpt(shown[0])}" if len(shown) == 1 else f"{len(shown)} explanations"
    articles = "\n".join(_article(e, f"explanation-{number}") for number, e in enumerate(shown, 1))
    versions = sorted({e.version for e in shown if e.version})
    body = (
        f"<h1>{'Explanation' if len(shown) == 1 else escape(title)}</h1>\n{_contents(shown)}{articles}\n"
        f"<footer>{escape(' '.join(['raison', *versions]))}</footer>\n"
        '<div id="tip" role="tooltip" hidden></div>'
    )
    return document(title, body, ("explanation.css", "page.css"), asset("page.js"))


def fragment(e: Explanation) -> str:
    """One explanation for a notebook: styles reach only into it, no script, light or dark as the notebook is."""
    return f"<style>\n{asset('explanation.css')}{asset('fragment.css')}</style>\n{_article(e, '')}"


def compact(e: Explanation, heading: str, anchor: str, scores: str = "") -> str:
    """One of several explanations of the same text: what they share is said once elsewhere, details are folded."""
    scale = largest(e)
    parts = [
        f"<h2>{escape(heading)}</h2>",
        f'<p class="goal">{scores}</p>' if scores else "",
        _texts(e, scale),
        _legend(e, scale),
        *(f'<p class="warning">Warning: {escape(caution)}.</p>' for caution in phrases.cautions(e)),
        f"<details><summary>Strongest {escape(e.unit)}s</summary>\n{_ranking(e, scale)}</details>",
        _provenance(e),
    ]
    return f'<article class="raison" id="{anchor}">\n' + "\n".join(part for part in parts if part) + "\n</article>"


def headline(e: Explanation) -> str:
    """What was predicted and what is explained, as two paragraphs."""
    return f'{_verdict(e)}\n<p class="goal">Explained: {escape(f"{phrases.goal(e)}, {e.unit} by {e.unit}")}</p>'


def _verdict(e: Explanation) -> str:
    told = phrases.verdict(e)
    return f'<p class="verdict">{told.lead} <b>{escape(told.said)}</b> {escape(told.rest)}</p>'


def _title(e: Explanation) -> str:
    """The class; where there is none, or no single one, what the model says."""
    return e.prediction if e.outputs == "classes" else phrases.verdict(e).line


def excerpt(e: Explanation, width: int = 60) -> str:
    """The first words of the text, or of both texts of a pair."""
    return phrases.shorten(e.text if isinstance(e.text, str) else " / ".join(e.text), width)


def _contents(shown: list[Explanation]) -> str:
    if len(shown) < 2:
        return ""
    items = "".join(
        f'<li><a href="#explanation-{number}"><bdi>{escape(excerpt(e))}</bdi></a> '
        f"{escape(phrases.verdict(e).line)}, {escape(e.method)}</li>\n"
        for number, e in enumerate(shown, 1)
    )
    return f'<nav aria-label="Explanations"><ol>\n{items}</ol></nav>\n'


def _article(e: Explanation, anchor: str) -> str:
    scale = largest(e)
    parts = [
        _verdict(e),
        f'<p class="goal">Explained: {escape(f"{phrases.goal(e)}, {e.unit} by {e.unit}")}, '
        f"with {escape(phrases.made_by(e))}</p>",
        _texts(e, scale),
        _legend(e, scale),
        *(f'<p class="warning">Warning: {escape(caution)}.</p>' for caution in phrases.cautions(e)),
        _ranking(e, scale),
        _provenance(e),
    ]
    identity = f' id="{anchor}"' if anchor else ""
    return f'<article class="raison"{identity}>\n' + "\n".join(part for part in parts if part) + "\n</article>"


def _texts(e: Explanation, scale: float) -> str:
    ranks = {unit: rank for rank, unit in enumerate(strongest(e, len(e.scores)), 1)}
    blocks = []
    for number, (label, text) in enumerate(zip(text_labels(e), pieces(e), strict=True)):
        shown = zip(text, parts(e, number, [piece.text for piece in text]), strict=True)
        spans = "".join(_span(e, piece, _boxed(own), scale, ranks) for piece, own in shown)
        heading = f'<p class="label">{label}</p>\n' if label else ""
        blocks.append(f'{heading}<div class="text {escape(e.unit)}" dir="auto" lang="" translate="no">{spans}</div>')
    return "\n".join(blocks)


def _boxed(own: Sequence[Part]) -> str:
    """A piece with a box around what of the answer is in it."""
    return "".join(box(part, escape(part.text)) for part in own)


def box(part: Part, content: str) -> str:
    """Content in a box if it is inside the answer, open towards the rest of the answer."""
    if not part.inside:
        return content
    return f'<span class="answer{" opens" * part.opens}{" closes" * part.closes}">{content}</span>'


def _span(e: Explanation, piece: Piece, content: str, scale: float, ranks: dict[int, int]) -> str:
    if not piece.units:
        return content
    score = piece_score(e, piece)
    value = _score(e, score, phrases.decimals(scale))
    rank = min(ranks[unit] for unit in piece.units)
    shared = f" ({escape(phrases.count(len(piece.units), e.unit))} together)" if len(piece.units) > 1 else ""
    unread = not phrases.unknown_units(e).isdisjoint(piece.units)
    tip = f"{value}{shared}, rank {rank} of {len(e.scores)}{', unknown to the model' * unread}"
    style = f' style="{scale_of(e.signed).css(level(score, scale))}"' if math.isfinite(score) else ""
    numbers = " ".join(map(str, piece.units))
    return (
        f'<span class="unit{"" if style else " none"}{" unread" * unread}"{style} data-units="{numbers}" '
        'tabindex="0" role="group" '
        f'title="{tip}" aria-label="{escape(piece.text.strip())}: {tip}">{content}</span>'
    )


def _legend(e: Explanation, scale: float) -> str:
    against, towards = phrases.ends(e)
    places = phrases.decimals(scale)
    low, high = (_score(e, end, places) for end in (-scale if e.signed else 0.0, scale))
    return (
        f'<div class="legend"><span class="soft">{escape(against)}</span><span>{low}</span>'
        f'<span class="strip" style="background:{scale_of(e.signed).gradient()}"></span>'
        f'<span>{high}</span><span class="soft">{escape(towards)}</span></div>'
        f"{_box_legend(e)}{_unread_legend(e)}"
    )


def _unread_legend(e: Explanation) -> str:
    told = phrases.unread(e)
    if told is None:
        return ""
    return f'\n<p class="goal boxed"><span class="unread">underlined</span> unknown to the model: {escape(told)}</p>'


def _box_legend(e: Explanation) -> str:
    told = phrases.certainty(e)
    if told is None:
        return ""
    return (
        '\n<p class="goal boxed"><span class="answer opens closes">boxed</span> the answer that is explained, '
        f'<bdi translate="no">{escape(told)}</bdi></p>'
    )


def _ranking(e: Explanation, scale: float) -> str:
    shown = strongest(e, TOP)
    places = phrases.decimals(scale)
    rows = "".join(_bar_row(e, unit, scale) for unit in shown)
    rest = set(range(len(e.scores))) - set(shown)
    note = ""
    if rest:
        total = _score(e, sum(e.scores[unit] for unit in sorted(rest)), places)
        note = f'\n<p class="rest">{escape(phrases.count(len(rest), f"weaker {e.unit}"))} add up to {total}</p>'
    return f'<table class="top"><caption>Strongest {escape(e.unit)}s</caption><tbody>\n{rows}</tbody></table>{note}'


def _bar_row(e: Explanation, unit: int, scale: float) -> str:
    score = e.scores[unit]
    value = level(score, scale) if math.isfinite(score) else 0.0
    side, kind, room = ("for" if value > 0 else "against", "axis", 50) if e.signed else ("amount", "axis amount", 100)
    colours = scale_of(e.signed).css(0.75 if value > 0 else -0.75)
    bar = f'<span class="bar {side}" style="width:{room * abs(value):.1f}%;{colours}"></span>'
    return (
        f'<tr data-unit="{unit}"><td>{_score(e, score, phrases.decimals(scale))}</td>'
        f'<td><span class="{kind}">{bar if value else ""}</span></td>'
        f'<th scope="row"><bdi translate="no">{escape(phrases.shorten(e.units[unit].text, 90))}</bdi></th></tr>\n'
    )


_TOLD = ("completeness_gap", "caution", "selected_by", "candidates", NOTE)
"""Notes that the page says in its own words."""


def _provenance(e: Explanation) -> str:
    pairs = zip(e.classes, e.probabilities, strict=False)
    shares = ", ".join(f"{name} {phrases.percent(share)}" for name, share in pairs)
    config = ", ".join(f"{name}={_plain(value)}" for name, value in e.config.items())
    facts = {
        "Value": phrases.value_change(e),
        "Gap": phrases.gap(e),
        "Chosen": phrases.choice(e),
        "Probabilities": shares or None,
        "Method": f"{e.method}: {config}" if config else e.method,
        "Model": e.model,
        "Removal": e.removal,
        "Unknown": phrases.unread(e),
        "Seed": e.seed,
        "Cost": phrases.effort(e),
        **{f"Note: {name}": _plain(value) for name, value in e.notes.items() if name not in _TOLD},
        "Version": f"raison {e.version}" if e.version else None,
    }
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>\n" for k, v in facts.items() if v is not None)
    return f"<details><summary>How this was computed</summary>\n<dl>\n{items}</dl></details>"


def _plain(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, float) for item in value):
        # Many numbers side by side are there to be compared.
        return ", ".join(f"{item:.3g}" for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _score(e: Explanation, value: float, places: int) -> str:
    """With a true minus sign: as wide as the plus, and read aloud where a hyphen often is not."""
    return phrases.score(e, value, places).replace("-", "\N{MINUS SIGN}")
