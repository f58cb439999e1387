"""The ready-made models: `demo/...` names, each a base model and a small adapter that ships with the package."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    MODEL_MAPPING,
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from raison.core.errors import DataError, LoadError, UnknownNameError
from raison.core.settings.reading import Fields, parse
from raison.models.loading.embedders import Embedder, compared, read_headless
from raison.models.loading.pretrained import ADAPTER as ADAPTER
from raison.models.loading.pretrained import (
    check_adapter,
    merged,
    read_config,
    read_tokenizer,
    read_whole,
    read_with_fresh_head,
    read_with_new_head,
)
from raison.models.loading.ready_made import base_weights, shipped
from raison.models.loading.ready_made.adapter_bases import base_of
from raison.models.loading.t5_encoder import T5EncoderForSequenceClassification
from raison.models.stack.eval_mode import drawing

PREFIX = "demo/"
CARD = "card.json"


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A ready-made model: the folder of its base, the folder of its adapter, and the card of its training.

    A card without `labels` describes the base itself. With `similarity` that is an embedding model, otherwise a
    language model, which classifies by the card's `prompt` if it has one, and writes with an adapter if there is one.
    """

    base_folder: Path
    adapter_folder: Path
    card: dict[str, Any]


def names() -> tuple[str, ...]:
    """The ready-made models that this installation has, such as "demo/sst2"."""
    return tuple(PREFIX + name for name in shipped.names())


def folder_of(name: str) -> Path:
    """The folder of a ready-made model's own files, checked against what shipped. Raises LoadError."""
    short = name.removeprefix(PREFIX)
    shipped.check(short)
    return shipped.folder(short)


def resolve(name: str) -> DemoModel:
    """The folders of a ready-made model's parts; fetches the base's weights if needed.

    Raises UnknownNameError for an unknown name, LoadError if the base's weights cannot be fetched.
    """
    card = _card(name)
    return DemoModel(base_weights.fetch(card["base"]), folder_of(name), card)


