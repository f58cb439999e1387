"""SMaT: a weighting of attention heads that was trained with the model."""

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
class Smat(Method):
    """The attention of heads, combined with weights that were trained with the model.

    The model must have been trained with it (`raison train ivra --form smat`). r = NORM over tokens of sum_h
    sparsemax(lambda)_h s_h (Fernandes et al. 2022, SMaT, section 3). s_h are the attention scores of head h before
    their softmax, averaged over the attending tokens, and h runs over the heads of all layers. IvRA compares with it as
    the coarse form of its module, which weighs only heads.

    `checkpoint` is the explainer's folder; None takes the one next to the model's files (FOLDER/smat).

    Returns (batch, tokens): shares, never negative, with sum 1 over the units' tokens. One forward pass.

    Guarantees nothing about the prediction: the scores are the same for every target.

    Differences from the paper's code: the criterion need not be simulatability, and the model's weights are trained
    with the coefficients, as in IvRA's comparison; special tokens get no share.

    Reference: fernandes2022learning.
    """

    checkpoint: Annotated[str | None, Setting(outside=True)] = None

    reference: ClassVar[str] = "fernandes2022learning"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED, Property.TRAINED})
    passes: ClassVar[str] = "1 forward"

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return files_of(model.name, self.checkpoint, "smat")

    def check(self, model: LanguageModel) -> None:
        find(model, self.checkpoint, "smat")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        trained = find(problem.model, self.checkpoint, "smat")
        problem.note(TRAINED_FOR, [", ".join(trained.card.criteria) for _ in range(len(problem.encoding))])
        problem.count_forward()
        return trained.maps(problem.model, problem.encoding)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)
