"""Folders of PEFT adapters from elsewhere: the kind of model, its number of outputs, and what neither file holds."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)
from transformers import PreTrainedTokenizerBase as Tokenizer

from raison.core.errors import InputError, LoadError
from raison.models.loading.checkpoints import no_head, pretrained
from raison.models.loading.pretrained import (
    adapter_config,
    adapter_tensors,
    load_errors,
    merged,
    read_checkpoint,
    read_config,
    read_tokenizer,
)
from raison.models.loading.ready_made import zoo
from raison.models.stack.eval_mode import drawing

TASKS: Final[Mapping[str, Any]] = {
    "SEQ_CLS": AutoModelForSequenceClassification,
    "TOKEN_CLS": AutoModelForTokenClassification,
    "QUESTION_ANS": AutoModelForQuestionAnswering,
    "CAUSAL_LM": AutoModelForCausalLM,
    "SEQ_2_SEQ_LM": AutoModelForSeq2SeqLM,
}
"""The classes of models by PEFT's names of tasks."""
CLASSIFIERS: Final = ("SEQ_CLS", "TOKEN_CLS")
"""Tasks whose number of outputs is the adapter's."""
ANSWERS: Final = ".qa_outputs.weight"
HEADS: Final = (
    ".score.weight",
    ".classifier.weight",
    ".classifier.out_proj.weight",
    ".classification_head.out_proj.weight",
)
"""Heads by which the task of an adapter is known that names none."""
PROBE: Final = 9973
"""A number of outputs that no other size in a model equals."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What the caller says of an adapter's outputs, which its folder does not tell: names, or that each is a label."""

    classes: tuple[str, ...] | None = None
    multi_label: bool = False

    @classmethod
    def of(cls, classes: Sequence[str] | None, multi_label: bool) -> "Labels":
        """The labels as a caller gives them."""
        return cls(None if classes is None else tuple(map(str, classes)), multi_label)

    def settings(self, outputs: int) -> dict[str, object]:
        """Settings of a model with so many outputs. Raises InputError."""
        settings: dict[str, object] = {"num_labels": outputs}
        if self.classes is not None:
            if len(self.classes) != outputs:
                raise InputError(f"the adapter has {outputs} outputs, and classes= names {len(self.classes)}.")
            settings |= {"id2label": dict(enumerate(self.classes)), "label2id": _numbers(self.classes)}
        if self.multi_label:
            settings["problem_type"] = "multi_label_classification"
        return settings


def is_foreign_adapter(folder: Path) -> bool:
    """Whether the folder holds a PEFT adapter from elsewhere, not one of `raison train`."""
    return os.path.isfile(folder / "adapter_config.json") and not zoo.is_adapter(folder)


def foreign_adapter(
    folder: Path, placing: dict[str, object], prompted: bool, labels: Labels
) -> tuple[PreTrainedModel, Tokenizer]:
    """The base model with the adapter merged, and the tokenizer of the adapter's folder, or else of the base.

    Raises LoadError, also for weights that are in neither of the two and would be random; InputError for labels that do
    not fit.
    """
    config, saved = adapter_config(folder), _plain_names(adapter_tensors(folder))
    if not config.base:
        raise LoadError(no_head(str(folder), "the adapter names no base model"))
    task = config.task or _task_of(saved)
    if task is not None and task not in TASKS:
        raise LoadError(
            f"the adapter '{folder}' is for {task}, which predicts nothing: load the model with it as an object. Known "
            f"tasks: {', '.join(TASKS)}."
        )
    if labels != Labels() and task not in CLASSIFIERS:
        raise InputError(f"classes= and multi_label= name the outputs of a classifier, and '{folder}' adapts none.")
    if task is None:
        # The head, if any, is that of the base.
        with _reading_base_of(folder):
            model = pretrained(config.base, placing, prompted)
    else:
        head = labels.settings(_outputs(TASKS[task], config.base, saved, folder)) if task in CLASSIFIERS else {}
        model = _headed(TASKS[task], config.base, {**head, **placing}, saved, folder)
    _resize(model, saved, folder)
    has_tokenizer = (folder / "tokenizer_config.json").is_file()
    return merged(model, folder), read_tokenizer(folder if has_tokenizer else config.base)


def _plain_names(saved: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The saved weights by their names in the model without an adapter."""
    return {
        name.removeprefix("base_model.model.").replace(".base_layer.", ".").replace(".modules_to_save.", "."): tensor
        for name, tensor in saved.items()
    }


def _task_of(saved: Mapping[str, Tensor]) -> str | None:
    """The task of an adapter that names none, by the head that it saved; None without a head."""
    names = [f".{name}" for name in saved]
    if any(name.endswith(ANSWERS) for name in names):
        return "QUESTION_ANS"
    return "SEQ_CLS" if any(name.endswith(HEADS) for name in names) else None


@contextmanager
def _reading_base_of(folder: Path) -> Iterator[None]:
    """LoadErrors about a base name its adapter."""
    try:
        yield
    except LoadError as error:
        raise LoadError(f"{error} It is the base of the adapter {folder}.") from error.__cause__


def _headed(
    kind: Any, base: str, settings: Mapping[str, object], saved: Mapping[str, Tensor], folder: Path
) -> PreTrainedModel:
    """The base with a head whose weights the adapter brings. Raises LoadError for weights that neither has."""
    with _reading_base_of(folder):
        checkpoint = read_checkpoint(kind, base, **settings)
    nowhere = [name for name in checkpoint.missing if name not in saved]
    if nowhere:
        raise LoadError(
            f"the weights {', '.join(nowhere[:4])} are neither in the adapter '{folder}' nor in its base '{base}', and "
            "would be random: train the adapter with these modules in modules_to_save=, or load the trained object "
            "itself."
        )
    return checkpoint.model


def _outputs(kind: Any, base: str, saved: Mapping[str, Tensor], folder: Path) -> int:
    """The number of the adapter's outputs. Raises LoadError if it has saved no head.

    A model without weights shows which of them have as many rows as there are outputs.
    """
    with _reading_base_of(folder), load_errors(f"'{base}'", base), drawing(), torch.device("meta"):
        shape = kind.from_config(read_config(base, num_labels=PROBE), trust_remote_code=False)
    heads = [name for name, weight in shape.named_parameters() if weight.shape[:1] == (PROBE,) and name in saved]
    if not heads:
        raise LoadError(no_head(str(folder), "the adapter contains none"))
    return len(saved[heads[0]])


def _numbers(classes: tuple[str, ...]) -> dict[str, int]:
    return {name: number for number, name in enumerate(classes)}


def _resize(model: PreTrainedModel, saved: Mapping[str, Tensor], folder: Path) -> None:
    """Give the model as many tokens as the adapter's table of embeddings, which is saved if tokens were added."""
    table = model.get_input_embeddings().weight
    assert isinstance(table, Tensor), "a table of embeddings has weights"
    names = [name for name, weight in model.named_parameters(remove_duplicate=False) if weight is table]
    sizes = {len(saved[name]) for name in names if name in saved} - {len(table)}
    if sizes:
        with load_errors(f"the adapter '{folder}'", folder), drawing():
            model.resize_token_embeddings(max(sizes), mean_resizing=False)
