"""Words and sentences of a text, as character spans."""

import string
import unicodedata
from bisect import bisect_right
from itertools import groupby, pairwise

import regex
import sentencex

from raison.text.surrogates import without_surrogates
from raison.text.unspaced import within_words

CharacterSpan = tuple[int, int]

_WORD_BOUNDARY = regex.compile(r"(?wV1)\b")
_CLUSTER = regex.compile(r"\X")
_WHITE_SPACE = regex.compile(r"\s+")
_LINE_BREAK = regex.compile(r"\R")
# Between flags, word boundaries ignore the usual characters; clusters do not.
_FLAG_OF_WORDS = regex.compile(r"(\p{RI})([\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+)(\p{RI})")
_FLAG_OF_CLUSTERS = regex.compile(r"(\p{RI})()(\p{RI})")
_STAND_IN = "\u00a7\\2\u0301"
"""Replaces a flag: a character that does not combine with others, and an accent on it."""

WINDOW = 16_384
"""Number of characters searched for sentences at once, and the maximum length of a sentence."""


def word_spans(text: str) -> list[CharacterSpan]:
    """Words by the default rules of UAX #29, with a run of one punctuation mark ("...") as one word.

    Every character that is not white space lies in exactly one span. Japanese, Chinese and Thai, which are written
    without spaces, are split by raison.text.unspaced; other such scripts (Lao, Khmer, Burmese) by the default rules,
    one cluster each.
    """
    # The word rules alone would cut a few clusters in two, such as a Thai consonant from its vowel SARA AM.
    clusters = {match.end() for match in _CLUSTER.finditer(without_flags(_FLAG_OF_CLUSTERS, text))}
    boundaries = {match.start() for match in _WORD_BOUNDARY.finditer(without_flags(_FLAG_OF_WORDS, text))}
    cuts = sorted((boundaries & clusters) - within_words(text) | {0, len(text)})
    spans: list[CharacterSpan] = []
    for start, end in pairwise(cuts):
        start, end = trim(text, start, end)
        if spans and spans[-1][1] == start and _is_mark(text[start:end]) and _repeats(text, spans[-1], text[start]):
            spans[-1] = (spans[-1][0], end)
        elif start < end:
            spans.append((start, end))
    return spans


def sentence_spans(text: str, language: str = "en") -> list[CharacterSpan]:
    """Sentences, each a run of whole words; the white space between them belongs to none.

    A paragraph of more than WINDOW characters is processed in parts, each of which begins at a found sentence start. A
    longer sentence is cut after a word. The time therefore grows linearly with the text.
    """
    ends = _sentence_ends(_plain_spaces(without_surrogates(text)), language)
    spans = []
    for _, words in groupby(word_spans(text), key=lambda word: bisect_right(ends, word[0])):
        inside = list(words)
        spans.append((inside[0][0], inside[-1][1]))
    return spans


def without_flags(flag: regex.Pattern[str], text: str) -> str:
    """The text with stand-ins for flags: the rules count the letters before each letter of a run of flags."""
    return flag.sub(_STAND_IN, text)


def _sentence_ends(text: str, language: str) -> list[int]:
    """Where sentences end, in order. sentencex takes time quadratic in a paragraph's sentences."""
    ends: list[int] = []
    start = 0
    while start < len(text):
        piece = text[start : start + WINDOW]
        boundaries = [boundary["end_index"] for boundary in sentencex.get_sentence_boundaries(language, piece)]
        if start + WINDOW < len(text):
            # Each paragraph is processed alone, so sentences up to its end are final. Elsewhere, later text may still
            # change the last ones, such as the second mark of a quotation.
            certain = max(piece.rfind("\n\n") + 2, 3 * WINDOW // 4)
            boundaries = [end for end in boundaries if 0 < end <= certain] or [WINDOW]
        ends += [start + end for end in boundaries]
        start += boundaries[-1] if start + WINDOW < len(text) else WINDOW
    return ends


def trim(text: str, start: int, end: int) -> CharacterSpan:
    """The span without the white space at its two ends; empty if it has nothing else."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())


def merged(spans: list[CharacterSpan]) -> list[CharacterSpan]:
    """The same characters as disjoint spans in order: spans that overlap become one."""
    disjoint: list[CharacterSpan] = []
    for start, end in sorted(spans):
        if disjoint and start < disjoint[-1][1]:
            disjoint[-1] = (disjoint[-1][0], max(end, disjoint[-1][1]))
        else:
            disjoint.append((start, end))
    return disjoint


def _is_mark(word: str) -> bool:
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word).startswith("P"))


def _repeats(text: str, span: CharacterSpan, mark: str) -> bool:
    # The two ends suffice: a word that starts and ends with a punctuation mark contains nothing else, except accents.
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
