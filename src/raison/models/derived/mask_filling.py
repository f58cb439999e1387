"""Masked language models that fill in tokens of a model's texts, and the model's predictions for them."""

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import text_classifier
from raison.models.derived.masked_lm import FillIn
from raison.models.passes.removal import tokens_kept

_KNOWN: WeakKeyDictionary[LanguageModel, dict[str, FillIn]] = WeakKeyDictionary()
"""Fillers, kept as long as their models are in use."""


def filler_of(model: LanguageModel, name: str) -> FillIn:
    """The masked language model `name`, checked against the model's tokenizer. Raises LoadError or InputError.

    Raises UnsupportedError unless the model is a classifier with its own tokenizer.
    """
    reading = text_classifier(model)
    if reading is None:
        raise UnsupportedError(
            f"tokens cannot be filled in for {model.name}",
            ["it is not a classifier, or it explains generated text"],
            "Replace units by the model's own removal (filler=None).",
        )
    known = _KNOWN.setdefault(model, {})
    if name not in known:
        known[name] = FillIn(name, reading.tokenizer)
    return known[name]


def filled_logits(
    model: LanguageModel,
    encoding: Encoding,
    fills: Int[Tensor, "batch tokens"],
    keeps: Sequence[Bool[Tensor, "_masks _units"]],
    removal: str,
) -> list[Float[Tensor, "_masks classes"]]:
    """Class logits in float64 of each text under each of its keeps, absent units replaced by `fills`.

    One forward pass per keep: each is a separate text, from which nothing is removed.
    """
    rows = [text for text, text_keeps in enumerate(keeps) for _ in text_keeps]
    counts = [len(text_keeps) for text_keeps in keeps]
    if not rows:
        return [torch.zeros(0, len(model.classes), dtype=torch.float64) for _ in keeps]
    part = encoding.select(rows)
    width = part.input_ids.shape[1]
    stays = torch.ones(part.input_ids.shape, dtype=torch.bool)
    for text, of_text in enumerate(stays.split(counts)):
        own = tokens_kept(encoding, text, keeps[text])[:, :width]
        of_text[:, : own.shape[1]] = own
    mixed = replace(part, input_ids=torch.where(stays, part.input_ids, fills[rows, :width]))
    logits = torch.cat(model.masked_logits(mixed, mixed.whole, removal)).double()
    return list(torch.split(logits, counts))
