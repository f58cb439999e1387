"""Shapley values in one pass, by an attribution model that learned them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.errors import InputError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.core.targets.outputs import PROBABILITIES, Outputs
from raison.core.targets.target import probabilities
from raison.models.derived.amortized import KIND, Amortized, ValueReading, find
from raison.models.derived.explainers import files_of


@dataclass(frozen=True)
class AmortizedShap(Method):
    """Shapley values that a trained attribution model predicts from the text.

    phi_c = s G(x, y)_c, with G an encoder that gives each token a number for each class c, summed over the tokens of a
    unit, y the model's probabilities, and s the scale of its training. G was trained (`raison train amortized-shap`) to
    minimise the mean square of G_ic - phi_ic / s over units and classes, with phi estimated by `kernel_shap` from many
    passes of each training text (amortised Shapley values, Yang et al. 2023; Jethani et al. 2022 learn them without
    estimates).

    `checkpoint` is the explainer's folder; None takes the one next to the model's files (some demo models include one),
    or the one that was trained for the model's name.

    Returns (batch, units), signed, in units of what is explained. 1 forward pass of G.

    Guarantees nothing about single texts: G is as good as its training, and its scores need not add up to anything.
    Explains the quantity (`of`) and the removal that it was trained for, and no other. For units other than those of
    the training, the sums over tokens were never learned as such.

    Differences from the papers: G may add low-rank matrices to its backbone instead of training all of it, starts from
    the fine-tuned model's own encoder, and reads the model's probabilities; its output is not normalised to add up.

    Reference: yang2023efficient; jethani2022fastshap.
    """

    checkpoint: Annotated[str | None, Setting(outside=True)] = None

    reference: ClassVar[str] = "yang2023efficient"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({Passes})
    outputs: ClassVar[frozenset[Outputs]] = PROBABILITIES
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.TRAINED})
    passes: ClassVar[str] = "1 forward"

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return files_of(model.name, self.checkpoint, KIND)

    def check(self, model: LanguageModel) -> None:
        find(model, self.checkpoint)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        explainer, target = find(problem.model, self.checkpoint), problem.target
        if target.of != explainer.card.of:
            raise InputError(
                f"this explainer of amortized_shap was trained for of='{explainer.card.of}' and cannot explain "
                f"of='{target.of}': use of='{explainer.card.of}', or train another (raison train amortized-shap --of "
                f"{target.of})."
            )
        if problem.removal != explainer.card.removal:
            raise InputError(
                f"this explainer of amortized_shap was trained for removal='{explainer.card.removal}', not "
                f"'{problem.removal}': use removal='{explainer.card.removal}', or train another (--removal "
                f"{problem.removal})."
            )
        values = _values(problem, explainer)
        scores = _of_class(values, target.index)
        return scores if target.against is None else scores - _of_class(values, target.against)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)


def _of_class(values: Float[Tensor, "batch units classes"], index: Int[Tensor, " batch"]) -> Tensor:
    return values[torch.arange(len(values)), :, index]


def _values(problem: Problem, explainer: Amortized) -> Float[Tensor, "batch units classes"]:
    encoding, model = problem.encoding, problem.model
    reading = ValueReading.of(explainer.attributor, encoding)
    shares = probabilities(problem.predictions(), model.multi_label).float()
    values = torch.zeros(len(encoding), max(encoding.unit_counts), shares.shape[1], dtype=torch.float64)

    def run(rows: list[int]) -> Float[Tensor, "rows units classes"]:
        width = max(len(encoding.units[row]) for row in rows)
        return reading.select(rows, width).values(shares[rows])

    with torch.no_grad(), explainer.attributor.quiet():
        for rows, part in model.ask(Passes).in_batches(encoding, run):
            values[rows, : part.shape[1]] = part.double().cpu() * explainer.card.scale
    problem.count_forward()
    return values
