"""Whether an adapter gives the same outputs as the object that its model came from."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from raison.core.errors import LoadError, UnsupportedError
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.core.targets.target import probabilities
from raison.models.adapters.blackbox.asking import Function
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.stack.eval_mode import evaluating

Adapt = Callable[[nn.Module, PreTrainedTokenizerBase], LanguageModel | Generator]
"""A model and its tokenizer to the adapter that fits them."""

CLOSE = 1e-4
"""Tolerance for single precision, which stays far below it. For half precision it is 8 units of rounding."""


def checked(
    adapt: Callable[[], LanguageModel | Generator], function: Function, texts: Sequence[Text]
) -> Classifier | str:
    """The adapter of an object's model and tokenizer if it gives the object's outputs, otherwise the reason."""
    try:
        model = adapt()
    except (LoadError, UnsupportedError) as error:
        return f"its model and tokenizer cannot be used: {error}".rstrip(".")
    if not isinstance(model, Classifier):
        return "its model is not a classifier"
    with evaluating(model.model):
        same = _gives(model, function(list(texts)), texts)
    return model if same else "its numbers are not those of its model and tokenizer, so it is asked as a function"


def _gives(model: Classifier, numbers: Any, texts: Sequence[Text]) -> bool:
    """Whether each text's numbers are the model's probabilities or its logits."""
    # A model may read less than the probes, and then cuts them itself.
    encoding = model.encode(texts, "word", truncate=True)
    logits = torch.cat(model.masked_logits(encoding, encoding.whole, model.removals[0])).double()
    wanted = torch.as_tensor(numbers, dtype=torch.float64).reshape(len(texts), -1)
    if wanted.shape != logits.shape:
        return False
    close = max(CLOSE, 8 * torch.finfo(model.core.dtype).eps)
    candidates = [logits] if model.outputs == "number" else [logits, probabilities(logits, model.multi_label)]
    return any(torch.allclose(wanted, outputs, atol=close, rtol=close) for outputs in candidates)
