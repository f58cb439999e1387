"""Why a model that scores pairs puts one document before another."""

from dataclasses import replace

from raison.core.targets.ranking import before
from raison.models.adapters.uses import Use
from raison.models.passes.outputs.reads import Difference, Join
from raison.models.passes.outputs.vectors import Nearer, Similarity
from raison.models.tokens.apart import ApartEncoder, Encoder, Read

WANTED = "a query and two documents"


def ranking(use: Use, pad_id: int) -> Use:
    """How a model of one number is used for texts (query, document, other document).

    A model that reads a pair at a time reads the query with each document; an embedding model reads all three apart.
    """
    inner: Encoder = use.encoder
    reads: tuple[Read, ...] = ((0, 1), (0, 2))
    join: Join = Difference()
    if isinstance(inner, ApartEncoder) and isinstance(use.join, Similarity):
        inner, reads, join = inner.inner, ((0,), (1,), (2,)), Nearer(use.join)
    encoder = ApartEncoder(inner, reads, pad_id, WANTED)
    return replace(use, encoder=encoder, head=replace(use.head, classes=(before(0, 1),)), join=join, strings=3)
