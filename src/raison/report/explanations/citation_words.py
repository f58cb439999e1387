"""Citations in words: the same in the terminal, on pages and in lists."""

from raison.core.results.citations import Citations
from raison.report.style import phrases

SUPPORTED = 0.5
"""Minimum entailment at which a source supports a statement."""
ORIGINS = {
    "sources": "",
    "together": "rests on several sources together; no single one is needed",
    "memory": "does not depend on any source: it comes from the model's memory or from the question",
    "undecided": "whether it depends on a source is undecided",
}


def goal(c: Citations) -> str:
    """The explained quantity of each statement."""
    return f"{phrases.quantity(c.of)} of each statement"


def score(c: Citations, value: float) -> str:
    """A score, with its sign if scores can have two, as precise as the largest requires."""
    places = phrases.decimals(max(abs(one) for row in c.scores for one in row))
    return phrases.score(c, value, places).replace("-", "\N{MINUS SIGN}")


def light(c: Citations, statement: int, source: int) -> str:
    """Whether the statement needs the source, and which near-duplicates were removed with it."""
    check = c.checks[statement][source]
    alike = phrases.shorten(", ".join(check.alike), 40)
    return f"{check.light}, together with {alike}" if check.alike else check.light


def support(c: Citations, statement: int, source: int) -> str:
    """The verdict of the caller's entailment judge."""
    return "supported" if c.supported[statement][source] >= SUPPORTED else "not supported"
