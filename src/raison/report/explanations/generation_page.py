"""Explanations of an output as HTML: the prompt in colours for each output token, and a matrix of all of them."""

from collections.abc import Sequence

from raison.core.explanation import Explanation
from raison.core.generation import GenerationExplanation
from raison.core.unknown import NOTE, caution_of_text
from raison.report.explanations.html import folded_facts
from raison.report.explanations.layout import Piece, largest, piece_score, pieces
from raison.report.style import phrases
from raison.report.style.colours import level, scale_of
from raison.report.style.markup import NOTHING, Markup, asset, data, document, html, joined, lines

STEPS = 20
"""Shades between zero and an end of the scale; the script picks among them."""


def page(explanations: GenerationExplanation | Sequence[GenerationExplanation]) -> str:
    """A standalone page of one or more explained outputs, without any link to the network."""
    shown = [explanations] if isinstance(explanations, GenerationExplanation) else list(explanations)
    title = f"Why “{phrases.shorten(shown[0].output, 50)}”" if len(shown) == 1 else f"{len(shown)} explained outputs"
    body = html(
        '<h1>{}</h1>\n{}\n<footer>{}</footer>\n<div id="tip" role="tooltip" hidden></div>',
        title,
        lines(_article(e, True) for e in shown),
        " ".join(["raison", *sorted({e.version for e in shown if e.version})]),
    )
    styles = ("explanation.css", "generation.css", "page.css")
    return document(title, body, styles, asset("page.js") + asset("generation.js"))


def fragment(e: GenerationExplanation) -> str:
    """One explained output for a notebook: the whole output's colours and the matrix, no script."""
    styles = joined(map(asset, ("explanation.css", "generation.css", "fragment.css")))
    return str(html("<style>\n{}</style>\n{}", styles, _article(e, False)))


def _article(e: GenerationExplanation, live: bool) -> Markup:
    whole, caution = e.whole(), caution_of_text(e.notes)
    output = phrases.shorten(e.output, 200)
    parts = [
        html('<p class="verdict">Written: <b><bdi translate="no">{}</bdi></b></p>', output),
        html('<p class="goal">Explained: {}</p>', f"{goal(e)}, {e.unit} by {e.unit}, with {e.method}"),
        _choices(e) if live else NOTHING,
        html('<p class="label shown">{}</p>', _heading(e, None)),
        _text(whole),
        _legend(e, largest(whole)),
        NOTHING if caution is None else html('<p class="warning">Warning: {}.</p>', caution),
        _matrix(e),
        _provenance(e),
        _data(e, whole) if live else NOTHING,
    ]
    return html('<article class="raison generation">\n{}\n</article>', lines(parts))


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


def _choices(e: GenerationExplanation) -> Markup:
    """The output as buttons: hover, focus or tap one to see its colours."""
    buttons = joined(
        html(
            '<button type="button" class="out" data-token="{}" title="{}" aria-pressed="false">'
            '<bdi translate="no">{}</bdi></button>',
            number,
            _heading(e, number),
            visible(token.text),
        )
        for number, token in enumerate(e.tokens)
    )
    whole = html('<button type="button" class="out all" data-token="all" aria-pressed="true">whole output</button>')
    return html('<div class="output" role="group" aria-label="Output tokens">{}{}</div>', whole, buttons)


def _text(whole: Explanation) -> Markup:
    spans = joined(_span(whole, piece) if piece.units else piece.text for piece in pieces(whole)[0])
    return html('<div class="text {}" dir="auto" lang="" translate="no">{}</div>', whole.unit, spans)


def _span(whole: Explanation, piece: Piece) -> Markup:
    score, scale = piece_score(whole, piece), largest(whole)
    return html(
        '<span class="unit{}" style="{}" tabindex="0" role="group" title="{}">{}</span>',
        " unread" * (not phrases.unknown_units(whole).isdisjoint(piece.units)),
        scale_of(whole.signed).css(level(score, scale)),
        _score(whole, score, scale),
        piece.text,
    )


def _legend(e: GenerationExplanation, scale: float) -> Markup:
    below, above = ends(e)
    low, high = _range(e, scale)
    return html(
        '<div class="legend"><span class="soft">{}</span><span class="low">{}</span><span class="strip" '
        'style="background:{}"></span><span class="high">{}</span><span class="soft">{}</span></div>',
        below,
        low,
        scale_of(e.signed).gradient(),
        high,
        above,
    )


def ends(e: GenerationExplanation) -> tuple[str, str]:
    """What the two ends of the scale mean for an output token."""
    if not e.signed:
        return "less important", "more important"
    return "against it" if e.contrast is None else "for the other token", "for it"


def _range(e: GenerationExplanation, scale: float) -> tuple[str, str]:
    """The numbers at the ends of the scale."""
    return _score(e, -scale if e.signed else 0.0, scale), _score(e, scale, scale)


def _matrix(e: GenerationExplanation) -> Markup:
    """Output tokens in rows, units in columns, all on one scale."""
    scale = max((abs(score) for row in e.scores for score in row), default=0.0)
    (low, high), (first, last) = _range(e, scale), ("blue", "red") if e.signed else ("no colour", "purple")
    return html(
        '<div class="scroll" tabindex="0" role="region" aria-label="Matrix of scores">'
        '<table class="matrix"><caption>{}</caption>\n'
        "<thead><tr><td></td>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>",
        f"Each output token in a row, from {low} ({first}) to {high} ({last})",
        joined(
            html(
                '<th scope="col"><bdi translate="no">{}</bdi></th>',
                phrases.shorten(unit.label, 24) or visible(unit.text),
            )
            for unit in e.units
        ),
        joined(_row(e, number, scale) for number in range(len(e.tokens))),
    )


def _row(e: GenerationExplanation, number: int, scale: float) -> Markup:
    token, colours = e.tokens[number], scale_of(e.signed)
    cells = joined(
        html(
            '<td class="cell" style="{}" title="{}: {}"><span>{}</span></td>',
            colours.css(level(score, scale)),
            visible(unit.text),
            _score(e, score, scale),
            _score(e, score, scale),
        )
        for unit, score in zip(e.units, e.scores[number], strict=False)
    )
    cells += html("<td></td>") * (len(e.units) - len(e.scores[number]))
    name = html('<bdi translate="no">{}</bdi>', visible(token.text))
    if token.against is not None:
        name += html(' <span class="soft">not <bdi translate="no">{}</bdi></span>', visible(token.against))
    return html(
        '<tr data-token="{}"><th scope="row">{} <span class="soft">{}</span></th>{}</tr>\n',
        number,
        name,
        phrases.percent(token.probability),
        cells,
    )


def _provenance(e: GenerationExplanation) -> Markup:
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
    return folded_facts(facts)


def _data(e: GenerationExplanation, whole: Explanation) -> Markup:
    """What the script needs: a palette, and for the whole output and each token the shade and value of each piece."""
    colours = scale_of(e.signed)
    palette = [colours.css(step) for step in colours.steps(STEPS)]
    states = {"all": _state(e, whole, None)}
    for number in range(len(e.tokens)):
        padded = e.scores[number] + (0.0,) * (len(e.units) - len(e.scores[number]))
        states[str(number)] = _state(e, whole, number, padded)
    return data({"palette": palette, "states": states})


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
