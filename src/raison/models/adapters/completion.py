"""Classification by completion: a causal language model, a prompt and label words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.passes import Passes
from raison.core.targets.choices import Explained
from raison.models.adapters.checks.output_layers import checked_output_layer
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.outputs.heads import ClassHead
from raison.models.passes.outputs.output_layer import FoundHead
from raison.models.passes.outputs.readout import WordReadout
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.stack.eval_mode import evaluating, quiet
from raison.models.stack.transformer import inner_model
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.prompting import PromptEncoder
from raison.text.prompts import Prompt

CONTENT_FREE = ("N/A", "[MASK]", "...")
"""Content-free inputs. Contextual calibration divides by the mean prediction on them.

Zhao et al. 2021 use "N/A", "[MASK]" and the empty string; texts cannot be empty here, so three dots replace it.
"""


@dataclass(frozen=True, slots=True)
class PromptUse:
    """How a language model classifies: its prompt, what is explained, and whether it is calibrated."""

    prompt: Prompt
    explained: Explained
    calibrate: bool


def completed(model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str, use: PromptUse) -> Classifier:
    """A classifier from a language model.

    Costs two passes of the prompt; calibration adds one pass of three short texts. Raises LoadError if the label words
    do not follow the prompt, UnsupportedError if the model's output layer is not known.
    """
    core = inner_model(model)
    encoder = PromptEncoder(tokenizer, use.prompt, max_tokens(core.config, tokenizer.model_max_length), use.explained)
    readout = WordReadout.of(_output_layer(model, core, encoder, name), encoder.label_ids)
    reading = TaskSetup(encoder, ClassHead(tuple(use.prompt.labels), multi_label=False), readout, CausalCache.of(model))
    adapter = Classifier(model, tokenizer, name, reading)
    if not use.calibrate:
        return adapter
    return adapter.over(model, replace(reading, readout=readout.calibrated(_prior(adapter))))


def _prior(adapter: Classifier) -> torch.Tensor:
    """Log of the mean probability of each class over inputs without content."""
    with torch.no_grad():
        logits = adapter.ask(Passes).logits(adapter.encode(CONTENT_FREE, "token"))
    return logits.softmax(-1).mean(0).log()


def _output_layer(model: nn.Module, core: PreTrainedModel, encoder: PromptEncoder, name: str) -> FoundHead:
    """What gives the model's logits from hidden states."""

    def read(ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        table = torch.tensor([list(ids)], device=core.device)
        return core.base_model(input_ids=table, use_cache=False)[0][0], core(input_ids=table, use_cache=False).logits[0]

    ids = encoder.encode(["fine"], "token", truncate=False).input_ids[0].tolist()
    with evaluating(model), quiet():
        return checked_output_layer(core, name, read, ids, one_stack=True)
