"""The only file that reads models through transformers and PEFT: never code of a folder, never pickled weights."""

import struct
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import LoadError, RaisonError
from raison.hub import patiently
from raison.models.loading.merged_adapters import remember
from raison.models.stack.eval_mode import drawing, quiet

ModelT = TypeVar("ModelT", bound=nn.Module)

ADAPTER = "adapter_model.safetensors"
_SHOWN = 4
"""Names of missing weights that a message lists."""

_FAILURES = (
    OSError,
    ValueError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    ImportError,
    ArithmeticError,
    AssertionError,
    SafetensorError,
    struct.error,
    StrictDataclassError,
    UserWarning,
)
"""What torch, transformers, tokenizers and PEFT raise on unknown devices and missing or broken files."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded model, and the names of weights that are random: missing from its files, or of another size there.

    A size can only differ if the settings allow it.
    """

    model: PreTrainedModel
    missing: tuple[str, ...]
    resized: tuple[str, ...] = ()

    @property
    def missing_below_head(self) -> tuple[str, ...]:
        """Missing weights outside the head. A pooler belongs to the head: many checkpoints lack it."""
        return tuple(name for name in self.missing if name.startswith(self._body) and "pooler" not in name.split("."))

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the head's weights; () for a model that is all body."""
        return tuple(name for name, _ in self.model.named_parameters() if not name.startswith(self._body))

    @property
    def resized_below_head(self) -> tuple[str, ...]:
        """Weights of another size outside the head."""
        return tuple(name for name in self.resized if name.startswith(self._body))

    @property
    def _body(self) -> str:
        inner = self.model.base_model
        return "" if inner is self.model else f"{self.model.base_model_prefix}."


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """The name of the model that a PEFT adapter changes ("" if it names none), and PEFT's name of its task."""

    base: str
    task: str | None


@contextmanager
def load_errors(what: str, source: str | Path) -> Iterator[None]:
    """LoadError with one line, "cannot load `what`: why", for any error of the libraries."""
    with _asked(source) as silent:
        try:
            with quiet():
                yield
        except RaisonError:
            raise
        except _FAILURES as error:
            raise LoadError(f"cannot load {what}: {silent or _reason(error, Path(source))}.") from error
        except Exception as error:
            # tokenizers raises a plain Exception for a file that it cannot parse.
            if type(error) is not Exception:
                raise
            raise LoadError(f"cannot load {what}: {_reason(error, Path(source))}.") from error


def _asked(source: str | Path) -> AbstractContextManager[str]:
    """Time limits for requests to the Hub, which are only sent for names that are not folders."""
    local = str(source) in ("", ".") or Path(source).exists()
    return nullcontext("") if local else patiently()


def read_config(source: str | Path, **settings: object) -> PreTrainedConfig:
    """The configuration of a folder or Hub id. Raises LoadError."""
    with load_errors(f"the configuration of '{source}'", source):
        return AutoConfig.from_pretrained(source, trust_remote_code=False, **settings)


def read_tokenizer(source: str | Path, **settings: object) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or Hub id. Raises LoadError."""
    with load_errors(f"the tokenizer of '{source}'", source):
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, **settings)
    if _is_blank(tokenizer):
        raise LoadError(
            f"'{source}' has no tokenizer: save the model's own there (tokenizer.save_pretrained), or call "
            "load(model, tokenizer)."
        )
    return tokenizer


def _is_blank(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether it only knows special tokens, as the one that the library makes where it finds no files."""
    added = tokenizer.added_tokens_decoder
    return not any(
        number not in added and any(map(str.isalnum, token)) for token, number in tokenizer.get_vocab().items()
    )


def read_checkpoint(kind: Any, source: str | Path, **settings: object) -> Checkpoint:
    """A model of the class `kind` from safetensors, with what is missing named. Raises LoadError.

    `settings` go to `from_pretrained`. The caller's random state stays as it was.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with load_errors(f"'{source}'", source), drawing(devices=devices):
        model, info = kind.from_pretrained(
            source, trust_remote_code=False, use_safetensors=True, output_loading_info=True, **settings
        )
    return Checkpoint(
        model, tuple(sorted(info["missing_keys"])), tuple(sorted(name for name, *_ in info["mismatched_keys"]))
    )


def read_whole(kind: type, source: str | Path, **settings: object) -> PreTrainedModel:
    """The model of `read_checkpoint`, with every weight required. Raises LoadError with the missing ones."""
    checkpoint = read_checkpoint(kind, source, **settings)
    if checkpoint.missing:
        raise LoadError(lacking(source, checkpoint.missing))
    return checkpoint.model


def read_with_new_head(kind: type, source: str | Path, **settings: object) -> PreTrainedModel:
    """The model of `read_checkpoint`; a missing head is random, for a model that will be trained."""
    checkpoint = read_checkpoint(kind, source, **settings)
    if checkpoint.missing_below_head:
        raise LoadError(lacking(source, checkpoint.missing_below_head))
    return checkpoint.model


def read_with_fresh_head(kind: type, source: str | Path, **settings: object) -> PreTrainedModel:
    """As `read_with_new_head`, with a random head even if the files have one, of any size.

    Torch's random state decides the head, which is the same as for the same body without a head.
    """
    checkpoint = read_checkpoint(kind, source, ignore_mismatched_sizes=True, **settings)
    if checkpoint.resized_below_head:
        # Only the head may have another size: this raises.
        checkpoint = read_checkpoint(kind, source, **settings)
    if checkpoint.missing_below_head:
        raise LoadError(lacking(source, checkpoint.missing_below_head))
    if {*checkpoint.head} - {*checkpoint.missing}:
        with load_errors(f"'{source}'", source):
            _renew(checkpoint.model, {*checkpoint.head, *checkpoint.missing})
    return checkpoint.model


def _renew(model: PreTrainedModel, names: set[str]) -> None:
    """Draw the weights of these names again, as the model's class does. The rest stays."""
    # These marks keep transformers from drawing a weight.
    mark = "_is_hf_initialized"
    for path, module in model.named_modules():
        own = {name: weight for name, weight in module.named_parameters(path, recurse=False) if name in names}
        setattr(module, mark, not own)
        for weight in module.parameters(recurse=False):
            setattr(weight, mark, all(weight is not other for other in own.values()))
    model.initialize_weights()


