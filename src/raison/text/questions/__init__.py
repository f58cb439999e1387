"""Questions about a model's own answer: the wording is in this folder, one text file for each form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Form = Literal["rank", "score"]
"""The requested form: units in order of importance, or a number for each."""

_FOLDER = Path(__file__).parent
_CLASS = "praise"
"""The label of the example text, independent of the classes in the question."""


@dataclass(frozen=True, slots=True)
class _AnsweredExample:
    """A text with a score for each unit: small models keep to the form only if they are shown an example."""

    units: tuple[str, ...]
    scores: tuple[float, ...]

    def ranking(self) -> list[str]:
        """The units from the highest score to the lowest, with their ranks."""
        order = sorted(range(len(self.units)), key=lambda unit: -self.scores[unit])
        return [f"{rank}. {self.units[unit]}" for rank, unit in enumerate(order, start=1)]

    def scored(self) -> list[str]:
        """The numbered units with their scores."""
        return [f"{line}: {score:g}" for line, score in zip(_numbered(self.units), self.scores, strict=True)]


_WORDS = _AnsweredExample(("what", "a", "warm", "but", "slow", "film"), (0.1, 0.0, 0.9, -0.2, -0.6, 0.2))
_SENTENCES = _AnsweredExample(("We came by bus.", "What a warm film!", "It is slow."), (0.0, 0.9, -0.5))


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question: a text, its units and their name, the classes to choose from, and the answer."""

    text: str
    units: Sequence[str]
    unit: str
    classes: Sequence[str]
    answer: str


def question(form: Form, subject: Subject) -> str:
    """The question which units of the text led to the answer.

    White space within a unit is shown as one space. Braces in the text are text.
    """
    unit = subject.unit
    example = _SENTENCES if unit == "sentence" else _WORDS
    values = {
        "unit": unit,
        "Unit": unit.capitalize(),
        "classes": ", ".join(subject.classes),
        "example": " ".join(example.units),
        "example_units": _listed(form, example.units),
        "example_class": _CLASS,
        "example_answer": "\n".join(example.ranking() if form == "rank" else example.scored()),
        "text": subject.text,
        "units": _listed(form, [one_line(text) for text in subject.units]),
        "answer": subject.answer,
    }
    wording = (_FOLDER / f"{form}.txt").read_text(encoding="utf-8").strip()
    # In one go, so that no inserted text is read as a slot.
    return re.sub(r"\{(\w+)\}", lambda slot: values[slot[1]], wording)


def one_line(text: str) -> str:
    """The text with every run of white space as one space, and none around it."""
    return " ".join(text.split())


def _listed(form: Form, units: Sequence[str]) -> str:
    return "\n".join(_numbered(units)) if form == "score" else ", ".join(units)


def _numbered(units: Sequence[str]) -> list[str]:
    return [f"{number}. {text}" for number, text in enumerate(units, start=1)]
