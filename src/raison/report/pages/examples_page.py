"""The page of a study's examples: a table per data set, a row per text and method, the highest-scored units marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.jobs.disk import write_whole
from raison.report.pages.examples import Example, beside, markdown, marks, reading
from raison.report.pages.texts import file_of
from raison.report.style import phrases
from raison.report.style.markup import document, rendered
from raison.report.tables.writers import escape_markdown

STYLES = ("explanation.css", "page.css", "study.css", "examples.css")
PAGE, PAPER = "examples.html", "examples.md"


@dataclass(frozen=True, slots=True)
class Examples:
    """The examples of each of some texts; `texts` is the page that lists all texts, if there is one.

    `drawing`: some methods draw, under several seeds.
    """

    name: str
    title: str
    data: str
    examples: tuple[tuple[Example, ...], ...]
    texts: str = ""
    drawing: bool = False

    @property
    def folder(self) -> str:
        """The folder of the pages of its texts."""
        return self.texts.rpartition("/")[0]

    def caption(self, top: int) -> str:
        """The legend of the marks of the `top` units."""
        e = self.examples[0][0].explanation
        seeds = " Methods that draw are shown under their first seed." if self.drawing else ""
        return f"{phrases.count(len(self.examples), 'text')}, explained {e.unit} by {e.unit}. {reading(e, top)}{seeds}"


def write_examples(
    runs: Sequence[Examples], target: Path, title: str, origin: str, top: int
) -> dict[str, dict[str, str]]:
    """Write a standalone page of the runs that have examples, and the same as Markdown; a document's links to them."""
    title = f"Examples: {title}"
    values = {"title": title, "runs": runs, "origin": origin, "top": top}
    body = rendered("examples.html", values | {"marks": marks, "beside": beside, "file_of": file_of})
    write_whole(target / PAGE, document(title, body, STYLES))
    parts = [f"# {escape_markdown(title)}"]
    for run in runs:
        table = markdown(run.examples, run.data, top)
        parts += [f"## {escape_markdown(run.title)}", table, escape_markdown(run.caption(top))]
    parts.append(escape_markdown(origin))
    write_whole(target / PAPER, "\n\n".join(part.rstrip("\n") for part in parts) + "\n")
    return {"Examples": {"Texts with marks": PAGE, "Markdown": PAPER}}
