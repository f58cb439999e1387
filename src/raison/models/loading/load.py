"""From a demo name, a Hub id, a folder or a model object to the adapter that fits."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from raison.core.errors import InputError, LoadError, UnknownNameError
from raison.core.model import LanguageModel
from raison.core.targets.choices import Aggregation, Measure, Pooled
from raison.core.targets.choices import Explained as Explained
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.completion import PromptUse, completed
from raison.models.adapters.offered.classifiers import not_classifying
from raison.models.adapters.places.masks import filling, is_filling
from raison.models.adapters.places.spans import answering, is_answering
from raison.models.adapters.places.tags import is_tagging, tagging
from raison.models.adapters.similarity import similarity as of_vectors
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.writer import Writer
from raison.models.loading.checkpoints import no_head, pretrained
from raison.models.loading.convert import read_gguf
from raison.models.loading.embedders import Compared, compared, is_embedder, read_embedder, read_headless
from raison.models.loading.endpoints import Endpoint, from_endpoint, writer_behind
from raison.models.loading.foreign_adapters import Labels, foreign_adapter, is_foreign_adapter
from raison.models.loading.objects.functions import Agreement, Predictor
from raison.models.loading.objects.in_memory import from_object, is_pipeline, is_plain_model
from raison.models.loading.pretrained import moved, read_tokenizer
from raison.models.loading.ready_made import zoo
from raison.models.loading.vocabulary import check_vocabulary
from raison.models.loading.weights import check_weights
from raison.models.served.address import is_address
from raison.models.served.request_settings import Served
from raison.models.stack.transformer import inner_model, is_a
from raison.text.prompts import Prompt, find

GGUF = ".gguf"
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "auto": "auto"}

EXPLAINED: tuple[Explained, ...] = get_args(Explained)


@dataclass(frozen=True, slots=True)
class _Usage:
    """How a language model is to be used: with a prompt it classifies, without one it writes."""

    prompt: Prompt | None
    explained: Explained
    calibrate: bool
    compared: Compared | None = None
    """For a model without a head."""
    aggregation: Aggregation | None = None
    """For a token classification model; None is "simple"."""


@dataclass(frozen=True, slots=True)
class _ReadyMade:
    """A demo model or an adapter of raison train, and how it is to be used."""

    model: PreTrainedModel
    tokenizer: Tokenizer
    use: _Usage


@dataclass(frozen=True, slots=True)
class _Placement:
    """The device and the precision of a model that is loaded by name."""

    device: str | torch.device | None
    dtype: str | torch.dtype | None
    device_map: str | dict[str, object] | None

    @property
    def given(self) -> bool:
        """Whether any setting was given."""
        return (self.device, self.dtype, self.device_map) != (None, None, None)


def load(
    model: str | Path | nn.Module | Callable[..., Any] | Predictor,
    tokenizer: Tokenizer | None = None,
    *,
    prompt: Prompt | str | Path | None = None,
    explained: Explained = "input",
    calibrate: bool = False,
    similarity: Measure | None = None,
    pooling: Pooled | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    device_map: str | dict[str, object] | None = None,
    classes: Sequence[str] | None = None,
    multi_label: bool = False,
    pairs: bool = False,
    batch: int = 64,
    concurrency: int = 8,
    name: str | None = None,
    aggregation: Aggregation | None = None,
    served: str | Served | None = None,
) -> LanguageModel | Any:
    """Make a model ready to be explained: a classifier, a language model, a function, ...; see docs/models.md.

    Args:
        model: a demo name ("demo/sst2"), a Hub id, a folder (also of a LoRA adapter), the GGUF file of a causal
            language model, a server's address, a transformers or PEFT model object, which is used as it is (never
            changed), a pipeline, a SentenceTransformer (or its folder) or CrossEncoder, an object with `predict_proba`,
            or a function: from a list of texts to an array with a row for each.
        tokenizer: that of a model given as an object.
        prompt: makes a causal language model a classifier: an included prompt's name ("sst2"), a TOML file or a Prompt.
            Without one, a language model is loaded to explain its output: `explain(model, prompt, output=...)`.
        explained: "input" scores only the text; "prompt" also the sentences and the shots of the prompt. `calibrate`:
            divide by the label words' probabilities on inputs without content (contextual calibration).
        similarity: "cosine" or "dot", of two texts' vectors. `pooling`: "mean" (None), "cls", "max", "lasttoken".
        device: "cuda", "cpu", ... `device_map`: of transformers. `dtype`: "float32", "bfloat16", ...; None: its own.
        classes: of a function's columns (probabilities; a single one is a number), or of an adapter's outputs.
        multi_label: each column is a label with its own probability. `pairs`: the function takes pairs of texts.
        batch: the maximum number of texts per call. `concurrency`: of simultaneous calls of an asynchronous function.
            `name`: the function's name. aggregation: how tokens become entities: "simple" (None), "none", "first", ...
        served: for a server's address, the model's name there, or a `Served` with limits; see docs/served.md.

    Returns an adapter of the given objects: a `Generator` for a generative model, hence the Any. Raises:
        LoadError, DataError: a model, head, fast tokenizer or file is missing; label words do not follow the prompt.
        InputError, AnswerError, NonFiniteError, ServerError, UnsupportedError: what is given or answered does not fit.
    """
    use = replace(_use(prompt, explained, calibrate, _compared(similarity, pooling)), aggregation=aggregation)
    place = _Placement(device, dtype, device_map)
    agreed = Agreement(classes, multi_label, pairs, batch, concurrency, name)
    if not isinstance(model, str | Path) and not is_plain_model(model):
        _check_alone(model, tokenizer, place)
        _check_unprompted(model, use)
        return from_object(model, agreed, lambda network, tokens: _adapter(network, tokens, _name_of(network), use))
    if is_address(model):
        _check_alone(model, tokenizer, place)
        return _behind(Endpoint(str(model), served, concurrency), agreed, use)
    _check_here(_unread(model, agreed), served)
    if isinstance(model, nn.Module):
        return _in_hand(model, tokenizer, place, use)
    _check_own(tokenizer)
    return _by_name(str(model), place, use, Labels.of(agreed.classes, agreed.multi_label))


def _unread(model: object, agreed: Agreement) -> Agreement:
    """What the caller says that only a function could follow: of an adapter's folder, all but its outputs."""
    if not isinstance(model, str | Path) or not is_foreign_adapter(Path(model)):
        return agreed
    return replace(agreed, classes=None, multi_label=False)


