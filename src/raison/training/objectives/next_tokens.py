"""The usual loss of a language model, on the tokens it should generate."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from raison.training.loop.objective import Objective, TrainingBatch


@dataclass(frozen=True)
class NextTokens(Objective):
    """Mean of -log p(token) over the labels, each after the tokens before it.

    The module is called with the dictionary of inputs and returns logits of shape (labels, vocabulary). One row of
    tokens has many labels, so parts of a batch cannot be computed separately.
    """

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        """Nats per token."""
        return functional.cross_entropy(module(batch.inputs), batch.labels)
