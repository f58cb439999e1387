"""The identity of a model: digests of weights, tokenizer and configuration, independent of where it runs."""

import hashlib
import inspect
import json
import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from raison.core.capabilities.asked_again import AskedAgain
from raison.core.inputs.unit import Text
from raison.core.method import Method
from raison.core.metric import GroupMetric, Metric
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.jobs.file_digest import sha256_of
from raison.jobs.identity import ANSWERS, CONFIGURATION, FILES, TOKENIZER, WEIGHTS, digest_of
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.classifier import Classifier, text_classifier
from raison.models.adapters.writing.statements import Statements
from raison.models.derived import explainers
from raison.models.loading.merged_adapters import origin_of
from raison.models.loading.pretrained import read_config, read_tokenizer
from raison.models.loading.ready_made import base_weights
from raison.models.passes.outputs.readout import WordReadout
from raison.models.passes.outputs.vectors import VectorHead
from raison.models.stack.eval_mode import drawing

SAMPLES = 65_536
"""Number of sampled values per tensor; more if it has more rows."""

PAIRS = ((explainers.PROBES[0], "It is dull."), (explainers.PROBES[1], "He is glad."))
"""The probe texts for a function of pairs."""
TRIPLES = ((*PAIRS[0], PAIRS[1][1]), (*PAIRS[1], PAIRS[0][1]))
"""The probe texts for a ranking."""

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNDECISIVE = ("model", "history", "provenance", "identity", "logits")
"""Keys of an explainer's card about where and how it was trained, and for which weights."""
_UNSTEADY = ("_name_or_path", "transformers_version", "_commit_hash", "dtype", "torch_dtype", "_attn_implementation")
"""Keys of a configuration about loading, which do not change what the model computes."""


def identity_of(model: LanguageModel) -> dict[str, str]:
    """The digests of a model object, by name; costs tens of milliseconds for 100 million parameters.

    Weights: the name, type and shape of every tensor, the sum of its bits as whole numbers, and a sample of its values
    that includes every row, so that changed values and exchanged rows are both noticed. Not noticed are values
    exchanged between the samples, changes whose bits cancel, and tensors that are offloaded or of a library's own type,
    of which only type and shape count. Weights with a merged adapter are identified by those of the base and of the
    adapter, because the merged values depend on the processor's rounding; once they are changed, they count themselves.

    Tokenizer: its vocabulary with all its rules, and its special tokens. Another version of `tokenizers` may write
    these differently. Configuration: differences from the family's defaults, the labels, and the prompt with its
    calibration. A function is identified by its name, its classes, and its answers to fixed texts, to two digits; by
    the first two alone where these answers differ between equal calls: it is asked for two texts, twice. Not noticed is
    a function that was changed and gives the same answers to these texts. A model behind a server is identified by the
    server, its name there, and the prompt. Any other model outside transformers is identified by its class, its labels,
    and its outputs on two sentences, to two decimals.
    """
    if isinstance(model, BlackBox):
        return _of_function(model)
    if model.offers(AskedAgain):
        return {CONFIGURATION: digest_of([type(model).__qualname__, model.classes, model.ask(AskedAgain).identity])}
    # The written text depends only on the weights and the tokenizer; the token that is read is not part of the model's
    # identity.
    reading = model.reader if isinstance(model, Statements) else text_classifier(model)
    if not isinstance(reading, Classifier):
        shares = [[round(share, 2) for share in row] for row in explainers.said_by(model)]
        configuration = digest_of([type(model).__qualname__, model.classes, model.multi_label])
        return {WEIGHTS: digest_of(shares), TOKENIZER: explainers.vocabulary_of(model), CONFIGURATION: configuration}
    config: list[Any] = [_plain(reading.core.config), model.classes]
    readout = reading.readout
    if isinstance(readout, WordReadout):
        # The prompt around a text, what is explained, the label words, and whether they are calibrated.
        read = model.encode(["fine"], "token")
        config += [read.input_ids.tolist(), read.unit_ids.tolist(), readout.label_ids, readout.prior is not None]
    if reading.use.join is not None:
        config.append(repr(reading.use.join))
    if isinstance(reading.head, VectorHead):
        config.append(reading.head.vectors.facts)
    return {
        WEIGHTS: _weights(reading.model),
        TOKENIZER: _tokenizer(reading.tokenizer),
        CONFIGURATION: digest_of(config),
    }


def _of_function(model: BlackBox) -> dict[str, str]:
    probes: dict[int, Sequence[Text]] = {1: explainers.PROBES, 2: PAIRS, 3: TRIPLES}
    texts = probes[model.strings]
    with drawing():
        once, twice = ([[f"{number:.1e}" for number in row] for row in model.asking.answers(texts)] for _ in range(2))
    configuration = digest_of([model.name, model.classes, model.multi_label, model.strings == 2])
    return {ANSWERS: digest_of(once if once == twice else "unsteady"), CONFIGURATION: configuration}