def merged(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with a PEFT adapter merged into its weights, in evaluation mode. Raises LoadError."""
    # Imported here: importing peft takes longer than loading a plain model.
    from peft import PeftModel

    check_adapter(folder)
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with (
        load_errors(f"the adapter '{folder}'", folder),
        drawing(devices=devices),
        warnings.catch_warnings(),
    ):
        # Missing weights of an adapter would otherwise be random.
        warnings.filterwarnings("error", message="Found missing adapter keys", category=UserWarning)
        base = Path(model.name_or_path or "")
        made: PreTrainedModel = PeftModel.from_pretrained(model, folder, trust_remote_code=False).merge_and_unload()
    if base.is_dir():
        remember(made, (base, folder))
    return made.eval()


def adapter_config(folder: Path) -> AdapterConfig:
    """What the folder of a PEFT adapter says of itself. Raises LoadError."""
    from peft import PeftConfig

    with load_errors(f"the adapter '{folder}'", folder):
        config = PeftConfig.from_pretrained(str(folder), trust_remote_code=False)
        task = config.task_type
        return AdapterConfig(
            config.base_model_name_or_path or "", None if task is None else str(getattr(task, "value", task))
        )


def adapter_tensors(folder: Path) -> dict[str, Tensor]:
    """The weights of a PEFT adapter, on the CPU. Raises LoadError."""
    check_adapter(folder)
    with load_errors(f"the adapter '{folder}'", folder):
        return load_file(folder / ADAPTER)


def check_adapter(folder: Path) -> None:
    """Raise LoadError unless a PEFT adapter has safetensors weights."""
    if not (folder / ADAPTER).is_file():
        raise LoadError(f"{folder} has no {ADAPTER}; adapters in pickle files are not read.")


def moved(model: ModelT, device: str | torch.device) -> ModelT:
    """The model on a device. Raises LoadError if this machine or this torch does not have it."""
    with load_errors(f"the model onto '{device}'", ""):
        return model.to(device)


def lacking(source: str | Path, missing: tuple[str, ...]) -> str:
    """The error text for a checkpoint that lacks weights and would give random outputs."""
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return (
        f"'{source}' lacks the weights {', '.join(missing[:_SHOWN])}{more}, which would be random: its files do not "
        "match its config.json. Save or download it again."
    )


def _reason(error: Exception, source: Path) -> str:
    line, *others = [line for line in map(str.strip, str(error).splitlines()) if line] or [type(error).__name__]
    # torch names what does not fit on the lines after the first.
    line = (f"{line} {others[0]}" if others and line.endswith(":") else line).rstrip(".")
    if isinstance(error, ImportError | UserWarning | RuntimeError | AssertionError):
        return line
    if isinstance(error, SafetensorError):
        return f"its weights are damaged or cut off ({line}); download or copy them again"
    if isinstance(error, OSError) and "safetensors" in line and (pickled := _pickles(source)):
        return (
            f"its weights are in {pickled}, a pickle file, which could run arbitrary code and is not read. If you "
            f"trust it, convert it once: {_conversion(source)}"
        )
    if isinstance(error, OSError | ValueError):
        return line
    return f"one of its files is damaged or of another kind ({type(error).__name__}: {line})"


def _pickles(source: Path) -> str:
    pickles = sorted(path.name for path in source.glob("*.bin")) if source.is_dir() else []
    return pickles[0] if pickles else ""


def _conversion(source: Path) -> str:
    """One line of shell that converts the model and its tokenizer to safetensors."""
    return (
        'python -c "import sys, transformers as t; a, b = sys.argv[1:]; '
        "c = t.AutoConfig.from_pretrained(a).architectures[0]; "
        "getattr(t, c).from_pretrained(a).save_pretrained(b); "
        f't.AutoTokenizer.from_pretrained(a).save_pretrained(b)" {quote(str(source))} {quote(f"{source}-safetensors")}'
    )
