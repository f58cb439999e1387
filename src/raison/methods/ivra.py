"""IvRA: an explanation from attention that was trained with the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import TRAINED_FOR
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.models.derived.explainers import files_of
from raison.models.derived.trained_attention import find


@dataclass(frozen=True)
class Ivra(Method):
    """The explanation that trained coefficients compute from the model's own queries and keys.

    For a model that was trained to explain itself (`raison train ivra`; Xie et al. 2024, IvRA, section 2.1). With NORM
    in {softmax, sparsemax}, per layer l and head h: q~ = NORM(omega_Q * q), k~ = NORM(omega_K * k) over the features of
    a head (equations 1 and 2); psi_m = 1/L sum_n q~_n . k~_m (equation 4); Psi_l = NORM of lambda_h psi over heads and
    tokens together, summed over heads (equation 3); r = NORM of eta_l Psi_l over layers and tokens together, summed
    over layers (equation 5).

    `checkpoint` is the explainer's folder; None takes the one next to the model's files (FOLDER/ivra).

    Returns (batch, tokens): shares of the explanation, never negative, with sum 1 over the units' tokens.

    One forward pass, which can be the prediction's own.

    Guarantees nothing about the prediction: the scores are the same for every target, and as good as the training was
    for its criterion. They explain the model that was trained with them, not the original one.

    Choices where the paper is silent: the axes over which NORM acts (as above; over layers alone r would be 1
    everywhere). Padding, special and prompt tokens are excluded from every NORM (trained with `over="tokens"`: only
    padding is). Queries and keys are those that attention uses, after position encoding, with keys repeated to as many
    heads as queries. The mean over n is taken before the product, which changes only the cost.

    Reference: xie2024ivra.
    """

    checkpoint: Annotated[str | None, Setting(outside=True)] = None

    reference: ClassVar[str] = "xie2024ivra"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED, Property.TRAINED})
    passes: ClassVar[str] = "1 forward"

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return files_of(model.name, self.checkpoint, "ivra")

    def check(self, model: LanguageModel) -> None:
        find(model, self.checkpoint, "ivra")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        trained = find(problem.model, self.checkpoint, "ivra")
        problem.note(TRAINED_FOR, [", ".join(trained.card.criteria) for _ in range(len(problem.encoding))])
        problem.count_forward()
        return trained.maps(problem.model, problem.encoding)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)
