"""Nearest neighbours of words in a model's embedding table."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, joined, segments
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.text.edits.edited import Edited

_MARKS = ("Ġ", "▁")
"""The marks of word beginnings in the two kinds of tokenizers that have them."""


@dataclass(frozen=True, slots=True)
class WordPlace:
    """A word of a text that is one token: which token, its characters in the text's string number `segment`.

    `word` is the id of the token that is this word inside a text.
    """

    position: int
    segment: int
    start: int
    end: int
    word: int


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The whole words among a model's tokens, and the directions of their embeddings. Made once per model."""

    words: dict[int, str]
    """Id of a token that is a word -> the word, in letters alone."""
    ids: Tensor
    """The same ids, ascending."""
    directions: Tensor
    """(word, hidden), of length 1."""

    @classmethod
    def of(cls, model: LanguageModel) -> "Neighbours":
        """Raises UnsupportedError for a model without an embedding table, or without whole words among its tokens."""
        if not isinstance(model, Classifier):
            raise UnsupportedError(f"words of {model.name} have no neighbours", ["it exposes no embedding table"])
        words = _words(model)
        if len(words) < 2:
            raise UnsupportedError(f"words of {model.name} have no neighbours", ["none of its tokens is a whole word"])
        ids = torch.tensor(sorted(words))
        with torch.no_grad():
            rows = model.embedding_table(ids.to(model.device)).float().cpu()
        return cls(words, ids, torch.nn.functional.normalize(rows, dim=-1))

    def nearest(self, token: int, count: int) -> list[str]:
        """The `count` words of the greatest cosine with a word, of the same capitalisation, the nearest first."""
        index = int(torch.searchsorted(self.ids, token))
        order = (self.directions @ self.directions[index]).argsort(descending=True, stable=True).tolist()
        kind = _capitals(self.words[token])
        nearest: list[str] = []
        for place in order:
            word = self.words[int(self.ids[place])]
            if place != index and _capitals(word) == kind:
                nearest.append(word)
            if len(nearest) == count:
                break
        return nearest

    def places(self, encoding: Encoding) -> list[WordPlace]:
        """The words of a single text that consist of one token and have neighbours."""
        strings, spelled = segments(encoding.texts[0]), {name: token for token, name in self.words.items()}
        # A string that is read several times has its words once.
        places: dict[tuple[int, int], WordPlace] = {}
        ids, units, offsets = (part[0].tolist() for part in (encoding.input_ids, encoding.unit_ids, encoding.offsets))
        for position, (token, unit, (start, end)) in enumerate(zip(ids, units, offsets, strict=True)):
            if unit < 0:
                continue
            segment = encoding.units[0][unit].segment
            string = strings[segment]
            # Some tokenizers count the space before a word as part of it.
            start += len(string[start:end]) - len(string[start:end].lstrip())
            # At the beginning of a text, such a tokenizer writes the word without its mark, as another token.
            word = token if token in self.words else spelled.get(string[start:end], -1)
            if word >= 0 and _alone(string, start, end) and self.words[word].lower() == string[start:end].lower():
                places.setdefault((segment, start), WordPlace(position, segment, start, end, word))
        return list(places.values())


def replaced(given: Given, place: WordPlace, word: str) -> Given:
    """The text with one word replaced, capitalised like the old one."""
    text = plain(given)
    strings = list(segments(text))
    old = strings[place.segment]
    shown = _like(old[place.start : place.end], word)
    strings[place.segment] = old[: place.start] + shown + old[place.end :]
    whole = joined(text, strings)
    span = (place.start, place.start + len(shown))
    edited = Edited(whole, place.segment, (place.start, place.end), span)
    return edited.given(given.parts, PART) if isinstance(given, PartedText) else whole


def unchanged_shape(before: Encoding, after: Encoding, row: int) -> bool:
    """Whether a changed text has the same units as the single text `before`, each with the same number of tokens."""
    width = before.lengths[0]
    return after.lengths[row] == width and bool((after.unit_ids[row, :width] == before.unit_ids[0, :width]).all())


def _words(model: Classifier) -> dict[int, str]:
    tokenizer = model.tokenizer
    special = set(tokenizer.all_special_ids)
    vocabulary = {token: name for name, token in tokenizer.get_vocab().items() if token not in special}
    # Some tokenizers mark the beginnings of words, others their continuations ("##ing").
    marked = any(name.startswith(_MARKS) and len(name) > 1 for name in vocabulary.values())
    words = {}
    for token, name in vocabulary.items():
        if marked and not name.startswith(_MARKS):
            continue
        word = name.removeprefix("Ġ").removeprefix("▁")
        if word.isascii() and word.isalpha() and len(word) > 1:
            words[token] = word
    return words


def _alone(string: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches these characters."""
    around: Sequence[str] = (string[max(0, start - 1) : start], string[end : end + 1])
    return end > start and not any(sign.isalnum() for sign in around)


def _capitals(word: str) -> tuple[bool, bool]:
    """Whether a word begins with a capital, and whether it is all capitals."""
    return word[:1].isupper(), word.isupper()


def _like(old: str, word: str) -> str:
    """A word with the capitals of another, for tokenizers without capitals."""
    if old.isupper() and len(old) > 1:
        return word.upper()
    return word.capitalize() if old[:1].isupper() and word.islower() else word
