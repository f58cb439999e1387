"""The scores of an explanation as bars, drawn by matplotlib (the extra `report`)."""

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.report.style import phrases
from raison.report.style.colours import Scale
from raison.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 30
"""Number of units that are drawn, the strongest ones."""
_ROW, _AROUND = 0.26, 1.3
_LABEL, _END, _WIDE = 40, 28, 80


def figure(e: Explanation) -> "Figure":
    """A horizontal bar for each unit in the order of the text; for a long text, only for the strongest ones.

    The figure belongs to no window and changes no setting. Raises DataError if matplotlib is missing.
    """
    if find_spec("matplotlib") is None:
        raise DataError("a plot needs matplotlib: pip install 'raison[report]', or save as .svg or .html.")
    from matplotlib.figure import Figure

    finite = [unit for unit, score in enumerate(e.scores) if score == score]
    shown = sorted(sorted(finite, key=lambda unit: -abs(e.scores[unit]))[:MOST])
    drawn = Figure(figsize=(7, _ROW * max(len(shown), 1) + _AROUND), layout="constrained")
    axes = drawn.add_subplot()
    scale = Scale(e.signed)
    scores = [e.scores[unit] for unit in shown]
    colours = [scale.shade(0.75 if score > 0 else -0.75) for score in scores]
    axes.barh(range(len(shown)), scores, color=colours)
    # A unit's text is not mathematics, even with dollar signs; half of a character has no glyph.
    labels = [without_surrogates(phrases.named(e.units[unit], _LABEL)) for unit in shown]
    axes.set_yticks(range(len(shown)), labels, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    against, towards = (phrases.shorten(name, _END) for name in phrases.ends(e))
    axes.set_xlabel(without_surrogates(f"← {against}      {towards} →" if e.signed else towards), parse_math=False)
    rest = len(e.scores) - len(shown)
    said = phrases.shorten(f"{phrases.verdict(e).line}; {phrases.goal(e)}", _WIDE)
    made_by = phrases.shorten(phrases.made_by(e), _WIDE)
    weaker = f"\nwithout {phrases.count(rest, 'weaker ' + e.unit)}" if rest else ""
    title = without_surrogates(f"{said}\n{made_by}{weaker}")
    axes.set_title(title, fontsize=9, loc="left", parse_math=False)
    return drawn


def png(e: Explanation) -> bytes:
    """The figure as an image."""
    out = io.BytesIO()
    figure(e).savefig(out, format="png", dpi=150)
    return out.getvalue()
