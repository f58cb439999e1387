"""A trained attribution model: found, checked against the explained model, and used for maps."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.masking.attribution import AttributionBatch, Tuning, tuned_maps
from raison.masking.soft import Prediction
from raison.masking.substitutes import Substitutes
from raison.models.derived import explainers, trained_masks
from raison.models.derived.attributor import Attributor
from raison.models.derived.belonging import check_fits
from raison.models.derived.trained_masks import MaskCard, MaskGoal
from raison.numerics.losses.attributive_masking import LossWeights

KIND = "aml"


@dataclass(frozen=True, slots=True, eq=False)
class Explainer:
    """An attribution model at its best for one metric, and how its masks are made."""

    attributor: Attributor
    card: MaskCard
    metric: str
    substitutes: Substitutes

    @property
    def goal(self) -> MaskGoal:
        """The training's record for this metric."""
        return self.card.goals[self.metric]

    @property
    def weights(self) -> LossWeights:
        """The losses' weights that were found for this metric."""
        return LossWeights(**self.goal.weights)

    def tuning(self, steps: int, learning_rate: float | None) -> Tuning:
        """How it is fine-tuned on a text; with None, at the rate of its training."""
        rate = learning_rate or self.goal.learning_rate
        return Tuning(steps, rate, self.weights, self.card.size)  # type: ignore[arg-type]

    def maps(
        self,
        model: LanguageModel,
        encoding: Encoding,
        prediction: Prediction,
        tuning: Tuning,
        rngs: Sequence[np.random.Generator],
    ) -> Float[Tensor, "maps batch units"]:
        """The maps of all texts before each step of fine-tuning and after the last.

        Texts of similar length are tuned together.
        """
        steps, widest = tuning.steps, max(encoding.unit_counts)
        maps = torch.zeros(steps + 1, len(encoding), widest, dtype=torch.float64)

        def run(rows: list[int]) -> Float[Tensor, "maps rows units"]:
            part, wanted = encoding.select(rows), prediction.select(rows)
            reading = AttributionBatch.of(self.attributor, part, self.card.merge)  # type: ignore[arg-type]
            if not steps:
                with torch.no_grad():
                    return reading.shares(wanted.probabilities)[None].double().cpu()
            # Copies: if memory runs out, the same numbers are drawn again.
            draws = [copy.deepcopy(rngs[row]) for row in rows]
            masks = self.substitutes.masks(model, part, wanted, draws, self.attributor.substitute)
            return torch.stack(list(tuned_maps(reading, masks, tuning))).double().cpu()

        with self.attributor.quiet():
            for rows, some in self._in_batches(model, encoding, steps, run):
                maps[:, rows, : some.shape[2]] = some
        return maps

    def masked_texts(self) -> int:
        """Masked versions of a text that one step of fine-tuning reads."""
        return (self.weights.prediction > 0) + (self.weights.inverse > 0)

    def _in_batches(
        self, model: LanguageModel, encoding: Encoding, steps: int, run: Callable[[list[int]], Tensor]
    ) -> Iterable[tuple[list[int], Tensor]]:
        if steps and not self.attributor.stacks:
            return (([row], run([row])) for row in range(len(encoding)))
        return model.ask(Passes).in_batches(encoding, run)


def find(model: LanguageModel, checkpoint: str | None, metric: str | None) -> Explainer:
    """The explainer in a folder, or the model's usual one, checked against the model once.

    Raises LoadError if it is missing or broken, UnsupportedError if it belongs to another model, InputError for a
    metric that it was not trained for.
    """
    explainers.check_whole_texts(model, "aml")
    folder = explainers.usual_folder(model.name, KIND) if checkpoint is None else Path(checkpoint)
    card = trained_masks.read_card(folder, model.name)
    name = trained_masks.goal_of(card, metric, folder)

    def checked() -> Explainer:
        check_fits(card, model, folder)
        attributor = trained_masks.load_attributor(folder, card, name, model)
        return Explainer(attributor, card, name, Substitutes.of(model, card.masking, card.filler))

    return explainers.checked_once(model, folder, folder / card.goals[name].file, checked, name)
