"""SQuAD's articles: paragraphs with their questions, in the parts for training and testing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from raison.core.errors import DataError, UnknownNameError
from raison.core.targets.answer import Answer
from raison.data.answer_spans import parse_answers
from raison.data.named import named_paths
from raison.data.sets.squad import read_articles

ArticlePart = Literal["train", "test", "xquad"]

HELD_OUT = ("Genghis_Khan", "Huguenot", "Immune_system", "Buckingham_Palace")
"""Articles of the training file used only in tests: with enough paragraphs for 19 others, and all those in XQuAD."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text and its questions, each with its first answer."""

    text: str
    asked: tuple[tuple[str, Answer], ...]


@dataclass(frozen=True, slots=True)
class Article:
    """Paragraphs of one subject."""

    title: str
    paragraphs: tuple[Paragraph, ...]


def articles(part: ArticlePart, folder: Path | None = None) -> tuple[Article, ...]:
    """The articles of a part: "train" and "test" share no article; "xquad" has five paragraphs of each of 48.

    Raises UnknownNameError for a part, DataError if the folder is missing or broken.
    """
    if part not in get_args(ArticlePart):
        raise UnknownNameError("part of squad", part, get_args(ArticlePart))
    path = named_paths("squad", "test" if part == "xquad" else "train", folder)[0]
    read = tuple(_article(one, path) for one in read_articles(path))
    if part == "xquad":
        return read
    return tuple(one for one in read if (one.title in HELD_OUT) == (part == "test"))


def _article(data: dict[str, object], path: Path) -> Article:
    paragraphs: Sequence[dict[str, object]] = data["paragraphs"]  # type: ignore[assignment]
    try:
        return Article(str(data["title"]), tuple(_paragraph(one) for one in paragraphs))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: an article is not in SQuAD's form ({error}).") from None


def _paragraph(data: dict[str, object]) -> Paragraph:
    text = str(data["context"])
    questions: list[tuple[str, Answer]] = []
    for one in data["qas"]:  # type: ignore[attr-defined]
        answers = parse_answers(one["answers"], text)
        if one["question"].strip() and answers:
            questions.append((one["question"].strip(), answers[0]))
    return Paragraph(text, tuple(questions))
