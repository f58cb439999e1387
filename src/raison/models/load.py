"""From a demo name, a Hub id, a folder or a model in hand to the adapter that fits."""

from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from raison.core.errors import InputError, LoadError
from raison.core.model import LanguageModel
from raison.models import zoo
from raison.models.classifier import Classifier, inner_model
from raison.models.quiet import quiet

HEAD_WEIGHTS = ("score.weight", "classifier.weight", "classifier.out_proj.weight")
"""Last layers of classification heads, by which an adapter's number of classes is told."""

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "auto": "auto"}


def load(
    model: str | Path | nn.Module,
    tokenizer: Tokenizer | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    device_map: str | dict[str, object] | None = None,
) -> LanguageModel:
    """Make a classifier ready to be explained.

    Args:
        model: a demo name ("demo/sst2"), a Hub id, a folder (also of a LoRA adapter), or a transformers or PEFT
            model, which is used as it is: never moved, changed or put into another mode.
        tokenizer: the model's, when a model in hand is given.
        device: where to put a model that is loaded here; "cuda", "cpu", ...
        dtype: of a model that is loaded here: "float32", "bfloat16", "float16", a torch dtype, or None for its own.
        device_map: passed on to transformers.

    Returns:
        The adapter; its `model` and `tokenizer` are the objects given.

    Raises:
        LoadError: not found, no classification head, no fast tokenizer. InputError: settings that do not fit.
    """
    if not isinstance(model, str | Path):
        return _in_hand(model, tokenizer, any(setting is not None for setting in (device, dtype, device_map)))
    if tokenizer is not None:
        raise InputError("a tokenizer goes with a model in hand: load(model, tokenizer); a name brings its own.")
    if device is not None and device_map is not None:
        raise InputError("device and device_map exclude each other: give one of them.")
    name = str(model)
    ready_made = name.startswith(zoo.PREFIX) or (Path(name) / zoo.CARD).is_file()
    if ready_made and device_map is not None:
        raise InputError(f"'{name}' is put together in memory, so device_map does not apply to it: give device=.")
    placing = {"dtype": _dtype(dtype), "device_map": device_map}
    if ready_made:
        loaded, own = zoo.load_demo(name) if name.startswith(zoo.PREFIX) else zoo.load_adapter(Path(name))
    elif (Path(name) / "adapter_config.json").is_file():
        loaded, own = _foreign_adapter(Path(name), placing)
    else:
        loaded, own = _pretrained(name, placing), _tokenizer(name)
    if ready_made and isinstance(placing["dtype"], torch.dtype):
        loaded = loaded.to(dtype=placing["dtype"])
    if device is not None:
        loaded = loaded.to(device)
    return Classifier(loaded.eval(), own, name)


def _in_hand(model: nn.Module, tokenizer: Tokenizer | None, placed: bool) -> LanguageModel:
    if tokenizer is None:
        raise InputError("a model in hand needs its tokenizer: load(model, tokenizer).")
    if placed:
        raise InputError("device, dtype and device_map are for models loaded by name: a model in hand is never moved.")
    core = inner_model(model)
    if not type(core).__name__.endswith("ForSequenceClassification"):
        raise LoadError(_no_head(type(core).__name__, ""))
    return Classifier(model, tokenizer, core.config.name_or_path or type(core).__name__)


def _pretrained(name: str, placing: dict[str, object]) -> PreTrainedModel:
    """A whole checkpoint; one whose head would have to be made up is refused."""
    config = _config(name)
    try:
        # A head that is missing from the checkpoint is drawn at random before it is refused.
        with torch.random.fork_rng(), quiet():
            model, info = AutoModelForSequenceClassification.from_pretrained(
                name, config=config, use_safetensors=True, output_loading_info=True, **placing
            )
    except ValueError as error:
        if "AutoModelForSequenceClassification" in str(error):
            raise LoadError(_no_head(name, f"transformers has none for the type '{config.model_type}'")) from None
        raise
    except OSError as error:
        raise LoadError(f"cannot load '{name}': {_first_line(error)}") from None
    missing = sorted(info["missing_keys"])
    if missing:
        raise LoadError(_no_head(name, f"the checkpoint lacks {', '.join(missing[:4])}"))
    return model


def _foreign_adapter(folder: Path, placing: dict[str, object]) -> tuple[PreTrainedModel, Tokenizer]:
    """A PEFT adapter that was not trained here: its head tells the number of classes, its config the base."""
    from peft import PeftConfig, PeftModel, load_peft_weights

    base = PeftConfig.from_pretrained(folder).base_model_name_or_path
    heads = [
        tensor for key, tensor in load_peft_weights(str(folder), device="cpu").items() if key.endswith(HEAD_WEIGHTS)
    ]
    if not base or not heads:
        raise LoadError(_no_head(str(folder), "the adapter names no base model or saves no head"))
    with torch.random.fork_rng(), quiet():
        try:
            model = AutoModelForSequenceClassification.from_pretrained(
                base, num_labels=len(heads[-1]), use_safetensors=True, **placing
            )
        except (OSError, ValueError) as error:
            raise LoadError(f"cannot load '{base}', the base of the adapter {folder}: {_first_line(error)}") from None
        model = PeftModel.from_pretrained(model, folder).merge_and_unload()
    own = (folder / "tokenizer_config.json").is_file()
    return model, _tokenizer(str(folder) if own else base)


def _config(name: str) -> object:
    try:
        return AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        if Path(name).is_dir():
            raise LoadError(f"the folder '{name}' holds no model: {_first_line(error)}") from None
        known = ", ".join(zoo.names())
        raise LoadError(
            f"no model '{name}': not a demo model ({known}), not a folder, and the Hub answered: {_first_line(error)}"
        ) from None


def _tokenizer(name: str) -> Tokenizer:
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot load the tokenizer of '{name}': {_first_line(error)}") from None


def _no_head(name: str, why: str) -> str:
    reason = f" ({why})" if why else ""
    return (
        f"'{name}' has no trained classification head{reason}: give a model that was fine-tuned for sequence "
        "classification, or train one with `raison train classifier`."
    )


def _dtype(dtype: str | torch.dtype | None) -> object:
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise InputError(f"unknown dtype '{dtype}'; known: {', '.join(DTYPES)}.")
        return DTYPES[dtype]
    return "auto" if dtype is None else dtype


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
