"""Harmless edits of a text: case, contractions, synonyms, a sentence without content."""

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import regex

from raison.core.draws import generator_for
from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.unit import Text, joined, segments
from raison.text.edits.edited import Edited
from raison.text.segment import CharacterSpan, word_spans

__all__ = ["EDITS", "ORDER", "Edited", "check_edits", "edit"]

ORDER = "order"
"""The edit of a prompt that swaps two of its sources, see raison.text.edits.sources. It does not apply to texts."""

Change = tuple[CharacterSpan, str]
"""A span of a string, and its replacement."""

_VOWELS = "aeiou"
_ENDS = (".", "!", "?", "…")
_CLOSING = "\"'”’)]"


def edit(name: str, text: Text) -> Edited | None:
    """The text after one edit of this kind, or None if the text has no place for it.

    If there are several places, one is drawn, depending only on the text. In a pair, the first string that allows the
    edit is edited; a neutral sentence goes to the premise, which may contain extra statements. Raises
    UnknownNameError.
    """
    check_edits((name,))
    strings = segments(text)
    for number, string in enumerate(strings):
        changes = list(EDITS[name](string)) if string.strip() and name != ORDER else []
        if changes:
            (start, end), written = changes[generator_for(name, text).integers(len(changes))]
            edited = [*strings[:number], string[:start] + written + string[end:], *strings[number + 1 :]]
            return Edited(joined(text, edited), number, (start, end), (start, start + len(written)))
    return None


def check_edits(names: tuple[str, ...]) -> None:
    """Raise UnknownNameError or InputError unless these are different names of edits, at least one."""
    known = (*EDITS, ORDER)
    for name in names:
        if name not in known:
            raise UnknownNameError("edit", name, known)
    if not names or len(set(names)) < len(names):
        raise InputError(f"edits are {names}: name at least one of {', '.join(known)}, each once.")


def _casing(string: str) -> Iterator[Change]:
    """Change the case of a word's first letter, except in words in capitals, which may not be words."""
    for start, end in word_spans(string):
        word = string[start:end]
        if len(word) > 1 and word.isalpha() and (word.islower() or word.istitle()):
            swapped = word[0].swapcase()
            # Some letters have no other case, or turn into two letters.
            if len(swapped) == 1 and swapped != word[0]:
                yield (start, end), swapped + word[1:]


def _contraction(string: str) -> Iterator[Change]:
    """Two words as one, or one as two."""
    for pattern, written in _contractions(_is_spaced(string)):
        for match in pattern.finditer(string):
            yield match.span(), _cased(written, match[0])


def _synonym(string: str) -> Iterator[Change]:
    """Replace a word by another, unless "a" or "an" before it would become wrong."""
    table = _synonyms()
    for match in _synonym_pattern().finditer(string):
        written = table[match[0].lower()]
        before = string[: match.start()].split()
        has_article = bool(before) and before[-1].lower() in ("a", "an")
        if not has_article or (written[0] in _VOWELS) == (match[0][0].lower() in _VOWELS):
            yield match.span(), _cased(written, match[0])


def _neutral(string: str) -> Iterator[Change]:
    """A sentence after the last one, in the string's own style."""
    end = len(string.rstrip())
    spaced = _is_spaced(string)
    mark = "" if string[:end].rstrip(_CLOSING).rstrip().endswith(_ENDS) else (" ." if spaced else ".")
    for sentence in _words()["neutral"]:
        written = sentence if any(letter.isupper() for letter in string) else sentence.lower()
        if spaced:
            written = written.removesuffix(".") + " ."
        yield (end, end), f"{mark} {written}"


EDITS: dict[str, Callable[[str], Iterator[Change]]] = {
    "casing": _casing,
    "contraction": _contraction,
    "synonym": _synonym,
    "neutral": _neutral,
}
"""By name, functions that return all changes of one string."""


def _is_spaced(string: str) -> bool:
    """Whether punctuation marks are separate words, as in tokenized texts: "it is n't good ." """
    return regex.search(r"\s(?:[.,;!?]|'\w+|n't)(?:\s|$)", string) is not None


def _cased(written: str, like: str) -> str:
    """The replacement with the case of the original's first letter."""
    return written[0].upper() + written[1:] if like[0].isupper() else written


@cache
def _contractions(spaced: bool) -> tuple[tuple[regex.Pattern[str], str], ...]:
    """Patterns and their replacements, in both directions for every contraction."""
    patterns = []
    for full, word, rest in _words()["contractions"]:
        joined = word + (" " if spaced else "") + rest
        # Only "not" is contracted at the end of a clause ("yes, it is.").
        follows = r"\b" if rest == "n't" else r"(?=\s+\w)"
        gap = r"\s+".join(full.split())
        patterns.append((_pattern(rf"\b{gap}{follows}"), joined))
        # "It's been" is "it has been".
        follows = r"(?!\s+(?:been|got|had|become)\b)" if rest == "'s" else ""
        ending = rest.replace("'", "['’]")
        patterns.append((_pattern(rf"\b{word}\s?{ending}\b{follows}"), full))
    return tuple(patterns)


@cache
def _synonyms() -> dict[str, str]:
    words = _words()
    table = dict(words["synonyms"]) | {second: first for first, second in words["synonyms"]}
    return dict(words["one_way"]) | table


@cache
def _synonym_pattern() -> regex.Pattern[str]:
    # A hyphen makes it a part of another word.
    return _pattern(rf"(?<![\w-])(?:{'|'.join(sorted(_synonyms(), key=len, reverse=True))})(?![\w-])")


def _pattern(expression: str) -> regex.Pattern[str]:
    return regex.compile(expression, regex.IGNORECASE)


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
