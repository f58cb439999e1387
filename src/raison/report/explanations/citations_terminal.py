"""Citations for the terminal: each statement with its sources and their strongest sentences."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raison.core.note_names import NOISE
from raison.core.results.citations import Citations
from raison.report.explanations.citation_words import ORIGINS, goal, light, score, support
from raison.report.style import phrases
from raison.report.style.colours import Scale, level
from raison.report.style.terminal_text import facts_grid, plain, safe

TOP = 3
"""Number of sources shown per statement, besides those in use."""


def citations_text(c: Citations) -> RenderableType:
    """The question, each statement with its sources, and the cost."""
    question = {"Question": phrases.shorten(c.question, 200)} if c.question else {}
    parts: list[RenderableType] = [facts_grid({**question, "Explained": f"{goal(c)}, with {c.method}"})]
    for number in range(len(c.statements)):
        parts += [Text(""), _heading(c, number), Padding(_sources(c, number), (0, 2))]
    cost = {
        "Cost": phrases.effort(c),
        "Model": f"{c.model}, template {c.template}, removal {c.removal}",
    }
    notes = {
        name.replace("_", " "): phrases.noise(c.notes) if name == NOISE else value for name, value in c.notes.items()
    }
    return Group(*parts, Text(""), facts_grid(cost | notes))


def citations_plain(c: Citations) -> str:
    """The terminal output without escape codes."""
    return plain(citations_text(c))


def _heading(c: Citations, number: int) -> Text:
    statement = c.statements[number]
    line = Text(f"{number + 1}  ", "dim")
    line.append(safe(statement.text), "bold")
    line.append(f"  log-probability {statement.log_probability:.2f}, without sources {statement.without:.2f}", "dim")
    if origin := ORIGINS.get(statement.origin or ""):
        line.append(f"\n   {origin}", "yellow")
    return line


def _sources(c: Citations, number: int) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for column in ("score", "interval", "light", "source"):
        grid.add_column(column, no_wrap=True, justify="right" if column == "score" else "left")
    grid.add_column("sentence", ratio=1, overflow="fold")
    scale = max(abs(one) for one in c.scores[number])
    lit = set(c.used(number)) if c.checks else set()
    for name in [one for place, one in enumerate(c.ranked(number)) if place < TOP or one in lit]:
        j = c.ids.index(name)
        colour = Scale(c.signed).terminal_style(level(c.scores[number][j], scale))
        verdict = light(c, number, j) if c.checks else ""
        if c.supported:
            verdict += f"{', ' * bool(verdict)}{support(c, number, j)}"
        between = c.intervals[number][j] if c.intervals else None
        held = "" if between is None else f"{score(c, between[0])} to {score(c, between[1])}"
        grid.add_row(
            Text(score(c, c.scores[number][j])),
            held,
            Text(safe(verdict)),
            Text(safe(name), colour),
            _best(c, number, name),
        )
    return grid


def _best(c: Citations, number: int, name: str) -> Text:
    """The strongest sentence of a source, or how the source begins."""
    inside = [(unit, value) for unit, value in c.passages(number) if unit.name == name]
    if inside:
        unit, value = inside[0]
        return Text(safe(phrases.shorten(unit.text, 100))).append(f" {score(c, value)}", "dim")
    return Text(safe(phrases.shorten(c.sources[c.ids.index(name)].text, 60)), "dim")
