"""Explanations of rankings: why one document comes before another for a query."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from raison.core.errors import InputError
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.core.note_names import RANKING
from raison.core.results.explanation import Explanation
from raison.core.targets.ranking import Ranked, before, is_ranked, settled
from raison.data.dataset import Dataset
from raison.models.tokens.token_rows import name_of as name_of_text

Ranking = tuple[str, list[str]]
"""A query, and the documents that a model ranks for it."""


def fitting(model: LanguageModel, texts: Iterable[Given]) -> LanguageModel:
    """The model, or its ranker if the texts are queries with two documents. Raises InputError for a mixture."""
    ranked = [is_ranked(plain(text)) for text in texts]
    if not any(ranked) or model.strings == 3:
        return model
    if not all(ranked):
        name = name_of_text(ranked.index(False), len(ranked))
        raise InputError(
            f"{name} is not a query with two documents, but other entries are: explain them in separate calls."
        )
    return model.ranker


def at_hand(texts: Any) -> Any:
    """The texts, as a list if they can be gone through only once: whether they are rankings is looked at first."""
    return list(texts) if isinstance(texts, Iterator) else texts


def read_ranked(given: Any) -> tuple[list[Ranked], bool] | None:
    """Queries, each with several documents, and whether a single one was given; None for other texts.

    Several are a list, an array or a column of a table: not what can be gone through only once (`at_hand`).
    """
    if _is_one(given):
        return [_ranked(*given)], True
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], tuple):
        raise InputError(
            "a string and a tuple are neither a pair nor a ranking: give a query with a list of documents, (query, "
            "[document, ...]), or a list of texts."
        )
    if isinstance(given, str | bytes | Mapping | Dataset | Iterator) or not isinstance(given, Iterable):
        return None
    if getattr(given, "ndim", 1) != 1:  # a single value of numpy, or a table
        return None
    entries = list(given)
    if not any(map(_is_one, entries)):
        return None
    for place, one in enumerate(entries):
        if not _is_one(one):
            raise InputError(
                f"{name_of_text(place, len(entries))} is {one!r:.60}, but other entries are a query with a list of "
                "documents: explain them in separate calls."
            )
    return [_ranked(*one) for one in entries], False


def pairs_of(
    model: LanguageModel, ranked: Sequence[Ranked], target: object, truncate: bool
) -> list[tuple[tuple[int, int], tuple[float, ...]]]:
    """For each ranking, the two documents to compare, and the numbers of all documents, with one pass each."""
    model.ranker  # noqa: B018 - refuses a model that does not rank
    texts: list[Text] = [(one.query, document) for one in ranked for document in one.documents]
    encoding = model.encode(texts, "word", truncate)
    numbers = torch.cat(model.masked_logits(encoding, encoding.whole, model.removals[0]))[:, 0].tolist()
    pairs = []
    for one in ranked:
        scores = tuple(numbers[: len(one.documents)])
        del numbers[: len(one.documents)]
        pairs.append((settled(target, scores), scores))
    return pairs


def leading_pairs(model: LanguageModel, texts: Any, truncate: bool) -> Any:
    """Of rankings, each query with its first two documents; other texts are unchanged. Takes a pass per document."""
    texts = at_hand(texts)
    ranked = read_ranked(texts)
    if ranked is None:
        return texts
    chosen = pairs_of(model, ranked[0], None, truncate)
    return [one.pair(*documents) for one, (documents, _) in zip(ranked[0], chosen, strict=True)]


def named(e: Explanation, first: int, second: int, scores: Sequence[float]) -> Explanation:
    """The explanation in the ranking's own terms."""
    target = before(first, second)
    notes = e.notes | {RANKING: list(scores)}
    return replace(e, target=target, classes=(target,), notes=notes)


def unnamed(e: Explanation) -> Explanation:
    """The explanation in the ranker's terms, which only knows two documents; other explanations are unchanged."""
    return replace(e, target=before(0, 1), classes=(before(0, 1),)) if is_ranked(e.text) else e


def _is_one(given: object) -> bool:
    """Documents may be a list, an array or a column of a table; a tuple of strings could be a pair."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        return False
    documents = given[1]
    return isinstance(documents, Iterable) and not isinstance(
        documents, str | bytes | tuple | set | frozenset | Mapping | PartedText
    )


def _ranked(query: str, documents: Iterable[object]) -> Ranked:
    documents = list(documents)
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, str):
            raise InputError(f"document {number} is {document!r:.60}: it must be a string.")
    return Ranked(str(query), tuple(str(document) for document in documents))
