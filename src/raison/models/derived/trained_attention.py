"""Explainers built from a model's attention, saved with the model that was trained with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import LoadError, UnsupportedError, first_line
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.settings.reading import Fields
from raison.jobs import disk
from raison.models.derived import cards, explainers
from raison.models.derived.attention_explainer import (
    Design,
    ExplainerForm,
    HeadMixture,
    HeadShape,
    InterpretableAttention,
    new_explainer,
    places_of,
    read_map,
)
from raison.models.derived.belonging import other_answers, other_facts

STATE = "explainer.safetensors"


@dataclass(frozen=True, slots=True)
class AttentionCard:
    """The card of an explainer: its design, the attention it was made for, and the model it was trained with.

    `vocabulary`, `said`, `identity` and `logits` identify the model, as in MaskCard. `criteria` are those of
    the training; `history` has losses and scores on held-out texts by name, one for each evaluation, the seconds, and
    the trained coefficients as multiples of their start.
    """

    design: Design
    shape: HeadShape
    model: str
    classes: tuple[str, ...]
    vocabulary: str
    said: tuple[tuple[float, ...], ...]
    criteria: tuple[str, ...]
    history: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
    logits: tuple[tuple[float, ...], ...] = ()


def write(folder: Path, card: AttentionCard, explainer: InterpretableAttention | HeadMixture) -> None:
    """Save the coefficients, and the card last: it marks a finished explainer."""
    disk.remove(folder / cards.FILE)
    state = {name: value.detach().cpu().float().contiguous() for name, value in explainer.state_dict().items()}
    cards.save_tensors(folder / STATE, state)
    cards.write_card(folder, card)


def _check(card: Fields) -> None:
    explainers.check_said(card)
    card.strings("criteria")
    card.mapping("history")
    card.mapping("design")
    card.mapping("shape")
    design = Fields(card.data["design"], f"{card.what}: design")
    for name in ("form", "norm", "over"):
        design.string(name)
    design.strings("selection")
    if design.data.get("initial") is not None:
        design.numbers("initial", 2)
    shape = Fields(card.data["shape"], f"{card.what}: shape")
    for name in ("layers", "heads", "features"):
        shape.whole(name, least=1, most=1_000_000)


def read_card(folder: Path, model: str, form: ExplainerForm) -> AttentionCard:
    """Raises LoadError for a missing explainer, with the way to train one, or for a broken one."""
    lacking = (
        f"there is no trained attention explainer in {folder}: train the model to explain itself (raison train "
        f"ivra --model {model} --form {form} --data SET:SPLIT --criteria comp --out FOLDER) and explain FOLDER, or "
        f"name the explainer's folder ({form}(checkpoint='FOLDER/{form}'))."
    )
    return cards.read_card(folder, _card, lacking, form)


def _card(content: dict[str, Any]) -> AttentionCard:
    _check(Fields({"history": {}, "provenance": {}} | content, "an explainer's card"))
    design = content["design"]
    initial = None if design["initial"] is None else tuple(map(float, design["initial"]))
    values = {
        "design": Design(**design | {"selection": tuple(design["selection"]), "initial": initial}),
        "shape": HeadShape(**content["shape"]),
        "classes": tuple(content["classes"]),
        "criteria": tuple(content["criteria"]),
    }
    return AttentionCard(**content | values | explainers.said_in(content))


@dataclass(frozen=True, slots=True, eq=False)
class TrainedAttention:
    """A loaded explainer, checked against the model."""

    card: AttentionCard
    explainer: InterpretableAttention | HeadMixture

    def maps(self, model: LanguageModel, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """The explanation of each text over its tokens, with sum 1, on the CPU: one forward pass."""
        maps = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)

        def run(rows: list[int]) -> Tensor:
            part = encoding.select(rows)
            with torch.no_grad():
                with model.ask(ReadableAttention).tap(record=self.explainer.steps) as tap:
                    logits = model.ask(Passes).logits(part)
                places = places_of(part, self.card.design.over, logits.device)
                return read_map(self.explainer, tap, places).double().cpu()

        for rows, shares in model.ask(Passes).in_batches(encoding, run):
            maps[rows, : shares.shape[1]] = shares
        return maps


def find(model: LanguageModel, checkpoint: str | None, form: ExplainerForm) -> TrainedAttention:
    """The explainer in a folder, or the one next to the model, checked against the model once.

    Raises LoadError if it is missing or broken, UnsupportedError if it is another model's or of another form.
    """
    explainers.check_whole_texts(model, form)
    folder = explainers.usual_folder(model.name, form) if checkpoint is None else Path(checkpoint)
    card = read_card(folder, model.name, form)

    def checked() -> TrainedAttention:
        check_fits(card, model, folder, form)
        return TrainedAttention(card, _loaded(card, folder / STATE).to(_device(model)))

    return explainers.checked_once(model, folder, folder / STATE, checked, form)


def check_fits(card: AttentionCard, model: LanguageModel, folder: Path, form: ExplainerForm) -> None:
    """Raise UnsupportedError, with every reason, unless the explainer was trained with this model."""
    reasons = []
    if card.design.form != form:
        reasons.append(f"it is of the form {card.design.form}: use the method {card.design.form}")
    shape = HeadShape.of(model, model.encode(explainers.probes_of(model), "token"))
    if shape != card.shape:
        reasons.append(f"it was made for {_spelled(card.shape)}, the model has {_spelled(shape)}")
    reasons += other_facts(card, model)
    if reasons := reasons or other_answers(card, model):
        raise UnsupportedError(
            f"the explainer in {folder} was trained with {card.model} and does not explain {model.name}",
            reasons,
            f"Train one: raison train ivra --model {model.name} --data SET:SPLIT --criteria comp --out FOLDER.",
        )


def _loaded(card: AttentionCard, path: Path) -> InterpretableAttention | HeadMixture:
    explainer = new_explainer(card.shape, card.design)
    try:
        explainer.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = first_line(error)
        raise LoadError(f"cannot read the explainer's coefficients {path}: {reason} Train it again.") from error
    return explainer.requires_grad_(False).eval()


def _spelled(shape: HeadShape) -> str:
    return f"{shape.layers} layers of {shape.heads} heads with {shape.features} features"


def _device(model: LanguageModel) -> torch.device:
    with torch.no_grad():
        return model.ask(WordEmbeddings).embed(model.encode(explainers.probes_of(model)[:1], "token")).device