def _behind(endpoint: Endpoint, agreed: Agreement, use: _Usage) -> LanguageModel | Writer:
    """The adapter of a model behind a server."""
    others = [name for name in agreed.given if name != "concurrency"]
    if others or use != _Usage(use.prompt, "input", False):
        raise InputError(
            "a model behind a server accepts only prompt=, served= and concurrency=: leave the others out."
        )
    return writer_behind(endpoint) if use.prompt is None else from_endpoint(endpoint, use.prompt)


def _by_name(name: str, place: _Placement, use: _Usage, labels: Labels) -> LanguageModel | Generator:
    if place.device is not None and place.device_map is not None:
        raise InputError("device and device_map exclude each other: give one of them.")
    ready_made = name.startswith(zoo.PREFIX) or zoo.is_adapter(Path(name))
    if ready_made and place.device_map is not None:
        raise InputError(f"'{name}' is assembled in memory, so device_map does not apply: use device=.")
    placing = {"dtype": _dtype(place.dtype), "device_map": place.device_map}
    if ready_made:
        known = _ready_made(name, use)
        loaded, tokenizer, use = known.model, known.tokenizer, known.use
    elif use.compared is not None:
        loaded, tokenizer = read_headless(name, placing), read_tokenizer(name)
    elif is_embedder(Path(name)):
        embedder = read_embedder(Path(name), placing)
        loaded, tokenizer, use = embedder.model, embedder.tokenizer, replace(use, compared=embedder.compared)
    elif is_foreign_adapter(Path(name)):
        loaded, tokenizer = foreign_adapter(Path(name), placing, use.prompt is not None, labels)
    else:
        loaded, tokenizer = _named(name, placing, use.prompt is not None)
    if ready_made and isinstance(placing["dtype"], torch.dtype):
        loaded = loaded.to(dtype=placing["dtype"])  # type: ignore[call-arg]
    if place.device is not None:
        loaded = moved(loaded, place.device)
    return _adapter(loaded.eval(), tokenizer, name, use)


