"""Whether a model says the same when it is asked the same twice."""

import warnings
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.encoding import Encoding
from raison.core.errors import UnsteadyWarning
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.nested import NestedReader
from raison.models.passes.batching import TokenBudget, shrinking
from raison.models.stack.modes import drawing

_ROUNDING = 1e-5
"""Relative to the largest logit. Equal calls round alike, but for sums in no fixed order on some devices."""

_KNOWN: "WeakKeyDictionary[nn.Module, float]" = WeakKeyDictionary()


def unsteady(model: LanguageModel, encoding: Encoding) -> str | None:
    """A message if a model's logits for the first text differ between two equal calls; None otherwise.

    Two passes of one text when a model is first seen, none later, and one UnsteadyWarning. Random draws in these passes
    leave the caller's random state unchanged.
    """
    if not isinstance(model, Classifier | NestedReader):
        return None
    if model.core not in _KNOWN:
        _KNOWN[model.core] = change(model, encoding)
        if found := _said(_KNOWN[model.core]):
            warnings.warn(f"{model.name}: {found}.", UnsteadyWarning, stacklevel=4)
    return _said(_KNOWN[model.core])


def change(model: Classifier | NestedReader, encoding: Encoding) -> float:
    """The largest difference of a logit between two equal calls on the first text; 0 where it is rounding."""
    first = encoding.select([0])
    devices = [model.device.index or 0] if model.device.type == "cuda" else []

    def call(_rows: list[int]) -> Tensor:
        return model.ask(Passes).logits(first).double()

    with drawing(devices=devices), torch.no_grad():
        (_, once), (_, twice) = (next(shrinking(TokenBudget(1), call, [0])) for _ in range(2))
    largest = float((once - twice).abs().max())
    rounding = max(_ROUNDING, 8 * torch.finfo(model.core.dtype).eps)
    return largest if largest > rounding * float(once.abs().max()) else 0.0


def _said(largest: float) -> str | None:
    if not largest:
        return None
    return (
        f"the model's answers differ between equal calls (a logit by {largest:.2g}), so every score is partly chance: "
        "look for dropout or sampling inside its forward pass"
    )
