"""Embedding models: folders and objects of sentence-transformers, and models without a head."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    MODEL_FOR_TEXT_ENCODING_MAPPING,
    AutoModel,
    AutoModelForTextEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from raison.core.errors import LoadError, UnknownNameError
from raison.core.targets.choices import Measure, Pooled
from raison.models.loading.pretrained import load_errors, read_config, read_tokenizer, read_whole
from raison.models.passes.outputs.heads import ACTIVATIONS
from raison.models.passes.outputs.vectors import Dense, Normalized, TextVectors

MODULES = "modules.json"
OWN = "config_sentence_transformers.json"
READING = "sentence_bert_config.json"
PROMPTED = ("query", "document", "passage", "corpus")
"""Names of prompts that belong to one side of a search."""
_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
"""Keys of older pooling files, each of which is true or false."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How texts become vectors, and how two vectors are compared."""

    vectors: TextVectors
    measure: Measure


@dataclass(frozen=True, slots=True)
class Embedder:
    """An embedding model: the transformer without a head, its tokenizer, and what follows the transformer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    compared: Compared


@dataclass(frozen=True, slots=True)
class Module:
    """One step from a text to its vector, as sentence-transformers names and describes it."""

    kind: str
    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]


def compared(similarity: str, pooling: str | None) -> Compared:
    """The comparison and the pooling that the caller names. Raises UnknownNameError."""
    return Compared(TextVectors(_pooled(pooling or "mean")), measure_of(similarity))


def measure_of(similarity: object) -> Measure:
    """Raises UnknownNameError for a comparison other than the cosine and the dot product."""
    for known in get_args(Measure):
        if similarity == known:
            return known
    raise UnknownNameError("similarity", str(similarity), get_args(Measure))


def is_embedder(folder: Path) -> bool:
    """Whether a folder has the layout of a SentenceTransformer: a cross-encoder's has no pooling."""
    return os.path.isfile(folder / MODULES) and any(_kind(entry) == "Pooling" for entry in _read(folder / MODULES))


def read_embedder(folder: Path, placing: dict[str, object]) -> Embedder:
    """The model, the tokenizer and the vectors of a folder. Raises LoadError for what raison does not support."""
    entries = _read(folder / MODULES)
    first, *others = entries
    if _kind(first) != "Transformer":
        raise LoadError(f"cannot load '{folder}': its first module is a {_kind(first)}, not a Transformer.")
    place = folder / first["path"]
    settings = _settings(folder / OWN)
    _check_reading(folder, settings, _settings(place / READING))
    steps = [_module(folder, entry) for entry in others]
    compared_vectors = Compared(vectors_of(steps), measure_of(settings.get("similarity_fn_name") or "cosine"))
    tokenizer = read_tokenizer(place)
    longest = _settings(place / READING).get("max_seq_length")
    if isinstance(longest, int):
        tokenizer.model_max_length = min(longest, tokenizer.model_max_length)
    return Embedder(read_headless(place, placing), tokenizer, compared_vectors)


def read_headless(source: str | Path, placing: dict[str, object]) -> PreTrainedModel:
    """A model without a head; for an encoder-decoder, its encoder. Raises LoadError."""
    only = type(read_config(source)) in MODEL_FOR_TEXT_ENCODING_MAPPING
    kind = AutoModelForTextEncoding if only else AutoModel
    return read_whole(kind, source, **placing)


def vectors_of(modules: Sequence[Module]) -> TextVectors:
    """The steps after the transformer. Raises LoadError for a module or a setting that raison does not support."""
    pooling, *others = modules
    if pooling.kind != "Pooling":
        raise LoadError(f"the second module is a {pooling.kind}, and raison supports only Pooling there.")
    return TextVectors(_pooling_of(pooling.config), tuple(_step_of(module) for module in others))


def _pooling_of(config: Mapping[str, Any]) -> Pooled:
    mode = config.get("pooling_mode") or [name for key, name in _NAMES.items() if config.get(key)] or "mean"
    if not isinstance(mode, str):
        if len(mode) != 1:
            raise LoadError(f"the pooling combines several kinds ({', '.join(mode)}), which raison does not support.")
        [mode] = mode
    return _pooled(mode)


def _pooled(mode: str) -> Pooled:
    for known in get_args(Pooled):
        if mode == known:
            return known
    raise UnknownNameError("pooling", mode, get_args(Pooled))


def _step_of(module: Module) -> Dense | Normalized:
    inputs = {module.config.get(key) or "sentence_embedding" for key in ("module_input_name", "module_output_name")}
    if inputs != {"sentence_embedding"}:
        raise LoadError(f"a {module.kind} works on {', '.join(sorted(inputs))}, which raison does not support.")
    if module.kind == "Normalize":
        return Normalized()
    if module.kind != "Dense":
        raise LoadError(f"raison supports the modules Pooling, Dense and Normalize, not {module.kind}.")
    activation = str(module.config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise UnknownNameError("activation of a Dense module", activation, tuple(ACTIVATIONS))
    weights, added = module.weights, bool(module.config.get("use_residual"))
    return Dense(
        weights["linear.weight"], weights.get("linear.bias"), activation, added, weights.get("residual.weight")
    )


def _kind(entry: Mapping[str, Any]) -> str:
    return str(entry.get("type", "")).rpartition(".")[2]


def _module(folder: Path, entry: Mapping[str, Any]) -> Module:
    place = folder / entry["path"]
    weights: Mapping[str, Tensor] = {}
    if _kind(entry) == "Dense":
        with load_errors(f"the weights of '{place}'", place):
            weights = load_file(place / "model.safetensors")
    return Module(_kind(entry), _settings(place / "config.json"), weights)


def _check_reading(folder: Path, settings: Mapping[str, Any], reading: Mapping[str, Any]) -> None:
    """LoadError for settings that change the texts before they are read."""
    prompts = settings.get("prompts") or {}
    if any(prompts.get(name) for name in (*PROMPTED, settings.get("default_prompt_name"))):
        why = "puts a prompt before each text"
    elif reading.get("do_lower_case"):
        why = "lowercases texts itself"
    else:
        return
    raise LoadError(
        f"'{folder}' {why}, which raison does not do: load the object (raison.load(SentenceTransformer(folder))), "
        "which is then treated as a function."
    )


def _read(path: Path) -> Any:
    with load_errors(f"'{path}'", path):
        return json.loads(path.read_text(encoding="utf-8"))


def _settings(path: Path) -> Mapping[str, Any]:
    content = _read(path) if os.path.isfile(path) else {}
    return content if isinstance(content, Mapping) else {}
