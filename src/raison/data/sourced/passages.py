"""Questions with the passage that answers them among passages of the same article."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from raison.core.errors import DataError
from raison.core.targets.answer import Answer
from raison.data.sourced.articles import Article, Paragraph
from raison.data.sourced.question import KnownSources, Passage
from raison.text.segment import CharacterSpan, sentence_spans

_TOGETHER = 12
"""Approximate number of sentences of a reading."""


@dataclass(frozen=True, slots=True)
class Passages:
    """The number of `others` besides the passage of the answer, and the maximum number of `sentences` of a passage.

    A passage is a run of whole sentences of one paragraph; None: the whole paragraph.
    """

    others: int = 4
    sentences: int | None = 3

    def __post_init__(self) -> None:
        if self.others < 1 or (self.sentences is not None and self.sentences < 1):
            raise DataError("others and sentences are numbers of passages and of their sentences: give 1 or more.")


@dataclass(frozen=True, slots=True)
class SourcedQuestions:
    """Passages with several questions, each with its answer: one training example."""

    sources: dict[str, str]
    asked: tuple[tuple[str, str], ...]


def among_others(articles: Sequence[Article], how: Passages, seed: int = 0) -> Iterator[KnownSources]:
    """Every question with a passage that answers it among others of its article, in an order drawn by the seed.

    The place of the answer in its passage, and that of the passage among the others, are drawn. No other passage has
    the answer's words. Questions whose answer has more than one sentence, and those of articles that have too few other
    passages, are left out. The draws depend only on the seed and the question.
    """
    places = [
        (article, number, question_and_answer)
        for article in articles
        for number, paragraph in enumerate(article.paragraphs)
        for question_and_answer in paragraph.asked
    ]
    Random(f"order {seed}").shuffle(places)
    for article, number, (question, answer) in places:
        sources = _among(article, number, question, answer, how, Random(f"{seed} {article.title} {number} {question}"))
        if sources is not None:
            yield sources


def readings(
    articles: Sequence[Article], fewest: int, most: int, questions: int, seed: int
) -> Iterator[SourcedQuestions]:
    """Each paragraph once, in groups of one article: `fewest` to `most` sources, and the questions that they answer.

    Fewer sources have longer passages. If there are more than `questions` questions, that many are drawn.
    """
    for article in articles:
        random = Random(f"readings {seed} {article.title}")
        order = random.sample(range(len(article.paragraphs)), len(article.paragraphs))
        while order:
            count = random.randint(fewest, most)
            sources = _reading(article, order[:count], max(1, min(3, _TOGETHER // count)), random)
            order = order[count:]
            if sources.asked:
                some = random.sample(sources.asked, min(questions, len(sources.asked)))
                yield SourcedQuestions(sources.sources, tuple(some))


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words, ignoring case."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def _among(
    article: Article, number: int, question: str, answer: Answer, how: Passages, random: Random
) -> KnownSources | None:
    text = article.paragraphs[number].text
    sentences = _sentences(text)
    place = _sentence_of(sentences, answer)
    if place is None:
        return None
    start, end = _run(sentences, place, how.sentences, random)
    others = []
    for other in random.sample(range(len(article.paragraphs)), len(article.paragraphs)):
        passage = _passage(article.paragraphs[other], how.sentences, random)
        if other != number and passage not in text and not has_words(passage, answer.text):
            others.append((other, passage))
        if len(others) == how.others:
            break
    else:
        return None
    at = random.randint(0, how.others)
    source = f"p{number + 1}"
    listed = [(f"p{other + 1}", passage) for other, passage in others]
    listed.insert(at, (source, text[start:end]))
    gold = Passage(source, sentences[place][0] - start, sentences[place][1] - start)
    return KnownSources(question, dict(listed), answer.text, (source,), (gold,), subject=article.title)


@cache
def _sentences(text: str) -> tuple[CharacterSpan, ...]:
    return tuple(sentence_spans(text))


def _sentence_of(sentences: Sequence[CharacterSpan], answer: Answer) -> int | None:
    return next((n for n, (start, end) in enumerate(sentences) if start <= answer.start and answer.end <= end), None)


def _run(sentences: Sequence[CharacterSpan], place: int, length: int | None, random: Random) -> CharacterSpan:
    """The characters of a run of sentences that includes the one at `place`."""
    if length is None or len(sentences) <= length:
        return sentences[0][0], sentences[-1][1]
    first = random.randint(max(0, place - length + 1), min(place, len(sentences) - length))
    return sentences[first][0], sentences[first + length - 1][1]


def _passage(paragraph: Paragraph, length: int | None, random: Random) -> str:
    sentences = _sentences(paragraph.text)
    start, end = _run(sentences, random.randrange(len(sentences)), length, random)
    return paragraph.text[start:end]


def _reading(article: Article, numbers: Sequence[int], length: int, random: Random) -> SourcedQuestions:
    sources: dict[str, str] = {}
    questions: dict[str, str] = {}
    for number in numbers:
        paragraph = article.paragraphs[number]
        sentences = _sentences(paragraph.text)
        some = random.choice(paragraph.asked)[1] if paragraph.asked else None
        place = None if some is None else _sentence_of(sentences, some)
        start, end = _run(sentences, random.randrange(len(sentences)) if place is None else place, length, random)
        sources[f"p{number + 1}"] = paragraph.text[start:end]
        questions |= {
            question: answer.text for question, answer in paragraph.asked if start <= answer.start and answer.end <= end
        }
    return SourcedQuestions(sources, tuple(questions.items()))
