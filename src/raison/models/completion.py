"""Classification by completion: a causal language model, a prompt and label words."""

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from raison.core.errors import UnsupportedError
from raison.models.classifier import Classifier, Completion, inner_model
from raison.models.limits import max_tokens
from raison.models.prompting import PromptEncoder
from raison.models.readout import WordReadout
from raison.text.prompts import Prompt

CONTENT_FREE = ("N/A", "[MASK]", "...")
"""Inputs that say nothing, whose mean answer contextual calibration divides by.

Zhao et al. 2021 take "N/A", "[MASK]" and the empty string; here no text is empty, and three dots stand for it.
"""


def completed(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    prompt: Prompt,
    use: tuple[str, bool],
) -> Classifier:
    """A classifier from a language model; `use` says what is explained ("input", "prompt"), and whether to calibrate.

    Costs two passes of the prompt, and with calibration one of three short texts. Raises LoadError where the label
    words do not follow the prompt, UnsupportedError where the model's output layer is more than a matrix.
    """
    explained, calibrate = use
    core = inner_model(model)
    encoder = PromptEncoder(tokenizer, prompt, max_tokens(core.config, tokenizer.model_max_length), explained)
    readout = WordReadout.of(core.get_output_embeddings(), encoder.label_ids)
    classes = tuple(prompt.labels)
    adapter = Classifier(model, tokenizer, name, Completion(classes, encoder, readout))
    _check_output(adapter, encoder.label_ids)
    if not calibrate:
        return adapter
    return Classifier(model, tokenizer, name, Completion(classes, encoder, readout.calibrated(_prior(adapter))))


def _prior(adapter: Classifier) -> torch.Tensor:
    """Log of the mean probability of each class over inputs without content."""
    with torch.no_grad():
        logits = adapter.logits(adapter.encode(CONTENT_FREE, "token"))
    return logits.softmax(-1).mean(0).log()


def _check_output(adapter: Classifier, label_ids: tuple[tuple[int, ...], ...]) -> None:
    """The output matrix alone gives the model's own logits: some families scale or cap them afterwards."""
    encoding = adapter.encode(["fine"], "token")
    with torch.no_grad(), adapter.quiet():
        own = adapter.logits(encoding)
        ids = encoding.input_ids.to(adapter.device)
        if any(len(label) > 1 for label in label_ids):
            return
        plain = adapter.core(input_ids=ids, use_cache=False).logits[:, -1, [label[0] for label in label_ids]].float()
    half = own.new_tensor(0.05 if next(adapter.core.parameters()).dtype != torch.float32 else 1e-3)
    if not torch.allclose(own, plain, atol=float(half), rtol=float(half)):
        raise UnsupportedError(
            f"cannot read label words of {adapter.name}",
            [f"{type(adapter.core).__name__} changes the logits after its output matrix"],
            "Fine-tune it as a sequence classifier (`raison train classifier`).",
        )