def _named(name: str, placing: dict[str, object], prompted: bool) -> tuple[PreTrainedModel, Tokenizer]:
    """A model from elsewhere by its file, folder or Hub id, and its tokenizer. Raises LoadError."""
    if name.endswith(GGUF) and os.path.isfile(name):
        if placing["device_map"] is not None:
            raise InputError(f"'{name}' is unpacked in memory, so device_map does not apply: use device=.")
        return read_gguf(Path(name), placing["dtype"])
    return pretrained(name, placing, prompted), read_tokenizer(name)


def as_classifier(model: LanguageModel | Writer) -> LanguageModel:
    """The model, if it predicts classes. Raises LoadError for a language model that was loaded without a prompt."""
    if isinstance(model, Writer):
        raise LoadError(
            f"'{model.name}' is a language model without classes: give it a prompt with label words (prompt=, "
            "--prompt), such as 'sentiment'."
        )
    return model


def _compared(similarity: Measure | None, pooling: Pooled | None) -> Compared | None:
    """What is explained of a model without a head; None if the caller names nothing. Raises InputError."""
    if similarity is None:
        if pooling is not None:
            raise InputError("pooling= needs similarity=: also give similarity='cosine'.")
        return None
    return compared(similarity, pooling)


def _use(prompt: Prompt | str | Path | None, explained: Explained, calibrate: bool, vectors: Compared | None) -> _Usage:
    if explained not in EXPLAINED:
        raise UnknownNameError("value of explained", explained, EXPLAINED)
    if vectors is not None and (prompt is not None or explained != "input" or calibrate):
        raise InputError("similarity= compares vectors, and a prompt classifies: leave one of them out.")
    return _Usage(None if prompt is None else find(prompt), explained, calibrate, vectors)


def _adapter(model: nn.Module, tokenizer: Tokenizer, name: str, use: _Usage) -> LanguageModel | Generator:
    core = inner_model(model)
    kind = type(core).__name__
    check_weights(model, name)
    check_vocabulary(core, tokenizer, name)
    if use.prompt is not None:
        if not _is_causal(core):
            raise InputError(
                f"'{name}' is a {kind}: a prompt is for causal language models. Leave prompt= out, or give a language "
                "model."
            )
        return completed(model, tokenizer, name, PromptUse(use.prompt, use.explained, use.calibrate))
    if use.explained != "input" or use.calibrate:
        raise InputError("explained= and calibrate= need a prompt: also give prompt=.")
    if use.compared is not None:
        return of_vectors(core, tokenizer, name, use.compared.vectors, use.compared.measure)
    if is_tagging(core):
        return tagging(model, tokenizer, name, use.aggregation or "simple")
    if use.aggregation is not None:
        raise InputError(
            f"aggregation= applies to token classification models, and '{name}' is a {kind}: leave it out."
        )
    if is_a(core, "ForSequenceClassification"):
        return Classifier(model, tokenizer, name)
    if is_answering(core):
        return answering(model, tokenizer, name)
    if is_filling(core):
        return filling(model, tokenizer, name)
    if _is_causal(core) or _is_written_by_decoder(core):
        return Generator(model, tokenizer, name)
    if (reason := not_classifying(core, tokenizer)) is None:
        return Classifier(model, tokenizer, name)
    if is_a(core, "ForConditionalGeneration") and not core.config.is_encoder_decoder:
        raise LoadError(
            f"'{name}' is a {kind}, which also reads images or sound: load its language model alone, if transformers "
            "has one for it (AutoModelForCausalLM, or the text model's own ...ForCausalLM), with its tokenizer."
        )
    raise LoadError(no_head(name, f"it is a {kind}{', and ' * bool(reason)}{reason}"))


