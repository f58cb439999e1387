"""The loss of attributive masking."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor, nn

from raison.numerics.losses.attributive_masking import LossWeights, MaskSize, check_mask_size
from raison.training.loop.objective import Objective, TrainingBatch


@dataclass(frozen=True)
class AttributiveMasking(Objective):
    """Mean over the batch of lambda_p L_p + lambda_a L_a + lambda_inv L_inv (Barkan et al. 2024, AML, equation 4).

    L_p (`weights.prediction`) keeps the prediction under the mask. L_inv (`weights.inverse`) loses it under the inverse
    mask. L_a (`weights.size`) makes the mask small: its cross-entropy with an empty one, or its mean ("l1"). The
    paper's ablations are weights of zero: Xpred is prediction=0, Xinv is inverse=0; their passes are skipped.

    The module is called with the batch's rows, the weights and the kind, and returns one loss per text, in nats.
    """

    weights: LossWeights = field(default_factory=LossWeights)
    size: MaskSize = "cross_entropy"

    def __post_init__(self) -> None:
        check_mask_size(self.size)

    @property
    def by_row(self) -> bool:
        return True

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        """The loss in nats per text."""
        return module(batch.inputs["rows"], self.weights, self.size).mean()
