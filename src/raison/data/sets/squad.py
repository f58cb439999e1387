"""SQuAD 1.1: questions whose answers are parts of Wikipedia paragraphs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.data.answer_spans import parse_answers
from raison.data.dataset import BrokenLine, Row
from raison.data.named import NamedSet, Split
from raison.data.rows import Entry

_HUB = "rajpurkar/squad"


def read_articles(path: Path) -> list[dict[str, Any]]:
    """The articles of a file in SQuAD's form, unchanged. Raises DataError for another file."""
    try:
        articles: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["data"]
        _asked(articles)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not in SQuAD's form ({type(error).__name__}: {error}).") from None
    return articles


def _asked(articles: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(paragraph["context"], item) for article in articles for paragraph in article["paragraphs"]
            for item in paragraph["qas"]]  # fmt: skip


def _questions(paths: tuple[Path, ...]) -> Iterator[Entry]:
    """The questions in the order of the file, counted from 1."""
    entries = _asked(read_articles(paths[0]))
    for number, (context, item) in enumerate(entries, start=1):
        yield _entry(number, context, item)


def _entry(number: int, context: Any, item: Any) -> Entry:
    try:
        question = item["question"]
        if not (isinstance(question, str) and isinstance(context, str) and question.strip() and context.strip()):
            return BrokenLine(number, "the question or its context is blank")
        answers = parse_answers(item["answers"], context)
    except (KeyError, TypeError, ValueError) as error:
        return BrokenLine(number, f"not a question with answers ({error})")
    # Several people answered; most of them alike.
    return Row((question, context), None, number, answers=tuple(dict.fromkeys(answers)))


SET = NamedSet(
    folder="squad",
    labels=(),
    splits={
        "train": Split(("squad_v1.1_trainpart_dev.json",), _questions, (_HUB, "train")),
        "test": Split(("xquad.en.json",), _questions, (_HUB, "validation")),
    },
    citation="Rajpurkar et al., EMNLP 2016: SQuAD: 100,000+ questions for machine comprehension of text",
    note=(
        "The folder has a part of SQuAD's training set (20 articles) and, as test, the part of its dev set that XQuAD "
        "took (240 paragraphs); the Hub's splits are the whole ones."
    ),
)