def base_identity(name: str) -> dict[str, str]:
    """The digests of a base model by its name or folder, without its new head."""
    folder = base_weights.located(name)
    return {
        WEIGHTS: _of_files(sorted(folder.glob("*.safetensors"))),
        TOKENIZER: _tokenizer(read_tokenizer(folder)),
        CONFIGURATION: digest_of(_plain(read_config(folder))),
    }


def files_identity(model: LanguageModel, used: Iterable[Method | GroupMetric | Metric]) -> dict[str, str]:
    """Digests of the files that methods and metrics read (whole files, and the relevant keys of cards), and of the code
    of classes from outside this package, whose version says nothing about them."""
    digests = {}
    for one in used:
        files = one.files(model) if isinstance(one, Method) else one.files if isinstance(one, GroupMetric) else ()
        content = [[path.name, _content(path)] for path in files] + _code(type(one))
        if content:
            digests[f"{FILES}{label_of(one)}"] = digest_of(content)
    return digests


def _code(kind: type) -> list[list[object]]:
    """The source of a class and its bases, without this package's; of one that was typed in, its compiled functions.

    Not noticed is a change of a function that they call.
    """
    known = {__name__.partition(".")[0], *sys.stdlib_module_names}
    return [
        [base.__qualname__, _source(base)] for base in kind.__mro__ if base.__module__.partition(".")[0] not in known
    ]


def _source(kind: type) -> object:
    # A file that was read before may have changed since.
    linecache.checkcache()
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return [_compiled(value.__code__) for value in vars(kind).values() if inspect.isfunction(value)]


def _compiled(code: CodeType) -> list[object]:
    constants = [constant for constant in code.co_consts if not inspect.iscode(constant)]
    return [code.co_name, code.co_code.hex(), constants]


def _content(path: Path) -> object:
    """A file's content; for a card, only the keys that affect scores."""
    if path.suffix != ".json":
        return sha256_of([path])
    held = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in held.items() if name not in _UNDECISIVE}


def _weights(model: nn.Module) -> str:
    if files := origin_of(model):
        dtypes = sorted({str(parameter.dtype) for parameter in model.parameters()})
        return digest_of([_of_files(files), dtypes])
    # A head that an adapter replaces is still in the model, with random values.
    tensors = ((name, value) for name, value in model.state_dict().items() if ".original_module." not in name)
    return _of_tensors(tensors)


def _of_files(files: Iterable[Path]) -> str:
    return digest_of([_of_tensors(load_file(path).items()) for path in files])


def _of_tensors(tensors: Iterable[tuple[str, Any]]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(_unpacked(tensors), key=lambda one: one[0]):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        if type(value.detach()) is Tensor and not value.is_meta and value.numel() and not value.is_complex():
            digest.update(_sampled(value.detach()))
    return digest.hexdigest()[:16]


def _unpacked(entries: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a state; layers that torch quantised keep theirs in tuples, together with their settings."""
    for name, value in entries:
        if isinstance(value, tuple | list):
            yield from _unpacked((f"{name}.{number}", part) for number, part in enumerate(value))
        elif isinstance(value, Tensor) and value.is_quantized:
            yield f"{name}.whole", value.int_repr()
            yield from ((f"{name}.{part}", torch.as_tensor(tensor)) for part, tensor in _scale(value).items())
        elif isinstance(value, Tensor):
            yield name, value


def _scale(value: Tensor) -> dict[str, Any]:
    """The scales and zero points of a quantised tensor."""
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return {"scale": value.q_scale(), "zero": value.q_zero_point()}
    return {"scale": value.q_per_channel_scales(), "zero": value.q_per_channel_zero_points()}


def _sampled(value: Tensor) -> bytes:
    """The sum of all bits, which no order changes, and some values as they are."""
    plain = value.to(torch.int8) if value.dtype == torch.bool else value
    bits = plain.contiguous().view(_BITS[plain.element_size()]).reshape(-1)
    # An odd step no longer than a row reaches every row, and all columns if their number is even.
    longest = value.shape[-1] if value.ndim else 1
    step = min(bits.numel() // SAMPLES, longest - 1) | 1 if longest > 2 else 1
    wide = bits if bits.numel() * bits.element_size() % 8 else _aligned(bits).view(torch.int64)
    whole = wide.sum(dtype=torch.int64).cpu().reshape(1).numpy().tobytes()
    return whole + bits[::step].contiguous().cpu().numpy().tobytes()


def _aligned(bits: Tensor) -> Tensor:
    return bits.clone() if bits.storage_offset() * bits.element_size() % 8 else bits


def _tokenizer(tokenizer: PreTrainedTokenizerBase) -> str:
    special = {name: str(value) for name, value in tokenizer.special_tokens_map.items()}
    if not tokenizer.is_fast:
        return digest_of([tokenizer.get_vocab(), special])
    # Truncation and padding of the last text come before this and do not belong to the tokenizer.
    serialized = tokenizer.backend_tokenizer.to_str()
    return digest_of([hashlib.sha256(serialized[serialized.index('"added_tokens"') :].encode()).hexdigest(), special])


def _plain(config: PreTrainedConfig) -> dict[str, Any]:
    return {name: value for name, value in config.to_diff_dict().items() if name not in _UNSTEADY}
