"""Reproducible vocabularies for small tokenizers: whole words, and pieces for the other words.

The trainers of the tokenizers library break ties at random, except for bytes: a model that is made again would then
read other tokens.
"""

import math
from collections import Counter
from collections.abc import Sequence

from tokenizers import Tokenizer

_LONGEST = 8
"""Maximum number of characters of a piece that is not a whole word."""
_WHOLE, _SINGLE = 0.75, 0.25
"""Maximum shares of the vocabulary for whole words and for single characters."""


def count_words(tokenizer: Tokenizer, lines: Sequence[str]) -> Counter[str]:
    """How often each word occurs, as the tokenizer normalizes and splits texts before it looks at its vocabulary."""
    words: Counter[str] = Counter()
    for line in lines:
        plain = tokenizer.normalizer.normalize_str(line)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain))
    return words


def choose_pieces(words: Counter[str], inner: str, room: int) -> list[tuple[str, float]]:
    """At most `room` pieces with the logarithms of their shares; `inner` goes before those that begin no word.

    Words that occur twice or more come first, by their number; then every character; the remaining room goes to the
    pieces that save most tokens in the other words.
    """
    ranked = sorted(words, key=lambda word: (-words[word], word))
    whole = [word for word in ranked if words[word] > 1][: int(_WHOLE * room)]
    known = set(whole)
    counts = Counter({word: words[word] for word in whole})
    single = _parts(words, inner, 1, 1)
    rare = _parts(Counter({word: number for word, number in words.items() if word not in known}), inner, 2, _LONGEST)
    for counted, most in ((single, int(_SINGLE * room)), (rare, room)):
        order = sorted(counted, key=lambda piece: (-counted[piece] * len(piece.removeprefix(inner)), piece))
        for piece in order[:most]:
            if len(counts) < room:
                counts.setdefault(piece, counted[piece])
    total = counts.total()
    return [(piece, math.log(number / total)) for piece, number in counts.items()]


def _parts(words: Counter[str], inner: str, shortest: int, longest: int) -> Counter[str]:
    """How often each part of `shortest` to `longest` characters occurs in words."""
    counts: Counter[str] = Counter()
    for word, number in words.items():
        for start in range(len(word)):
            for end in range(start + shortest, min(start + longest, len(word)) + 1):
                counts[(inner if start else "") + word[start:end]] += number
    return counts