def load_demo(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A ready-made classifier with its adapter merged in, in evaluation mode, and its tokenizer."""
    demo = resolve(name)
    return assemble(demo.base_folder, demo.adapter_folder, tuple(demo.card["labels"]))


def is_language_model(name: str) -> bool:
    """Whether a ready-made model is a language model. Raises UnknownNameError."""
    return not is_classifier(name) and not is_embedder(name)


def is_classifier(name: str) -> bool:
    """Whether a ready-made model is a classifier. Raises UnknownNameError."""
    return "labels" in _card(name)


def is_embedder(name: str) -> bool:
    """Whether a ready-made model makes vectors of texts. Raises UnknownNameError."""
    return "similarity" in _card(name)


def demo_prompt(name: str) -> str | None:
    """The name of a ready-made language model's classification prompt, if any. Raises UnknownNameError."""
    prompt: str | None = _card(name).get("prompt")
    return prompt


def _card(name: str) -> dict[str, Any]:
    if shipped.elsewhere(name.removeprefix(PREFIX)):
        raise LoadError(
            f"{name} belongs to the studies and is not part of the package: install raison from a clone of its "
            "repository (pip install -e .)."
        )
    if name not in names():
        raise UnknownNameError("demo model", name, names())
    return read_card(folder_of(name))


def load_demo_language_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A ready-made language model, with its adapter if it has one, in float32, and its tokenizer."""
    demo = resolve(name)
    return language_model(demo.base_folder, demo.adapter_folder if _has_adapter(demo.adapter_folder) else None)


def language_model(folder: Path, adapter: Path | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A language model from a base and, if given, a PEFT adapter, merged, in evaluation mode, in float32."""
    model = read_whole(AutoModelForCausalLM, folder, dtype=torch.float32).eval()
    return (model if adapter is None else merged(model, adapter)), read_tokenizer(folder)


def load_demo_embedder(name: str) -> Embedder:
    """A ready-made embedding model, in float32 and evaluation mode."""
    demo = resolve(name)
    tokenizer = read_tokenizer(demo.base_folder)
    tokenizer.model_max_length = int(demo.card["longest"])
    model = read_headless(demo.base_folder, {"dtype": torch.float32}).eval()
    return Embedder(model, tokenizer, compared(demo.card["similarity"], demo.card["pooling"]))


def _has_adapter(folder: Path) -> bool:
    return (folder / ADAPTER).is_file()


def is_adapter(folder: Path) -> bool:
    """Whether `load_adapter` reads a folder; a whole model may also have a card, together with its config.json."""
    return os.path.isfile(folder / CARD) and not os.path.isfile(folder / "config.json")


def load_adapter(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """As `load_demo`, for a folder of `raison train classifier`.

    Raises LoadError if its card or base is missing, or if the base is not the one of its training.
    """
    card = read_card(folder)
    if not card.get("labels"):
        raise LoadError(f"cannot read {folder / CARD}: it has no labels. Is {folder} an adapter of raison train?")
    digest, labels = card.get("base_sha256", ""), tuple(card["labels"])
    base = base_of(folder, card["base"], digest)
    if not digest:
        # Adapters used to keep the head of their base.
        return assemble(base, folder, labels, old_head=True)
    return assemble(base, folder, labels, card.get("settings", {}).get("seed", 0))


def read_card(folder: Path) -> dict[str, Any]:
    """The card of an adapter's training. Raises LoadError if it is missing or broken."""
    try:
        card = parse((folder / CARD).read_text(encoding="utf-8"), "the card of an adapter")
        fields = Fields(card, "the card of an adapter")
        fields.string("base")
        if "base_sha256" in card:
            fields.string("base_sha256")
        if "labels" in card:
            fields.strings("labels")
        if "accuracy" in card:
            fields.mapping("accuracy")
            for split in card["accuracy"]:
                Fields(card["accuracy"], f"{fields.what}: accuracy").number(split, 0.0, 1.0)
    except (DataError, OSError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise LoadError(f"cannot read {folder / CARD}: {reason}. Is {folder} an adapter of raison train?") from error
    return card


def assemble(
    base_folder: Path, adapter_folder: Path, labels: tuple[str, ...], seed: int = 0, *, old_head: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A sequence classifier from a base and a PEFT adapter, merged, in evaluation mode, in float32.

    `seed` and `old_head` are those of `fresh_classifier`: an adapter may add to parts of a head that it does not have.
    """
    check_adapter(adapter_folder)
    model, tokenizer = fresh_classifier(base_folder, labels, seed, old_head=old_head)
    return merged(model, adapter_folder), tokenizer


def fresh_classifier(
    base_folder: Path,
    labels: tuple[str, ...],
    seed: int = 0,
    *,
    t5_encoder: bool = False,
    layers: int | None = None,
    old_head: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A base model with a new, random head for the given classes; `seed` decides the head. Safetensors only.

    A head that the base has is left out; `old_head` keeps it. `t5_encoder` takes the encoder of a T5 alone
    (raison.models.loading.t5_encoder); `layers` is the number of lowest layers to take. Raises LoadError.
    """
    kind = T5EncoderForSequenceClassification if t5_encoder else AutoModelForSequenceClassification
    numbered = dict(enumerate(labels))
    config = read_config(
        base_folder,
        num_labels=len(labels),
        id2label=numbered,
        label2id={label: index for index, label in numbered.items()},
    )
    if layers is not None:
        _cut(config, layers, base_folder)
    if config.problem_type is not None and not old_head:
        # It says how the base's own head is read.
        config.problem_type = None
    read = read_with_new_head if old_head else read_with_fresh_head
    with drawing(seed):
        model = read(kind, base_folder, config=config, dtype=torch.float32)
    return model.eval(), read_tokenizer(base_folder)


def _cut(config: PreTrainedConfig, layers: int, base_folder: Path) -> None:
    whole = config.num_hidden_layers
    if layers > whole:
        raise LoadError(f"{base_folder.name} has {whole} layers, not {layers}: give fewer, or leave layers out.")
    config.num_hidden_layers = layers


def fresh_span_model(base_folder: Path, seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A base model with a new, random head for start and end logits; `seed` decides the head. Safetensors only.

    A head that the base has is left out.
    """
    # Two outputs, whatever head the base had before.
    config = read_config(base_folder, num_labels=2)
    settings: dict[str, Any] = {"config": config, "dtype": torch.float32, **_names_of_weights(config)}
    with drawing(seed):
        model = read_with_fresh_head(AutoModelForQuestionAnswering, base_folder, **settings)
    if "key_mapping" in settings:
        # Otherwise the weights would be saved under the names they were read from, which a question answering model
        # cannot read.
        model.__dict__.pop("_weight_conversions", None)
    return model.eval(), read_tokenizer(base_folder)


def _names_of_weights(config: PreTrainedConfig) -> dict[str, Any]:
    """Settings for from_pretrained if a family's question answering class has another name for its body than its other
    classes."""
    kinds = (mapping.get(type(config), None) for mapping in (MODEL_MAPPING, MODEL_FOR_QUESTION_ANSWERING_MAPPING))
    before, now = (getattr(kind, "base_model_prefix", "") for kind in kinds)
    # Llama's and Qwen3's is called "transformer" there, and "model" in the files of a language model.
    return {"key_mapping": {rf"^{before}\.": f"{now}."}} if before and now and before != now else {}
