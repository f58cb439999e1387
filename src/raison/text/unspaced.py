"""Words of Japanese, Chinese and Thai, which are written without spaces: by the small models of BudouX."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import budoux

_RUN = regex.compile(
    r"(?V1)(?P<east>[[\p{L}\p{M}\p{Nl}]&&[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]]+)|(?P<thai>[[\p{L}\p{M}]&&\p{scx=Thai}]+)"
)
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_BEFORE, _AFTER = 3, 3
"""Number of characters before and after a position that a model reads."""
WINDOW = 512
"""Number of characters of a run that a model reads at once."""


def within_words(text: str) -> set[int]:
    """Places in runs of these scripts where no word begins.

    Han characters are Japanese in a text with kana, and Chinese elsewhere. The time grows linearly with the text.
    """
    han = "ja_word" if _KANA.search(text) else "zh-hans"
    places: set[int] = set()
    for run in _RUN.finditer(text):
        name = "th" if run["thai"] else han
        inside = range(run.start() + 1, run.end())
        places.update(set(inside).difference(run.start() + place for place in _beginnings(run[0], name)))
    return places


def _beginnings(run: str, name: str) -> Iterator[int]:
    """Where words begin. A long run is processed in windows, each with the characters of its context."""
    parser = _parser(name)
    for start in range(0, len(run), WINDOW):
        first = max(0, start - _BEFORE)
        place = first
        for word in parser.parse(run[first : start + WINDOW + _AFTER]):
            if start <= place < start + WINDOW and (place > first or not place):
                yield place
            place += len(word)


@cache
def _parser(name: str) -> "budoux.Parser":
    # Imported here: few texts need it.
    import budoux

    model = files("budoux").joinpath("models", f"{name}.json").read_text(encoding="utf-8")
    return budoux.Parser(json.loads(model))
