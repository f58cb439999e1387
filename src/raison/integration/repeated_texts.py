"""Many paths of the same texts as one problem, so that they share batches."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.dims import Embeddings
from raison.core.problem import Evaluations, Ledger, Problem

RowT = TypeVar("RowT")

NUMBERS = 1 << 24
"""Features of embeddings that are in memory at a time: 64 MB in single precision."""


def portions(rows: Sequence[RowT], numbers: int) -> Iterator[Sequence[RowT]]:
    """Consecutive rows that fit into memory together if each takes `numbers` numbers; at least one."""
    size = max(1, NUMBERS // numbers)
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def repeated(problem: Problem, texts: Sequence[int]) -> Problem:
    """The problem on the given texts, each as often as it is named, with its own ledger; see `charge`."""
    rows = list(texts)
    encoding, target = problem.encoding.select(rows), problem.target.rows(torch.as_tensor(rows))
    return Problem(problem.model, encoding, target, problem.removal, Ledger.empty(len(rows)), Evaluations())


def charge(problem: Problem, texts: Sequence[int], part: Problem) -> None:
    """Add the passes of `part`, made by `repeated` from the same texts, to those of the texts themselves."""
    for text, forwards, backwards in zip(texts, part.ledger.evaluations, part.ledger.gradients, strict=True):
        problem.ledger.evaluations[text] += forwards
        problem.ledger.gradients[text] += backwards


def own_embeddings(problem: Problem) -> Embeddings:
    """Word embeddings of the tokens, without gradients; a text that is repeated is looked up once."""
    encoding = problem.encoding
    known: dict[tuple[bytes, bytes], int] = {}
    rows = zip(encoding.input_ids.numpy(), encoding.attention_mask.numpy(), strict=True)
    owners = [known.setdefault((ids.tobytes(), mask.tobytes()), len(known)) for ids, mask in rows]
    first = [owners.index(number) for number in range(len(known))]
    return problem.model.ask(WordEmbeddings).embed(encoding.select(first)).detach()[owners]
