"""Explanations of an output as HTML: the prompt in colours for each output token, and a matrix of all of them."""

import json
from collections.abc import Sequence

from raison.core.explanation import Explanation
from raison.core.generation import GenerationExplanation
from raison.core.unknown import NOTE, caution_of_text
from raison.report import phrases
from raison.report.colours import level, scale_of
from raison.report.layout import Piece, largest, piece_score, pieces
from raison.report.markup import asset, document, escape

STEPS = 20
"""Shades between zero and an end of the scale; the script picks among them."""


def page(explanations: GenerationExplanation | Sequence[GenerationExplanation]) -> str:
    """A standalone page of one or more explained outputs, without any link to the network."""
    shown = [explanations] if isinstance(explanations, GenerationExplanation) else list(explanations)
    title = f"Why “{phrases.shorten(shown[0].output, 50)}”" if len(shown) == 1 else f"{len(shown)} explained outputs"
    articles = "\n".join(_article(e, True) for e in shown)
    versions = sorted({e.version for e in shown if e.version})
    body = (
        f"<h1>{escape(title)}</h1>\n{articles}\n<footer>{escape(' '.join(['raison', *versions]))}</footer>\n"
        '<div id="tip" role="tooltip" hidden></div>'
    )
    styles = ("explanation.css", "generation.css", "page.css")
    return document(title, body, styles, asset("page.js") + asset("generation.js"))


def fragment(e: GenerationExplanation) -> str:
    """One explained output for a notebook: the whole output's colours and the matrix, no script."""
    styles = asset("explanation.css") + asset("generation.css") + asset("fragment.css")
    return f"<style>\n{styles}</style>\n{_article(e, False)}"


def _article(e: GenerationExplanation, live: bool) -> str:
    whole, caution = e.whole(), caution_of_text(e.notes)
    parts = [
        f'<p class="verdict">Written: <b><bdi translate="no">{escape(phrases.shorten(e.output, 200))}</bdi></b></p>',
        f'<p class="goal">Explained: {escape(f"{goal(e)}, {e.unit} by {e.unit}, with {e.method}")}</p>',
        _choices(e) if live else "",
        f'<p class="label shown">{escape(_heading(e, None))}</p>',
        _text(whole),
        _legend(e, largest(whole)),
        "" if caution is None else f'<p class="warning">Warning: {escape(caution)}.</p>',
        _matrix(e),
        _provenance(e),
        _data(e, whole) if live else "",
    ]
    return '<article class="raison generation">\n' + "\n".join(part for part in parts if part) + "\n</article>"


def goal(e: GenerationExplanation) -> str:
    """What was explained of each output token."""
    quantity = e.of.replace("log_odds", "log-odds").replace("_", " ")
    if e.contrast is None:
        return f"{quantity} of each output token"
    return f"{quantity} of each output token {'over' if e.of == 'margin' else 'minus'} that of another"


def _heading(e: GenerationExplanation, number: int | None) -> str:
    """What the colours of the text stand for."""
    if number is None:
        return "Colours for the whole output"
    token = e.tokens[number]
    against = "" if token.against is None else f" and not {visible(token.against)}"
    return f"Colours for {visible(token.text)}{against} ({phrases.percent(token.probability)})"


def _choices(e: GenerationExplanation) -> str:
    """The output as buttons: hover, focus or tap one to see its colours."""
    buttons = "".join(
        f'<button type="button" class="out" data-token="{number}" title="{escape(_heading(e, number))}" '
        f'aria-pressed="false"><bdi translate="no">{escape(visible(token.text))}</bdi></button>'
        for number, token in enumerate(e.tokens)
    )
    whole = '<button type="button" class="out all" data-token="all" aria-pressed="true">whole output</button>'
    return f'<div class="output" role="group" aria-label="Output tokens">{whole}{buttons}</div>'


def _text(whole: Explanation) -> str:
    spans = "".join(_span(whole, piece) if piece.units else escape(piece.text) for piece in pieces(whole)[0])
    return f'<div class="text {escape(whole.unit)}" dir="auto" lang="" translate="no">{spans}</div>'


def _span(whole: Explanation, piece: Piece) -> str:
    score, scale = piece_score(whole, piece), largest(whole)
    unread = " unread" * (not phrases.unknown_units(whole).isdisjoint(piece.units))
    return (
        f'<span class="unit{unread}" style="{scale_of(whole.signed).css(level(score, scale))}" tabindex="0" '
        f'role="group" title="{_score(whole, score, scale)}">{escape(piece.text)}</span>'
    )


def _legend(e: GenerationExplanation, scale: float) -> str:
    below, above = ends(e)
    low, high = _range(e, scale)
    return (
        f'<div class="legend"><span class="soft">{below}</span><span class="low">{low}</span>'
        f'<span class="strip" style="background:{scale_of(e.signed).gradient()}"></span>'
        f'<span class="high">{high}</span><span class="soft">{above}</span></div>'
    )


