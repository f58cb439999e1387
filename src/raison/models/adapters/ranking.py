"""Why a model that scores pairs puts one document before another."""

from dataclasses import replace

from raison.core.targets.ranking import before
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.outputs.multi_input_outputs import Join, ReadDifference
from raison.models.passes.outputs.vectors import Nearer, VectorSimilarity
from raison.models.tokens.multi_input import Encoder, MultiInputEncoder, Read

WANTED = "a query and two documents"


def ranking(use: TaskSetup, pad_id: int) -> TaskSetup:
    """How a model of one number is used for texts (query, document, other document).

    A model of pairs reads the query with each document; an embedding model reads all three separately.
    """
    inner: Encoder = use.encoder
    reads: tuple[Read, ...] = ((0, 1), (0, 2))
    join: Join = ReadDifference()
    if isinstance(inner, MultiInputEncoder) and isinstance(use.join, VectorSimilarity):
        inner, reads, join = inner.inner, ((0,), (1,), (2,)), Nearer(use.join)
    encoder = MultiInputEncoder(inner, reads, pad_id, WANTED)
    return replace(use, encoder=encoder, head=replace(use.head, classes=(before(0, 1),)), join=join, strings=3)
