"""The actual tokens of a prompt's label words after the prompt, checked once.

A word tokenized alone can have other tokens than the same word after a cue: a SentencePiece tokenizer gives "N" a
word-initial piece, and the N of "Label:N" another one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from raison.core.errors import LoadError
from raison.text.prompts import Prompt, Rendered

Ids = tuple[int, ...]

_PROBES = ("They left at noon", "It was (almost) 12!")
"""Two texts with different endings: the label words' tokens must not depend on the text."""


@dataclass(frozen=True, slots=True)
class Speller:
    """`tokenize` gives a string's tokens without special ones at its end; `shown` makes tokens readable.

    `unknown` is the unknown token, None if there is none.
    """

    tokenize: Callable[[str], Ids]
    shown: Callable[[Sequence[int]], str]
    unknown: int | None


def find_label_ids(prompt: Prompt, rendered: Rendered, speller: Speller) -> tuple[Ids, ...]:
    """Per class, the tokens of its label word; only the first if the prompt's scoring is "first".

    Costs four tokenizations for each class. Raises LoadError if a word merges with the cue, depends on the text, or
    cannot be distinguished from another.
    """
    label_ids = []
    for name, word in prompt.labels.items():
        what = f"the label word {word!r} of '{name}'"
        first, second = (_ids_behind(what, rendered.around(probe), word, speller) for probe in _PROBES)
        if first != second:
            raise LoadError(
                f"{what} is {speller.shown(first)} after one text and {speller.shown(second)} after another: end the "
                "query with a cue after {text}, such as a line 'Label:'."
            )
        if speller.unknown in first:
            raise LoadError(f"{what} is {speller.shown(first)}, which the tokenizer does not know: use another word.")
        label_ids.append(first[:1] if prompt.scoring == "first" else first)
    for one, other in combinations(range(len(label_ids)), 2):
        names = f"'{prompt.classes[one]}' and '{prompt.classes[other]}'"
        _check_apart(names, label_ids[one], label_ids[other], prompt.scoring == "first", speller)
    return tuple(label_ids)


def _ids_behind(what: str, string: str, word: str, speller: Speller) -> Ids:
    """The tokens that follow the prompt's own if the word comes after it."""
    before, whole = speller.tokenize(string), speller.tokenize(string + word)
    same = 0
    while same < min(len(before), len(whole)) and before[same] == whole[same]:
        same += 1
    if same < len(before):
        raise LoadError(
            f"{what} merges with the end of the prompt: {speller.shown(before[same:])} becomes "
            f"{speller.shown(whole[same:])}. End the cue without white space and begin the label word with it, or use "
            "another word."
        )
    if same == len(whole):
        raise LoadError(f"{what} has no token after the prompt with this tokenizer: use another word.")
    return whole[same:]


def _check_apart(names: str, one: Ids, other: Ids, first_only: bool, speller: Speller) -> None:
    shorter, longer = sorted((one, other), key=len)
    if longer[: len(shorter)] != shorter:
        return
    if first_only:
        raise LoadError(
            f"the label words of {names} begin with the same token {speller.shown(one)}: score them whole "
            '(scoring = "word"), or use other words.'
        )
    fault = "are the same tokens" if one == other else f"are {speller.shown(longer)} and its own beginning"
    raise LoadError(f"the label words of {names} {fault} {speller.shown(shorter)}: use other words.")
