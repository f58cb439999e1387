"""Attribution models that predict Shapley values, saved in a folder: a card and one file of weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.core.settings.reading import Fields
from raison.jobs import disk
from raison.models.derived import cards, explainers
from raison.models.derived.attributor import Attributor
from raison.models.derived.belonging import check_fits
from raison.models.derived.low_rank import RowLinear
from raison.models.stack.eval_mode import drawing
from raison.models.tokens.alignment import Alignment, align

KIND = "amortized_shap"
COMMAND = "amortized-shap"
STATE = "values.safetensors"


@dataclass(frozen=True, slots=True)
class AmortizedCard:
    """The card of an attribution model that predicts Shapley values; MaskCard says what identifies a model.

    `of` is the quantity whose Shapley values it learned, with absent units replaced by `removal`; each value belongs to
    one `unit`. `scale` is the number that its output is multiplied by.
    """

    model: str
    classes: tuple[str, ...]
    vocabulary: str
    said: tuple[tuple[float, ...], ...]
    backbone: str
    rank: int | None
    of: str
    removal: str
    unit: Granularity
    scale: float
    provenance: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
    logits: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ValueReading:
    """Texts as an attribution model reads them, and how its tokens map to the explained units."""

    attributor: Attributor
    tokens: Encoding
    alignment: Alignment

    @classmethod
    def of(cls, attributor: Attributor, encoding: Encoding) -> "ValueReading":
        """The texts and units of an encoding of the explained model."""
        tokens = attributor.encode(encoding.texts)
        return cls(attributor, tokens, align(tokens, encoding.units))

    def select(self, rows: Sequence[int], units: int) -> "ValueReading":
        """The same for some of the texts; none of them has more than `units` units."""
        return ValueReading(self.attributor, self.tokens.select(rows), self.alignment.select(rows, units))

    def values(self, probabilities: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch units classes"]:
        """The predicted value of each unit for every class, in units of the card's scale: one pass.

        `probabilities` are the explained model's.
        """
        with self.attributor.alone():
            return self.alignment.summed(self.attributor.values(self.tokens, probabilities))


@dataclass(frozen=True, slots=True, eq=False)
class Amortized:
    """A trained attribution model with its card."""

    attributor: Attributor
    card: AmortizedCard


def new_predictor(model: LanguageModel, backbone: str, rank: int | None, seed: int = 0) -> Attributor:
    """An untrained attribution model with an output for each class; see explainers.new_attributor."""
    attributor = explainers.new_attributor(model, backbone, rank, learned=False, seed=seed)
    old = attributor.output
    with drawing(seed):
        attributor.output = RowLinear(old.weight.shape[-1], len(model.classes)).to(old.weight.device)
    return attributor


def write(folder: Path, card: AmortizedCard, state: Mapping[str, Tensor]) -> None:
    """Save the weights in half precision, and the card last: it marks a finished explainer."""
    disk.remove(folder / cards.FILE)
    explainers.write_weights(folder / STATE, state)
    cards.write_card(folder, card)


def read_card(folder: Path, model: str) -> AmortizedCard:
    """Raises LoadError for a missing card, with the way to train one for `model`, or a broken one."""
    lacking = (
        f"there is no trained explainer in {folder}: train one (raison train {COMMAND} --model {model} "
        "--data SET:SPLIT), or name its folder (amortized_shap(checkpoint='FOLDER'))."
    )
    return cards.read_card(folder, _card, lacking, KIND)


def _card(content: dict[str, Any]) -> AmortizedCard:
    fields = Fields(content, "a card of amortized_shap")
    explainers.check_said(fields)
    for name in ("backbone", "of", "removal", "unit"):
        fields.string(name)
    fields.number("scale", 0.0)
    if content["rank"] is not None:
        fields.whole("rank", least=1)
    return AmortizedCard(**content | {"classes": tuple(content["classes"])} | explainers.said_in(content))


def find(model: LanguageModel, checkpoint: str | None) -> Amortized:
    """The explainer in a folder, or the model's usual one, checked against the model once.

    Raises LoadError if it is missing or broken, UnsupportedError if it belongs to another model.
    """
    explainers.check_whole_texts(model, KIND)
    folder = explainers.usual_folder(model.name, KIND) if checkpoint is None else Path(checkpoint)
    card = read_card(folder, model.name)

    def checked() -> Amortized:
        check_fits(card, model, folder, COMMAND)
        new = new_predictor(model, card.backbone, card.rank)
        return Amortized(explainers.load_weights(new, folder / STATE, card.backbone), card)

    return explainers.checked_once(model, folder, folder / STATE, checked)
