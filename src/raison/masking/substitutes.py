"""The replacements of masked tokens: the paper's masking choices that also work for soft masks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.step_logits import StepLogits
from raison.core.dims import Embeddings
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.removals import IN_PLACE_NAMES, InPlace
from raison.masking.soft import Prediction, SoftMasks
from raison.models.adapters.classifier import text_classifier
from raison.models.derived.masked_lm import FillIn

Masking = Literal[InPlace, "random", "predicted", "learned"]
"""What replaces a token: a designated token, a random one, one that fits the context, or a learned embedding."""


@dataclass(frozen=True, slots=True, eq=False)
class Substitutes:
    """Makes the embeddings that replace masked tokens. `filler` predicts tokens from their context."""

    masking: Masking
    filler: FillIn | None = None

    @classmethod
    def of(cls, model: LanguageModel, masking: str, filler: str | None) -> "Substitutes":
        """Raises InputError or LoadError if tokens are to be predicted and no model can predict them."""
        name = masking_name(model, masking)
        if name != "predicted":
            return cls(name)
        reading = text_classifier(model)
        if filler is None or reading is None:
            raise InputError(
                "masking 'predicted' needs a masked language model with the explained model's tokenizer: --filler NAME."
            )
        return cls(name, FillIn(filler, reading.tokenizer))

    def masks(
        self,
        model: LanguageModel,
        encoding: Encoding,
        prediction: Prediction,
        rngs: Sequence[np.random.Generator],
        learned: Float[Tensor, " hidden"] | None,
    ) -> SoftMasks:
        """Texts ready to be masked.

        `learned` is the attribution model's own embedding if it has one; gradients flow into it.
        """
        substitutes = self.embeddings(model, encoding, rngs) if learned is None else learned[None, None]
        return SoftMasks(model, encoding, model.ask(WordEmbeddings).embed(encoding).detach(), substitutes, prediction)

    def embeddings(self, model: LanguageModel, encoding: Encoding, rngs: Sequence[np.random.Generator]) -> Embeddings:
        """One embedding for each token, without gradients: of a designated, a random or a predicted token.

        Random tokens are drawn from those of all units of the text, with the text's own generator.
        """
        words = model.ask(WordEmbeddings)
        if self.masking in IN_PLACE_NAMES:
            return words.embed(words.removed(encoding, self.masking)).detach()
        ids = self.filler.fill(encoding) if self.filler is not None else _shuffled(encoding, rngs)
        return words.embed(replace(encoding, input_ids=ids)).detach()


def masking_name(model: LanguageModel, wanted: str | None) -> Masking:
    """The replacement of masked tokens: by default the mask token, otherwise three dots, otherwise the unknown token.

    A causal model was never trained on a mask token, so there it is the last choice.

    Raises UnknownNameError, and UnsupportedError if the tokenizer has no such token.
    """
    if wanted is not None and wanted not in get_args(Masking):
        raise UnknownNameError("masking", wanted, get_args(Masking))
    usual = [name for name in IN_PLACE_NAMES if name != "pad" and name in model.removals]
    if model.offers(StepLogits):
        usual.sort(key="mask".__eq__)
    others = ["random", "learned", *(["pad"] if "pad" in model.removals else [])]
    if wanted is None and not usual:
        raise UnsupportedError(
            f"{model.name} has no token to mask with",
            ["its tokenizer has no mask token, none for three dots and no unknown token"],
            f"Choose another replacement: --masking {' or '.join(others)}.",
        )
    if wanted in IN_PLACE_NAMES and wanted not in model.removals:
        raise UnsupportedError(
            f"masking '{wanted}' is not possible",
            [f"the tokenizer has no {wanted} token"],
            f"Use {', '.join(repr(name) for name in dict.fromkeys([*usual, *others]))}.",
        )
    return wanted or usual[0]  # type: ignore[return-value]


def _shuffled(encoding: Encoding, rngs: Sequence[np.random.Generator]) -> torch.Tensor:
    """Every token of a unit replaced by a token of any unit of the same text, drawn at random."""
    ids = encoding.input_ids.clone()
    for row, rng in enumerate(rngs):
        scored = encoding.scored[row]
        pool = encoding.input_ids[row, scored].numpy()
        ids[row, scored] = torch.from_numpy(rng.choice(pool, len(pool)))
    return ids
