"""Questions whose gold sources are known, for evaluating citations of answers.

`known_sources(name)` makes them from SQuAD (CC BY-SA 4.0), or from made-up facts.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from raison.core.errors import UnknownNameError
from raison.data.sourced.articles import Article, ArticlePart, articles
from raison.data.sourced.exchanged import exchanged
from raison.data.sourced.passages import Passages, among_others
from raison.data.sourced.planted import planted
from raison.data.sourced.question import KnownSources, Passage
from raison.data.sourced.repeated_sources import repeated

__all__ = ["NAMES", "KnownSources", "Passage", "Passages", "known_sources"]

_Maker = Callable[[ArticlePart, Passages, int, Path | None], Iterator[KnownSources]]


def known_sources(
    name: str,
    limit: int,
    how: Passages | None = None,
    *,
    part: ArticlePart = "test",
    seed: int = 0,
    folder: Path | None = None,
) -> list[KnownSources]:
    """The first `limit` questions of a kind, or all if there are fewer.

    - "squad": a question with the passage that answers it, among others of the same article.
    - "squad_exchanged": the answer is exchanged for another one in all sources, so that the source has to be read.
    - "squad_copied", "squad_near_copied": the source that answers occurs twice, exactly or nearly.
    - "planted_single", "planted_combined", "planted_contradicting": made-up facts, see `planted`.

    `how` gives the number and the length of the other sources, `part` the articles of the questions ("train", "test",
    "xquad"), `folder` the place of SQuAD; made-up facts use only `how.others`. Raises UnknownNameError, and DataError
    if SQuAD's folder is missing.
    """
    if name not in _MAKERS:
        raise UnknownNameError("sort of known sources", name, _MAKERS)
    return list(islice(_MAKERS[name](part, how or Passages(), seed, folder), limit))


def _squad(part: ArticlePart, how: Passages, seed: int, folder: Path | None) -> Iterator[KnownSources]:
    return among_others(articles(part, folder), how, seed)


def _exchanged(part: ArticlePart, how: Passages, seed: int, folder: Path | None) -> Iterator[KnownSources]:
    every: tuple[Article, ...] = (*articles("train", folder), *articles("test", folder))
    return exchanged(_squad(part, how, seed, folder), every, seed)


_MAKERS: dict[str, _Maker] = {
    "squad": _squad,
    "squad_exchanged": _exchanged,
    "squad_copied": lambda part, how, seed, folder: repeated(_squad(part, how, seed, folder), "copy", seed),
    "squad_near_copied": lambda part, how, seed, folder: repeated(_squad(part, how, seed, folder), "near copy", seed),
    "planted_single": lambda _part, how, seed, _folder: planted("single", how.others, seed),
    "planted_combined": lambda _part, how, seed, _folder: planted("combined", how.others, seed),
    "planted_contradicting": lambda _part, how, seed, _folder: planted("contradicting", how.others, seed),
}
NAMES = tuple(_MAKERS)