def _is_causal(core: PreTrainedModel) -> bool:
    """Whether a model is a decoder with an output matrix over the vocabulary, not a classifier made from one."""
    return (
        is_a(core, "ForCausalLM", "LMHeadModel")
        and not core.config.is_encoder_decoder
        and core.get_output_embeddings() is not None
    )


def _is_written_by_decoder(core: PreTrainedModel) -> bool:
    """Whether a model is an encoder-decoder that reads texts and writes."""
    return (
        is_a(core, "ForConditionalGeneration", "MTModel")
        and core.config.is_encoder_decoder
        and core.main_input_name == "input_ids"
    )


def _in_hand(
    model: nn.Module, tokenizer: Tokenizer | None, place: _Placement, use: _Usage
) -> LanguageModel | Generator:
    if tokenizer is None:
        raise InputError("an already loaded model needs its tokenizer: load(model, tokenizer).")
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(
            f"the tokenizer is {tokenizer!r:.60}: give a loaded one, such as AutoTokenizer.from_pretrained(name)."
        )
    if place.given:
        raise InputError(
            "device, dtype and device_map apply to models loaded by name; an already loaded model is never moved: "
            "leave them out."
        )
    return _adapter(model, tokenizer, _name_of(model), use)


def _name_of(model: nn.Module) -> str:
    core = inner_model(model)
    return core.config.name_or_path or type(core).__name__


def _check_alone(model: object, tokenizer: Tokenizer | None, place: _Placement) -> None:
    """InputError for arguments that only a torch model takes, and for a tokenizer in the place of the model."""
    if isinstance(model, Tokenizer):
        raise InputError("the first argument is a tokenizer: give the model first, load(model, tokenizer).")
    if tokenizer is not None or place.given:
        raise InputError(
            "tokenizer, device, dtype and device_map apply to transformers models only: leave them out for a function "
            "or a pipeline."
        )


def _check_here(agreed: Agreement, served: str | Served | None) -> None:
    """InputError for arguments that belong to a server or a function."""
    if served is not None:
        raise InputError(
            "served= and limits of requests, tokens and cost are for a model on a server: give the server's address "
            "(http://host:port/v1), or leave them out."
        )
    if agreed.given:
        applies = "apply" if len(agreed.given) > 1 else "applies"
        what = "them" if len(agreed.given) > 1 else "it"
        raise InputError(
            f"{', '.join(agreed.given)} {applies} to functions only, and this is a model: leave {what} out."
        )


def _check_own(tokenizer: Tokenizer | None) -> None:
    """InputError for a tokenizer together with a name."""
    if tokenizer is not None:
        raise InputError(
            "a model loaded by name has its own tokenizer: leave tokenizer out, or give the loaded model, load(model, "
            "tokenizer)."
        )


def _check_unprompted(model: object, use: _Usage) -> None:
    """InputError for a prompt, except for a pipeline, which may hold a language model."""
    if use != _Usage(None, "input", False) and not is_pipeline(model):
        raise InputError(
            "prompt, explained, calibrate and aggregation apply to transformers models only: leave them out."
        )


def _ready_made(name: str, use: _Usage) -> _ReadyMade:
    if not name.startswith(zoo.PREFIX):
        return _ReadyMade(*zoo.load_adapter(Path(name)), use)
    if zoo.is_embedder(name):
        embedder = zoo.load_demo_embedder(name)
        return _ReadyMade(embedder.model, embedder.tokenizer, replace(use, compared=embedder.compared))
    if not zoo.is_language_model(name):
        return _ReadyMade(*zoo.load_demo(name), use)
    prompt = zoo.demo_prompt(name)
    if use.prompt is None and prompt is not None:
        use = _Usage(find(prompt), use.explained, use.calibrate)
    return _ReadyMade(*zoo.load_demo_language_model(name), use)


def _dtype(dtype: str | torch.dtype | None) -> object:
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise InputError(f"unknown dtype '{dtype}'; known: {', '.join(DTYPES)}.")
        return DTYPES[dtype]
    return "auto" if dtype is None else dtype
