"""An explanation as LaTeX: the text with coloured words, for a document that uses xcolor."""

import re

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import ExplanationLayout, ShownSpan, layout
from raison.report.style import phrases
from raison.report.style.colours import ink
from raison.report.tables.writers import comments, escape_latex

_WORD = re.compile(r"\s*\S+")


def latex(e: Explanation) -> str:
    """The coloured text and a line that explains the colours; needs \\usepackage{xcolor}."""
    shown = layout(e)
    texts = "\n\n".join("".join(_span(shown, span) for span in text.spans).strip() for text in shown.passages)
    ends = [(-1.0, shown.ends.low, shown.ends.lowest)] * e.signed + [(1.0, shown.ends.high, shown.ends.highest)]
    legend = "; ".join(
        f"{_box(number.replace('-', '$-$'), shown, level)} {escape_latex(name)}" for level, number, name in ends
    )
    head = comments([f"{phrases.verdict(e).line}; {phrases.goal(e)}; {phrases.made_by(e)}; {e.model}"])
    return f"{head}{{\\setlength{{\\fboxsep}}{{1pt}}\\raggedright\n{texts}\n\n\\smallskip{{\\small {legend}}}\\par}}\n"


def _span(shown: ExplanationLayout, span: ShownSpan) -> str:
    """A box for each word, so that lines can break between them."""
    words = ""
    for word in _WORD.findall(span.piece.text):
        text = escape_latex(word)
        words += " " * word[0].isspace() + (text if span.level is None else _box(text, shown, span.level))
    return words + " " * (span.piece.text[-1:].isspace())


def _box(text: str, shown: ExplanationLayout, level: float) -> str:
    ground = shown.scale.shade(level)
    colours = [colour.removeprefix("#").upper() for colour in (ground, ink(ground))]
    return rf"\colorbox[HTML]{{{colours[0]}}}{{\textcolor[HTML]{{{colours[1]}}}{{\strut {text}}}}}"
