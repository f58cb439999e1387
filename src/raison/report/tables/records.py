"""The parts of a study's report, independent of the format: texts, tables with intervals, figures, claims.

A kind of study gives a Document. raison.report.pages.document, .papers and .writing do the rest, independent of the
kind.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from raison.core.results.explanation import Explanation
from raison.core.results.scores import Comparison
from raison.report.figures.data import Figure
from raison.runs.judging import Verdict

ARROWS = {True: "↑", False: "↓", None: ""}
Light = Literal["green", "amber", "red", "grey"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean with its interval. `rank` is 1 for the best of its column, 2 for the second, otherwise 0.

    `seeds` is the range of the single seeds' values; `own` says that the column's metric selected this row's maps.
    `lead` is put before the mean, `tip` after it; `soft` is printed grey; `light` is a verdict's colour.
    """

    mean: str
    interval: str = ""
    rank: int = 0
    seeds: str = ""
    own: bool = False
    lead: str = ""
    tip: str = ""
    soft: bool = False
    light: Light | None = None

    @property
    def marked(self) -> str:
        """The mean, with a dagger if the evaluating metric also selected the map."""
        return f"{self.mean}†" if self.own else self.mean


NOTHING_THERE = Cell("–")


@dataclass(frozen=True, slots=True)
class Table:
    """The heading of the first column and of the others, named rows of cells, and what they are.

    `shades` are levels from -1 to 1 where a table is a heat map, NaN for a cell without one. `links` lead from the
    rows' names. Content that is `aside` appears only on the page.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    caption: str = ""
    shades: tuple[tuple[float, ...], ...] = ()
    links: tuple[str, ...] = ()
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; `link` is where it leads, on the page."""

    words: str
    link: str = ""
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section, on the page."""

    words: str


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation, shown first, in a box of the light's colour."""

    words: str
    reason: str
    light: Light
    counts: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, its light in words, and the evidence."""

    question: str
    light: Light | None
    words: str
    says: str


@dataclass(frozen=True, slots=True)
class AnsweredQuestions:
    """Questions with their answers. `rules` appear only on the page."""

    entries: tuple[AnsweredQuestion, ...]
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Reasons:
    """Items that are missing from all tables, with reasons."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, only on the page; empty values are left out."""

    entries: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ScoresTable:
    """Methods side by side, or nothing yet. `note` ends the caption; on the page it may be `folded`."""

    table: Comparison | None
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Plots:
    """Figures side by side with their captions; nothing if none is drawn."""

    figures: tuple[Figure, ...]
    caption: str = ""
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims and their results."""

    verdicts: tuple[Verdict, ...]

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that the claims are about, in order."""
        return tuple(dict.fromkeys(verdict.run for verdict in self.verdicts))

    @property
    def by_run(self) -> dict[str, dict[str, Verdict]]:
        """The verdicts on each claim, by run; a claim need not cover every run."""
        by_statement: dict[str, dict[str, Verdict]] = {}
        for verdict in self.verdicts:
            by_statement.setdefault(verdict.says, {})[verdict.run] = verdict
        return by_statement


@dataclass(frozen=True, slots=True)
class HeadedExplanation:
    """An explanation with its heading; `anchor` is unique on the page."""

    explanation: Explanation
    heading: str
    anchor: str


Part = (
    Table
    | Text
    | Heading
    | Advice
    | AnsweredQuestions
    | Reasons
    | Facts
    | ScoresTable
    | Plots
    | Claims
    | HeadedExplanation
)


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading; one without parts is left out. The terminal shows the tables of sections with `told`."""

    title: str
    parts: tuple[Part, ...]
    anchor: str = ""
    in_terminal: bool = True

    @property
    def inside(self) -> tuple[Part, ...]:
        """The nonempty parts below its heading; explanations follow as separate articles."""
        return tuple(part for part in self.parts if filled(part) and not isinstance(part, HeadedExplanation))

    @property
    def explained(self) -> tuple[HeadedExplanation, ...]:
        """The explanations."""
        return tuple(part for part in self.parts if isinstance(part, HeadedExplanation))

    @property
    def advice(self) -> Advice | None:
        """The advice, whose light the section has."""
        return next((part for part in self.parts if isinstance(part, Advice)), None)

    @property
    def place(self) -> str:
        """The target of links."""
        return self.anchor or "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


@dataclass(frozen=True, slots=True)
class Document:
    """The report of a study. `file` is its parsed file, `text` the file itself ("" without one).

    A kind of study fills in what is specific to it; raison.studies.reports adds the title, the file, the digest and the
    versions.

    `pages` are further documents in its folder, by their files' names; `up` is the page that one of these belongs to.
    `links` lead to other files in the folder.
    """

    sections: tuple[Section, ...]
    title: str = ""
    warnings: tuple[str, ...] = ()
    file: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    digest: str = ""
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pages: Mapping[str, "Document"] = field(default_factory=dict)
    up: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, object]:
        """The origin according to the study file, and further facts."""
        return {name: self.file.get(name.lower()) for name in ("Source", "Reference", "Size")} | dict(self.facts)

    @property
    def shown(self) -> tuple[Section, ...]:
        """The nonempty sections."""
        return tuple(section for section in self.sections if any(map(filled, section.parts)))


def filled(part: Part) -> bool:
    """Whether a part is not empty."""
    if isinstance(part, Plots):
        return bool(part.figures)
    if isinstance(part, Claims):
        return bool(part.verdicts)
    if isinstance(part, AnsweredQuestions | Reasons | Facts):
        return bool(part.entries)
    return not isinstance(part, Table) or bool(part.rows)


def ranked(cells: Sequence[Cell], means: Sequence[float], higher: bool | None) -> list[Cell]:
    """A column's cells with the best and the second best marked, ties together; no marks for one value, no second for
    two."""
    distinct = sorted({mean for mean in means if math.isfinite(mean)}, reverse=bool(higher))
    if len(distinct) < 2 or higher is None:
        return list(cells)
    places = {distinct[0]: 1} | ({distinct[1]: 2} if len(distinct) > 2 else {})
    return [replace(cell, rank=places.get(mean, 0)) for cell, mean in zip(cells, means, strict=True)]
