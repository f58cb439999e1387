"""Questions of SQuAD about articles that no model of the project was trained on, with passages of few words."""

from collections.abc import Iterator
from dataclasses import replace

from raison.core.targets.answer import Answer
from raison.data.sourced.articles import Article, Paragraph, articles
from raison.data.sourced.passages import Passages, among_others
from raison.data.sourced.question import KnownSources
from raison.text.segment import sentence_spans


def short_questions(others: int, sentences: int, paragraphs: int) -> Iterator[KnownSources]:
    """Each with its passage among so many others of the same article.

    Passages are runs of sentences; to bound the prompts, only the shortest run of a paragraph is used, and as many
    paragraphs of an article, the shortest.
    """
    shortened = [_shortened(article, sentences, paragraphs) for article in articles("test")]
    return among_others(shortened, Passages(others, sentences))


def _shortened(article: Article, sentences: int, paragraphs: int) -> Article:
    runs = [found for paragraph in article.paragraphs if (found := _shortest_run(paragraph, sentences)) is not None]
    return replace(article, paragraphs=tuple(sorted(runs, key=lambda own: len(own.text.split()))[:paragraphs]))


def _shortest_run(paragraph: Paragraph, sentences: int) -> Paragraph | None:
    """The run of sentences with the fewest words, and the questions that it answers."""
    spans = sentence_spans(paragraph.text)
    runs = [(spans[i][0], spans[i + sentences - 1][1]) for i in range(len(spans) - sentences + 1)]
    if not runs:
        return None
    start, end = min(runs, key=lambda own: len(paragraph.text[own[0] : own[1]].split()))
    asked = tuple(
        (question, Answer(answer.start - start, answer.end - start, answer.text))
        for question, answer in paragraph.asked
        if start <= answer.start and answer.end <= end
    )
    return Paragraph(paragraph.text[start:end], asked)
