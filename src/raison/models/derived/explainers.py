"""What every trained explainer needs: its folder, its weights, and whether it was trained for this model."""

import hashlib
import json
import os
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, LoadError, UnsupportedError
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.core.settings.reading import Fields
from raison.models.adapters.classifier import Classifier, text_classifier
from raison.models.derived import cards
from raison.models.derived.attributor import Attributor, encoder_copy
from raison.models.derived.cards import FILE
from raison.models.derived.per_model import made_once
from raison.models.loading.pretrained import read_tokenizer, read_with_new_head
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.stack.eval_mode import drawing
from raison.paths import cache_folder

T = TypeVar("T")

OWN = "own"
PROBES = ("The plot is thin, but the acting is a quiet pleasure.", "i feel so tired and a little afraid today")
"""Texts on which a model must give the same predictions as the explainer's model."""
QUESTIONS = (
    ("Who wrote the play?", "The play was written in one night by Ada Moore, who was ill at the time."),
    ("Where does the river end?", "The river leaves the hills behind and ends in a quiet lake."),
)
TOLERANCE = 0.05
"""Tolerance in probability; half precision and other machines stay far below it."""


@runtime_checkable
class OfModel(Protocol):
    """The fields of every card about the model that its explainer was trained for."""

    @property
    def model(self) -> str: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def vocabulary(self) -> str: ...
    @property
    def said(self) -> tuple[tuple[float, ...], ...]: ...
    @property
    def identity(self) -> Mapping[str, str]: ...
    @property
    def logits(self) -> tuple[tuple[float, ...], ...]: ...


def own_folder(model: str, kind: str) -> Path:
    """Where training saves a model's explainer: in the folder of a local model, otherwise in the cache."""
    if os.path.isdir(model):
        return Path(model) / kind
    return cache_folder() / "explainers" / model.replace("/", "--") / kind


def usual_folder(model: str, kind: str) -> Path:
    """The default folder of a model's explainer: where training saves it, or next to a ready-made model."""
    user_folder = own_folder(model, kind)
    if (user_folder / FILE).exists() or model not in zoo.names():
        return user_folder
    shipped = zoo.folder_of(model) / kind
    return shipped if (shipped / FILE).exists() else user_folder


def files_of(model: str, checkpoint: str | None, kind: str) -> tuple[Path, ...]:
    """The card and weights of an explainer, in the given folder or the model's default one; () if there are none."""
    folder = usual_folder(model, kind) if checkpoint is None else Path(checkpoint)
    return (folder / FILE, *sorted(folder.glob("*.safetensors"))) if (folder / FILE).exists() else ()


def check_whole_texts(model: LanguageModel, what: str) -> None:
    """Raise UnsupportedError for a model with predictions at places of a text, because each has its own map."""
    if model.choosing is not None:
        raise UnsupportedError(
            f"{what} cannot be used on {model.name}",
            [
                "it predicts at positions of the text, and a trained explainer explains one prediction for the whole "
                "text"
            ],
            "Use integrated_gradients, deep_lift or kernel_shap.",
        )


def check_said(card: Fields) -> None:
    """Check the fields of a card that describe the explained model. Raises DataError."""
    card.string("model")
    card.strings("classes")
    card.string("vocabulary")
    for place, row in enumerate(card.items("said")):
        Fields({"said": row}, f"{card.what}: text {place}").numbers("said", None, 0.0, 1.0)
    card.mapping("provenance")
    # Cards of older versions have neither.
    if "identity" in card.data:
        card.mapping("identity")
    if "logits" in card.data:
        for place, row in enumerate(card.items("logits")):
            Fields({"logits": row}, f"{card.what}: logits {place}").numbers("logits", None)


def said_in(content: Mapping[str, Any]) -> dict[str, tuple[tuple[float, ...], ...]]:
    """The probabilities on PROBES, and the logits, from the content of a card."""
    return {name: tuple(tuple(map(float, row)) for row in content.get(name, ())) for name in ("said", "logits")}


def write_weights(path: Path, state: Mapping[str, Tensor]) -> None:
    """Save trained weights in half precision."""
    tensors = {key: value.detach().cpu().to(torch.float16).contiguous() for key, value in state.items()}
    cards.save_tensors(path, tensors)


