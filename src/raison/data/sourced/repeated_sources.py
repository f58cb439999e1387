"""The same questions with the source that answers them given twice: leaving out either of the two changes little."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Literal, get_args

from raison.core.errors import UnknownNameError
from raison.data.sourced.question import KnownSources

RepetitionKind = Literal["copy", "near copy"]

_SAME = {
    "began": "started",
    "also": "in addition",
    "large": "big",
    "many": "numerous",
    "several": "some",
    "about": "around",
    "because": "since",
    "however": "yet",
    "founded": "established",
    "built": "constructed",
    "became": "turned into",
    "often": "frequently",
    "while": "whereas",
    "but": "though",
    "until": "up to",
    "only": "just",
    "such as": "like",
    "during": "in the course of",
}
_WORD = re.compile(rf"\b({'|'.join(_SAME)})\b")
_LEADS = ("One account says: ", "As it is told: ", "A second text has it so: ", "For the record: ")


def repeated(known: Iterable[KnownSources], how: RepetitionKind, seed: int = 0) -> Iterator[KnownSources]:
    """Questions with a second source, at a random position, that says the same as the first gold source.

    - "copy": the same text.
    - "near copy": it begins with a lead-in, and some frequent words are replaced by synonyms. Names and the answer
      stay.

    Both sources are gold, and not `combined`: each of them is enough. Raises UnknownNameError.
    """
    if how not in get_args(RepetitionKind):
        raise UnknownNameError("sort of repetition", how, get_args(RepetitionKind))
    for one in known:
        random = Random(f"repeated {how} {seed} {one.question}")
        source = one.gold[0]
        again = f"{source} again"
        text = one.sources[source] if how == "copy" else _near(one.sources[source], one.answer, random)
        listed = list(one.sources.items())
        listed.insert(random.randint(0, len(listed)), (again, text))
        yield replace(one, sources=dict(listed), gold=(*one.gold, again))


def _near(text: str, answer: str, random: Random) -> str:
    parts = re.split(f"({re.escape(answer)})", text)
    changed = "".join(part if part == answer else _WORD.sub(lambda match: _SAME[match[0]], part) for part in parts)
    return random.choice(_LEADS) + changed
