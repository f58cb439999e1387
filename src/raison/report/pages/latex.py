"""An explanation as LaTeX: the text with coloured words, for a document that uses xcolor."""

import math
import re

from raison.core.explanation import Explanation
from raison.report.explanations.layout import Piece, largest, piece_score, pieces
from raison.report.style import phrases
from raison.report.style.colours import ink, level, scale_of
from raison.report.tables.results import comments, escape_latex

_WORD = re.compile(r"\s*\S+")


def latex(e: Explanation) -> str:
    """The coloured text and a line that says what the colours mean; needs \\usepackage{xcolor}."""
    scale = largest(e)
    texts = "\n\n".join("".join(_piece(e, piece, scale) for piece in text).strip() for text in pieces(e))
    against, towards = phrases.ends(e)
    places = phrases.decimals(scale)
    ends = [(towards, scale)] if not e.signed else [(against, -scale), (towards, scale)]
    told = "; ".join(f"{_box(_number(phrases.score(e, end, places)), e, end, scale)} {escape_latex(name)}"
                     for name, end in ends)  # fmt: skip
    head = comments([f"{phrases.verdict(e).line}; {phrases.goal(e)}; {phrases.made_by(e)}; {e.model}"])
    return f"{head}{{\\setlength{{\\fboxsep}}{{1pt}}\\raggedright\n{texts}\n\n\\smallskip{{\\small {told}}}\\par}}\n"


def _piece(e: Explanation, piece: Piece, scale: float) -> str:
    """A box for each word, so that lines can break between them."""
    score = piece_score(e, piece) if piece.units else 0.0
    shown = ""
    for word in _WORD.findall(piece.text):
        text = escape_latex(word)
        plain = not piece.units or not math.isfinite(score)
        shown += " " * word[0].isspace() + (text if plain else _box(text, e, score, scale))
    return shown + " " * (piece.text[-1:].isspace())


def _box(text: str, e: Explanation, score: float, scale: float) -> str:
    ground = scale_of(e.signed).shade(level(score, scale))
    colours = [colour.removeprefix("#").upper() for colour in (ground, ink(ground))]
    return rf"\colorbox[HTML]{{{colours[0]}}}{{\textcolor[HTML]{{{colours[1]}}}{{\strut {text}}}}}"


def _number(text: str) -> str:
    return text.replace("-", "$-$")
