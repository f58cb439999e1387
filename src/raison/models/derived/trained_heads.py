"""Trained weights of a writer's attention heads (AT2), saved next to it in one small file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.errors import UnsupportedError
from raison.core.model import LanguageModel
from raison.core.settings.reading import Fields
from raison.jobs.identity import digest_of
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.forced_answer import ForcedAnswer
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.derived import cards
from raison.models.derived.explainers import TOLERANCE, usual_folder
from raison.models.derived.per_model import made_once
from raison.models.tokens.sourced import Sourced
from raison.models.tokens.written_answer import WrittenAnswer

KIND = "at2"
PROBE = ("The old house stood by the river. In the evening the children went", " down to the water with their father.")
"""A prompt and a continuation, whose probability identifies a model."""
FACTOR = 5.0
"""The largest ratio between a token's probabilities under the same model in two precisions."""


@dataclass(frozen=True, slots=True)
class HeadsCard:
    """The weight of each attention head of a model, by layers.

    `vocabulary` (a digest of PROBE's tokens) and `said` (the probabilities of its second part's tokens) identify the
    model.
    """

    model: str
    vocabulary: str
    said: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)


def write(folder: Path, card: HeadsCard) -> None:
    """Save the weights."""
    cards.write_card(folder, card)


def card_of(writer: Writer, weights: Float[Tensor, "layers heads"], provenance: Mapping[str, Any]) -> HeadsCard:
    """The card of weights that were learned for a writer."""
    rows = tuple(tuple(round(value, 6) for value in row) for row in weights.tolist())
    return HeadsCard(writer.name, *_identified(writer), rows, provenance)


def find(model: LanguageModel, checkpoint: str | None) -> Float[Tensor, "layers heads"]:
    """The weights in a folder, or those next to the model, checked against it once.

    Raises LoadError if they are missing or broken, UnsupportedError if they are another model's.
    """
    model.ask(AnswerAttention)
    reader = model.reader if isinstance(model, Statements) else model
    if not isinstance(reader, Classifier):
        raise UnsupportedError(f"at2 does not explain {model.name}", ["it is not a generative language model"])
    folder = usual_folder(model.name, KIND) if checkpoint is None else Path(checkpoint)
    card = read_card(folder, model.name)
    of_writer = partial(_check_fits, card, Generator(reader.model, reader.tokenizer, reader.name), folder)
    made_once(reader.core, reader.core, (KIND, card.vocabulary, card.said), of_writer)
    return torch.tensor(card.weights, dtype=torch.float64)


def read_card(folder: Path, model: str) -> HeadsCard:
    """Raises LoadError for missing weights, with the way to train them, or for broken ones."""
    lacking = (
        f"there are no trained heads for at2 in {folder}: train them (raison train at2 --model {model}), or name "
        "their folder (at2(checkpoint='FOLDER'))."
    )
    return cards.read_card(folder, _card, lacking, KIND, "the heads")


def _card(content: dict[str, Any]) -> HeadsCard:
    fields = Fields(content, "a card of at2")
    for name in ("model", "vocabulary"):
        fields.string(name)
    fields.numbers("said", None, 0.0, 1.0)
    fields.mapping("provenance")
    layers = list(fields.items("weights"))
    for row in layers:
        Fields({"weights": row}, fields.what).numbers("weights", len(layers[0]))
    weights = tuple(tuple(map(float, row)) for row in layers)
    return HeadsCard(**content | {"weights": weights, "said": tuple(map(float, content["said"]))})


def _check_fits(card: HeadsCard, writer: Writer, folder: Path) -> None:
    vocabulary, shares = _identified(writer)
    reasons = []
    if card.vocabulary != vocabulary or len(card.said) != len(shares):
        reasons.append("they were trained with another tokenizer")
    else:
        pairs = [*zip(card.said, shares, strict=True)]
        gap = max(abs(before - now) for before, now in pairs)
        factor = max((max(pair) / min(pair) for pair in pairs if min(pair) > 0), default=1.0)
        if gap > TOLERANCE:
            reasons.append(f"after {PROBE[0]!r:.40} the two models' probabilities differ by {gap:.2f}")
        elif factor > FACTOR:
            # A model that knows little gives all tokens of the probe tiny probabilities.
            reasons.append(f"after {PROBE[0]!r:.40} the two models' probabilities differ by a factor of {factor:.0f}")
    if reasons:
        raise UnsupportedError(
            f"the heads in {folder} were trained for {card.model} and do not explain {writer.name}",
            reasons,
            f"Train them: raison train at2 --model {writer.name}.",
        )


def _identified(writer: Writer) -> tuple[str, tuple[float, ...]]:
    """A digest of the tokens of PROBE, and the probability of each token of its second part: one pass."""
    prompt = writer.prompt(PROBE[0])
    output = writer.output(prompt, PROBE[1])[0]
    answered = WrittenAnswer(Sourced(prompt, (), (), (), ()), output, ((0, len(PROBE[1].strip())),))
    whole = np.ones((1, len(prompt.units("word")[0])), dtype=bool)
    odds = torch.from_numpy(ForcedAnswer(writer, answered, "word").log_odds(whole, "delete")[0])
    shares = tuple(float(f"{share:.4g}") for share in odds.sigmoid().tolist())
    return digest_of([*prompt.ids, *output.ids]), shares
