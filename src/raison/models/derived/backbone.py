"""The transformer inside a model, and how to make the same model over a twin of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import nn
from transformers import PreTrainedModel

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.statements import Statements
from raison.models.passes.outputs.readout import HeadReadout, WordReadout
from raison.models.stack.transformer import inner_model


@dataclass(frozen=True, slots=True)
class Backbone:
    """`tree` is the module that runs, `core` the transformers model in it.

    `over` makes the same model over a twin of the tree.
    """

    tree: nn.Module
    core: PreTrainedModel
    over: Callable[[nn.Module], LanguageModel]


def backbone_of(model: LanguageModel) -> Backbone | None:
    """The transformer inside a model; None if only answers are known."""
    if isinstance(model, Classifier):
        return Backbone(model.model, model.core, partial(_classifier, model))
    if isinstance(model, Statements) and isinstance(model.writer, Generator):
        return Backbone(model.writer.model, model.writer.core, partial(_statements, model.writer, model))
    return None


def _classifier(adapter: Classifier, tree: nn.Module) -> Classifier:
    """Texts are encoded by the original. A calibrated prompt keeps its prior, as the head keeps its weights."""
    readout = adapter.readout
    if isinstance(readout, WordReadout | HeadReadout):
        twin_readout = replace(readout, head=readout.head.of(inner_model(tree)))
        return adapter.over(tree, replace(adapter.use, readout=twin_readout, cache=None))
    if readout is not None:
        raise InputError(f"randomising blocks of {adapter.name} is possible for its classes, not for generated tokens.")
    return adapter.over(tree, adapter.use)


def _statements(writer: Generator, statements: Statements, tree: nn.Module) -> Statements:
    """The same answers, whatever the twin itself would write."""
    twin = Generator(tree, writer.tokenizer, writer.name)
    return Statements(twin, [*statements.answers.values()])