def ends(e: GenerationExplanation) -> tuple[str, str]:
    """What the two ends of the scale mean for an output token."""
    if not e.signed:
        return "less important", "more important"
    return "against it" if e.contrast is None else "for the other token", "for it"


def _range(e: GenerationExplanation, scale: float) -> tuple[str, str]:
    """The numbers at the ends of the scale."""
    return _score(e, -scale if e.signed else 0.0, scale), _score(e, scale, scale)


def _matrix(e: GenerationExplanation) -> str:
    """Output tokens in rows, units in columns, all on one scale."""
    scale = max((abs(score) for row in e.scores for score in row), default=0.0)
    heads = "".join(
        f'<th scope="col"><bdi translate="no">{escape(phrases.shorten(unit.text, 24) or visible(unit.text))}</bdi></th>'
        for unit in e.units
    )
    rows = "".join(_row(e, number, scale) for number in range(len(e.tokens)))
    (low, high), (first, last) = _range(e, scale), ("blue", "red") if e.signed else ("no colour", "purple")
    caption = f"Each output token in a row, from {low} ({first}) to {high} ({last})"
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Matrix of scores">'
        f'<table class="matrix"><caption>{caption}</caption>\n'
        f"<thead><tr><td></td>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
    )


def _row(e: GenerationExplanation, number: int, scale: float) -> str:
    token, colours = e.tokens[number], scale_of(e.signed)
    cells = "".join(
        f'<td class="cell" style="{colours.css(level(score, scale))}" '
        f'title="{escape(visible(unit.text))}: {_score(e, score, scale)}"><span>{_score(e, score, scale)}</span></td>'
        for unit, score in zip(e.units, e.scores[number], strict=False)
    )
    cells += "<td></td>" * (len(e.units) - len(e.scores[number]))
    name = f'<bdi translate="no">{escape(visible(token.text))}</bdi>'
    if token.against is not None:
        name += f' <span class="soft">not <bdi translate="no">{escape(visible(token.against))}</bdi></span>'
    return (
        f'<tr data-token="{number}"><th scope="row">{name} '
        f'<span class="soft">{phrases.percent(token.probability)}</span></th>{cells}</tr>\n'
    )


def _provenance(e: GenerationExplanation) -> str:
    config = ", ".join(f"{name}={value}" for name, value in e.config.items())
    backward = f", {phrases.count(e.gradients, 'gradient')}" if e.gradients else ""
    facts = {
        "Output": f"{phrases.count(len(e.tokens), 'token')}, log-probability {e.log_probability:.3f}",
        "Method": f"{e.method}: {config}" if config else e.method,
        "Model": e.model,
        "Removal": e.removal,
        "Seed": e.seed,
        "Cost": f"{phrases.count(e.evaluations, 'evaluation')}{backward}, {phrases.seconds(e.seconds)}",
        **{f"Note: {name}": value for name, value in e.notes.items() if name != NOTE},
        "Version": f"raison {e.version}" if e.version else None,
    }
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>\n" for k, v in facts.items() if v is not None)
    return f"<details><summary>How this was computed</summary>\n<dl>\n{items}</dl></details>"


def _data(e: GenerationExplanation, whole: Explanation) -> str:
    """What the script needs: a palette, and for the whole output and each token the shade and value of each piece."""
    colours = scale_of(e.signed)
    palette = [colours.css(step) for step in colours.steps(STEPS)]
    states = {"all": _state(e, whole, None)}
    for number in range(len(e.tokens)):
        padded = e.scores[number] + (0.0,) * (len(e.units) - len(e.scores[number]))
        states[str(number)] = _state(e, whole, number, padded)
    data = json.dumps({"palette": palette, "states": states}, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json">{data.translate(_LONE)}</script>'


_LONE = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def _state(
    e: GenerationExplanation, whole: Explanation, number: int | None, scores: Sequence[float] | None = None
) -> dict[str, object]:
    chosen = whole.scores if scores is None else scores
    known = len(whole.units) if number is None else len(e.scores[number])
    shown = [piece.units for piece in pieces(whole)[0] if piece.units]
    sums = [sum(chosen[unit] for unit in units) for units in shown]
    scale = max(map(abs, [*chosen, *sums]), default=0.0)
    low, high = _range(e, scale)
    zero = STEPS if e.signed else 0
    return {
        "heading": _heading(e, number),
        "low": low,
        "high": high,
        "shades": [
            None if min(units) >= known else round(level(score, scale) * STEPS) + zero
            for units, score in zip(shown, sums, strict=True)
        ],
        "values": [
            "not written yet" if min(units) >= known else _score(e, score, scale)
            for units, score in zip(shown, sums, strict=True)
        ],
    }


def _score(e: Explanation | GenerationExplanation, value: float, scale: float) -> str:
    return phrases.score(e, value, phrases.decimals(scale)).replace("-", "\N{MINUS SIGN}")


def visible(text: str) -> str:
    """A token on one line, its white space to be seen."""
    return text.replace("\n", "⏎").replace("\t", "⇥") if text.strip() else text.replace("\n", "⏎").replace(" ", "␣")
