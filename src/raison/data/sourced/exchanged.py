"""The same questions with a different answer in the sources, which no model can know otherwise."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from raison.data.sourced.articles import Article
from raison.data.sourced.passages import has_words
from raison.data.sourced.question import KnownSources, Passage

Sort = Literal["person", "place", "year", "number"]

_YEAR = re.compile(r"1\d{3}|20\d{2}")
_NUMBER = re.compile(r"\d[\d,.]*( (percent|million|billion))?|\d[\d,.]*%")
_NAME = re.compile(r"[A-Z][\w.'-]*( (of|the|de|[A-Z][\w.'-]*))* ?")
_ASKS: dict[str, Sort] = {"who": "person", "whom": "person", "where": "place"}


def sort_of(question: str, answer: str) -> Sort | None:
    """The kind of an answer: a year or a number by its form, a name by the question's first word; None: another
    kind."""
    if _YEAR.fullmatch(answer):
        return "year"
    if _NUMBER.fullmatch(answer):
        return "number"
    first = question.split()[0].lower() if question.split() else ""
    return _ASKS.get(first) if _NAME.fullmatch(answer) else None


def exchanged(known: Iterable[KnownSources], articles: Sequence[Article], seed: int = 0) -> Iterator[KnownSources]:
    """Questions whose answer is replaced by another one of the same kind in all sources that contain it.

    The other answer belongs to a question about another article. It shares no word with the old one, does not occur in
    the sources, and has as many words if possible. Questions whose answer is of no known kind, or occurs in the
    question, are left out.
    """
    answers = _by_sort(articles)
    for one in known:
        sort = sort_of(one.question, one.answer)
        if sort is None or has_words(one.question, one.answer):
            continue
        random = Random(f"exchanged {seed} {one.question} {one.answer}")
        others = [answer for title, answer in answers[sort] if title != one.subject and _is_new(answer, one)]
        alike = [answer for answer in others if len(answer.split()) == len(one.answer.split())]
        if others:
            yield _with_answer(one, random.choice(alike or others))


def _by_sort(articles: Sequence[Article]) -> dict[Sort, list[tuple[str, str]]]:
    """Titles and answers."""
    answers: dict[Sort, list[tuple[str, str]]] = {"person": [], "place": [], "year": [], "number": []}
    for article in articles:
        for paragraph in article.paragraphs:
            for question, answer in paragraph.asked:
                sort = sort_of(question, answer.text)
                if sort is not None and (article.title, answer.text) not in answers[sort]:
                    answers[sort].append((article.title, answer.text))
    return answers


def _is_new(answer: str, known: KnownSources) -> bool:
    words = set(known.answer.lower().split())
    return words.isdisjoint(answer.lower().split()) and not any(
        has_words(text, answer) for text in known.sources.values()
    )


def _with_answer(known: KnownSources, answer: str) -> KnownSources:
    old = re.compile(rf"(?<!\w){re.escape(known.answer)}(?!\w)")

    def exchanged(text: str) -> str:
        return old.sub(lambda _: answer, text)

    moved = []
    for passage in known.sentences:
        text = known.sources[passage.source]
        start = len(exchanged(text[: passage.start]))
        moved.append(Passage(passage.source, start, start + len(exchanged(text[passage.start : passage.end]))))
    sources = {name: exchanged(text) for name, text in known.sources.items()}
    return replace(known, sources=sources, answer=answer, sentences=tuple(moved))
