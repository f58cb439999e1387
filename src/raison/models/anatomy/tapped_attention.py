"""A network's attention, and which of its rows the prediction is made from."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.dims import Logits
from raison.core.inputs.encoding import Encoding
from raison.models.anatomy.pooling import find_pooling, prediction_rows
from raison.models.families import Pooling
from raison.models.passes.forward import ForwardPasses
from raison.models.stack.tap import Tap, tap


class TappedAttention(ReadableAttention):
    """Attention through the tap."""

    def __init__(self, passes: ForwardPasses, pooling: Pooling | None) -> None:
        """`pooling` is None if it has to be found from gradients, when it is first needed."""
        self._passes = passes
        self._pooling = pooling

    def tap(
        self, layers: Sequence[int] | None = None, record: Sequence[str] = ("probabilities",)
    ) -> AbstractContextManager[Tap]:
        return tap(self._passes.network.core, record, layers)

    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        if encoding.spans is not None:
            rows = torch.nn.functional.one_hot(encoding.spans, encoding.input_ids.shape[1]).float()
            return rows.mean(1) if encoding.reading is None else (rows * encoding.reading.weights[..., None]).sum(1)
        if self._pooling is None:
            # Even inside a caller's no_grad or inference mode.
            with torch.inference_mode(False), torch.enable_grad():
                self._pooling = find_pooling(self._passes.network.core, encoding.select([0]), self._grown_logits)
        return prediction_rows(self._pooling, encoding)

    def _grown_logits(self, encoding: Encoding) -> Logits:
        """Logits with a graph, even if every parameter is frozen."""
        return self._passes.logits(encoding, self._passes.network.embed(encoding).requires_grad_())
