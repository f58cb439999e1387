"""Words and sentences of a text, as character spans."""

import string
import unicodedata
from bisect import bisect_right
from itertools import groupby, pairwise

import regex
import sentencex

Span = tuple[int, int]

_WORD_BOUNDARY = regex.compile(r"(?wV1)\b")
_CLUSTER = regex.compile(r"\X")
_WHITE_SPACE = regex.compile(r"\s+")
_LINE_BREAK = regex.compile(r"\R")


def word_spans(text: str) -> list[Span]:
    """Words by the default rules of UAX #29, with a run of one punctuation mark ("...") as one word.

    Every character that is not white space lies in exactly one span. Scripts that are written without spaces are
    split as the default rules have it: one ideograph, hiragana or Thai cluster each.
    """
    # The word rules alone would cut a few clusters in two, such as a Thai consonant from its vowel SARA AM.
    clusters = {match.end() for match in _CLUSTER.finditer(text)}
    cuts = sorted({match.start() for match in _WORD_BOUNDARY.finditer(text)} & clusters | {0, len(text)})
    spans: list[Span] = []
    for start, end in pairwise(cuts):
        start, end = trim(text, start, end)
        if spans and spans[-1][1] == start and _is_mark(text[start:end]) and _repeats(text, spans[-1], text[start]):
            spans[-1] = (spans[-1][0], end)
        elif start < end:
            spans.append((start, end))
    return spans


def sentence_spans(text: str, language: str = "en") -> list[Span]:
    """Sentences, each a run of whole words; the white space between them belongs to none."""
    found = sentencex.get_sentence_boundaries(language, _plain_spaces(text))
    ends = [boundary["end_index"] for boundary in found]
    spans = []
    for _, words in groupby(word_spans(text), key=lambda word: bisect_right(ends, word[0])):
        own = list(words)
        spans.append((own[0][0], own[-1][1]))
    return spans


def trim(text: str, start: int, end: int) -> Span:
    """The span without the white space at its two ends; empty where nothing else is in it."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())


def _is_mark(word: str) -> bool:
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word).startswith("P"))


def _repeats(text: str, span: Span, mark: str) -> bool:
    # Two ends are enough: a word that starts and ends in a punctuation mark holds nothing else, but for accents.
    return text[span[0]] == mark == text[span[1] - 1]


def _plain_spaces(text: str) -> str:
    """The text with only " " and "\\n" for white space, as long as before.

    sentencex breaks off on white space of more than one byte after an initial, and knows only "\\n\\n" as the end of
    a paragraph.
    """

    def plain(match: regex.Match[str]) -> str:
        run = match[0]
        breaks = len(_LINE_BREAK.findall(run))
        if breaks > 1:
            return "\n" * len(run)
        return ("\n" if breaks else " ").rjust(len(run))

    return _WHITE_SPACE.sub(plain, text)
