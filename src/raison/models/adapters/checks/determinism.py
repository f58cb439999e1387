"""Whether a model gives equal outputs for equal inputs."""

import warnings
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsteadyWarning
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.classifier import Classifier
from raison.models.passes.batching import TokenBudget, shrinking
from raison.models.stack.eval_mode import drawing

_ROUNDING = 1e-5
"""Relative to the largest logit. Equal calls differ by rounding only if a device sums in no fixed order."""

_KNOWN: "WeakKeyDictionary[nn.Module | BlackBox, float]" = WeakKeyDictionary()


def unsteady(model: LanguageModel, encoding: Encoding) -> str | None:
    """A message if a model's logits for the first text differ between two equal calls; None otherwise.

    Costs two passes of one text for a new model, none later. An unsteady model gives one UnsteadyWarning. Random draws
    of the model leave the caller's random state unchanged; those of a caller's function are not undone.
    """
    if not isinstance(model, BlackBox | Classifier):
        return None
    key = model if isinstance(model, BlackBox) else model.core
    if key not in _KNOWN:
        _KNOWN[key] = change(model, encoding)
        if warning := _said(_KNOWN[key]):
            warnings.warn(f"{model.name}: {warning}.", UnsteadyWarning, stacklevel=4)
    return _said(_KNOWN[key])


def change(model: BlackBox | Classifier, encoding: Encoding) -> float:
    """The largest difference of a logit, or of a function's answer, between two equal calls on the first text.

    0 if it is within rounding.
    """
    first = encoding.select([0])
    if isinstance(model, BlackBox):
        with drawing():
            once, twice = (torch.from_numpy(model.asking.answers(first.texts)) for _ in range(2))
        rounding = _ROUNDING
    else:
        once, twice = _two_passes(model, first)
        rounding = max(_ROUNDING, 8 * torch.finfo(model.core.dtype).eps)
    largest = float((once - twice).abs().max())
    return largest if largest > rounding * float(once.abs().max()) else 0.0


def _two_passes(model: Classifier, first: Encoding) -> tuple[Tensor, Tensor]:
    devices = [model.device.index or 0] if model.device.type == "cuda" else []

    def call(_rows: list[int]) -> Tensor:
        return model.ask(Passes).logits(first).double()

    with drawing(devices=devices), torch.no_grad():
        (_, once), (_, twice) = (next(shrinking(TokenBudget(1), call, [0])) for _ in range(2))
    return once, twice


def _said(largest: float) -> str | None:
    if not largest:
        return None
    return (
        f"the model's answers differ between equal calls (an output by {largest:.2g}), so every score is partly "
        "random: look for dropout or sampling inside it"
    )