def load_weights(attributor: Attributor, path: Path, backbone: str) -> Attributor:
    """The attribution model with the trained weights of a file, in evaluation mode. Raises LoadError."""
    try:
        state = {name: value.float() for name, value in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise LoadError(f"cannot read the explainer's weights {path}: {error}. Train the explainer again.") from error
    parameters = attributor.state_dict()
    trained = {name for name, parameter in attributor.named_parameters() if parameter.requires_grad}
    if not trained <= set(state) <= set(parameters) or any(
        parameters[name].shape != value.shape for name, value in state.items()
    ):
        raise LoadError(f"{path} does not fit the backbone '{backbone}': train the explainer again.")
    attributor.load_state_dict(state, strict=False)
    return attributor.eval()


def new_attributor(
    model: LanguageModel, backbone: str, rank: int | None, *, learned: bool, seed: int = 0
) -> Attributor:
    """An untrained attribution model for a model; `seed` decides its new weights.

    `backbone` "own" is the explained model's encoder; a low-rank attribution model shares its memory.
    `learned` gives it an embedding for masked tokens, which starts where the model's first removal is.
    Raises UnsupportedError for a backbone that reads from left to right, LoadError for one that cannot be loaded.
    """
    device = torch.device("cpu")
    if isinstance(model, Classifier):
        device = model.device
    part, tokenizer = _backbone(model, backbone, shared=rank is not None)
    substitute = _first_substitute(model) if learned else None
    with drawing(seed):
        attributor = Attributor(part, tokenizer, len(model.classes), rank, substitute)
    return attributor.to(device).eval()


def probes_of(model: LanguageModel) -> tuple[Text, ...]:
    """Probe texts for a model: questions with contexts for question answering, plain texts otherwise."""
    if not isinstance(model, Classifier):
        return PROBES
    return QUESTIONS if model.head.in_context else tuple(model.use.probe(text) for text in PROBES)


def checked_once(model: LanguageModel, folder: Path, weights: Path, make: Callable[[], T], *further: Hashable) -> T:
    """An explainer in a folder, which `make` checks against the model and loads: once, until the model or the file of
    its weights changes. `further` is what else distinguishes it.
    """
    # Loading refuses a missing or broken file.
    written = weights.stat().st_mtime_ns if weights.exists() else 0
    network = model.model if isinstance(model, Classifier) else None
    return made_once(model, network, (folder, weights.name, written, *further), make)


def said_by(model: LanguageModel) -> tuple[tuple[float, ...], ...]:
    """The model's probabilities on PROBES: one pass of each."""
    encoding = model.encode(probes_of(model), "token")
    logits = torch.cat(model.masked_logits(encoding, encoding.whole, model.removals[0])).double()
    shares = logits.sigmoid() if model.multi_label else logits.softmax(-1)
    return tuple(tuple(round(share, 4) for share in row) for row in shares.tolist())


def vocabulary_of(model: LanguageModel) -> str:
    """A digest of the tokens of PROBES, which identifies the tokenizer."""
    encoding = model.encode(probes_of(model), "token")
    ids = [encoding.input_ids[row, encoding.scored[row]].tolist() for row in range(len(encoding))]
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]


def _backbone(model: LanguageModel, name: str, *, shared: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if name == OWN:
        reading = text_classifier(model)
        if reading is None:
            raise InputError(f"{model.name} has no encoder: name a backbone, such as minilm.")
        return encoder_copy(reading.core, shared=shared), reading.tokenizer
    folder = Path(name) if os.path.isdir(name) else None
    source = folder or (base_weights.fetch(name) if name in base_weights.names() else name)
    try:
        loaded, tokenizer = read_with_new_head(AutoModel, source, dtype=torch.float32), read_tokenizer(source)
    except LoadError as error:
        raise LoadError(f"cannot load the backbone '{name}': {error}") from None
    return encoder_copy(loaded, shared=shared), tokenizer


def _first_substitute(model: LanguageModel) -> Tensor:
    encoding = model.encode(PROBES[:1], "token")
    row = int(encoding.scored[0].nonzero()[0])
    words = model.ask(WordEmbeddings)
    in_place = [name for name in model.removals if name != "delete"]
    source = words.removed(encoding, in_place[0]) if in_place else encoding
    return words.embed(source)[0, row].float()
