"""The usual loss of a classifier."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from raison.training.loop.objective import Objective, TrainingBatch


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Mean of -log p(label) over the batch, p being the softmax of the module's logits.

    `smoothing` (0 to 1) is the share of the label's mass that is spread evenly over all classes.
    The module is called with the dictionary of inputs and returns logits of shape (rows, classes).
    """

    smoothing: float = 0.0

    @property
    def by_row(self) -> bool:
        return True

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        """The loss in nats per row."""
        return functional.cross_entropy(module(batch.inputs), batch.labels, label_smoothing=self.smoothing)
