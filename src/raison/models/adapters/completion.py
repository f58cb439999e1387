"""Classification by completion: a causal language model, a prompt and label words."""

from dataclasses import dataclass, replace

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from raison.core.capabilities.passes import Passes
from raison.core.errors import NonFiniteError, UnsupportedError
from raison.core.targets.choices import Explained
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.outputs.heads import ClassHead
from raison.models.passes.outputs.readout import WordReadout
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.stack.nonfinite import way_out
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
    do not follow the prompt, UnsupportedError if the model's output layer is not a plain matrix.
    """
    core = inner_model(model)
    encoder = PromptEncoder(tokenizer, use.prompt, max_tokens(core.config, tokenizer.model_max_length), use.explained)
    readout = WordReadout.of(core.get_output_embeddings(), encoder.label_ids)
    reading = TaskSetup(encoder, ClassHead(tuple(use.prompt.labels), multi_label=False), readout, CausalCache.of(model))
    adapter = Classifier(model, tokenizer, name, reading)
    _check_output(adapter)
    if not use.calibrate:
        return adapter
    return adapter.over(model, replace(reading, readout=readout.calibrated(_prior(adapter))))


def _prior(adapter: Classifier) -> torch.Tensor:
    """Log of the mean probability of each class over inputs without content."""
    with torch.no_grad():
        logits = adapter.ask(Passes).logits(adapter.encode(CONTENT_FREE, "token"))
    return logits.softmax(-1).mean(0).log()


def _check_output(adapter: Classifier) -> None:
    """Check that the output matrix alone gives the model's own logits: some families scale or cap them afterwards."""
    core = adapter.core
    ids = adapter.encode(["fine"], "token").input_ids.to(adapter.device)
    with torch.no_grad(), adapter.quiet():
        recomputed = core.get_output_embeddings()(core.base_model(input_ids=ids, use_cache=False)[0][:, -1])
        plain = core(input_ids=ids, use_cache=False).logits[:, -1]
    if not plain.isfinite().all():
        raise NonFiniteError(f"{adapter.name} returned NaN or infinite logits after its prompt. {way_out(core.dtype)}")
    tolerance = 1e-3 if plain.dtype == torch.float32 else 0.05
    if not torch.allclose(recomputed.float(), plain.float(), atol=tolerance, rtol=tolerance):
        raise UnsupportedError(
            f"cannot read label words of {adapter.name}",
            [f"{type(core).__name__} changes the logits after its output matrix"],
            "Fine-tune it as a sequence classifier (`raison train classifier`).",
        )
