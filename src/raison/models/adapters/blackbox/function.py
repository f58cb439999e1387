"""Any function from texts to numbers as a black-box model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.errors import UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.core.removals import REMOVALS
from raison.core.targets.ranking import before
from raison.models.adapters.blackbox.asking import Answers, Asking
from raison.models.tokens.word_encoder import WordEncoder
from raison.text.absent import without

SUBSTITUTES = {"ellipsis": "..."}
"""The replacement for a unit, by the name of the removal."""

WITHOUT_LOGITS = "a function returns probabilities, which determine logits only up to a constant"


class BlackBox(LanguageModel):
    """A function of texts, or of pairs of texts. Its tokens are the words of a text; the length of a text is not
    limited.

    Removals edit the text itself: "delete", "ellipsis", or a string of the caller's that replaces a unit.
    Equal texts in one call are evaluated once.
    """

    removals = ("delete", "ellipsis")
    max_tokens = None

    def __init__(self, asking: Asking, *, strings: int = 1, why: str = "") -> None:
        """`why` gives the reason why only the model's answers are used."""
        self.asking = asking
        self._why = why or "it is a function of texts, of which only the outputs are known"
        self.name = asking.name
        self.classes, self.multi_label = asking.classes, asking.multi_label
        self.undefined = {"logit": WITHOUT_LOGITS} if self.outputs == "classes" else {}
        self.strings = strings
        self._encoder = WordEncoder(strings)

    @cached_property
    def ranker(self) -> LanguageModel:
        """See LanguageModel.ranker."""
        if self.outputs != "number" or self.strings != 2:
            return super().ranker
        asking = replace(self.asking, function=self._differences, classes=(before(0, 1),))
        return BlackBox(asking, strings=3, why=self._why)

    def lacks(self, kind: type[Capability]) -> str:
        return f"the model lacks the capability '{kind.name}' ({self._why})"

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        return self._encoder.encode(texts, unit)

    def check_removal(self, removal: str) -> None:
        substitute_of(removal)

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        answers, numbers = self.asking.answers_once(_in_turn(encoding, keeps, substitute_of(removal)))
        logits = torch.from_numpy(answers if self.outputs == "number" else logits_of(answers, self.multi_label))
        return [logits[rows] for rows in torch.from_numpy(numbers).split([len(rows) for rows in keeps])]

    def _differences(self, texts: list[tuple[str, str, str]]) -> Answers:
        """By how much the number of each query's first document is higher. Equal pairs are evaluated once."""
        pairs = [pair for query, first, second in texts for pair in ((query, first), (query, second))]
        numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        answers = self.asking.answers(list(numbers))
        rows = answers[[numbers[pair] for pair in pairs]]
        differences: Answers = rows[0::2] - rows[1::2]
        return differences


def masked_texts(encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str) -> list[list[Any]]:
    """Each text as it reads under each of its keeps. Raises UnsupportedError, UnknownNameError for the removal."""
    written = _in_turn(encoding, keeps, substitute_of(removal))
    return [list(islice(written, len(rows))) for rows in keeps]


def _in_turn(
    encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], substitute: str | None
) -> Iterator[Any]:
    for text, units, rows in zip(encoding.texts, encoding.units, keeps, strict=True):
        for keep in rows.numpy():
            yield without(text, units, keep.tolist(), substitute)


def logits_of(answers: Answers, multi_label: bool) -> Answers:
    """Probabilities as logits, the inverse of softmax or of sigmoid."""
    shares = answers.clip(0, 1)
    # A probability of zero has a logit of minus infinity.
    with np.errstate(divide="ignore"):
        if multi_label:
            return np.log(shares) - np.log1p(-shares)
        return np.log(shares / shares.sum(1, keepdims=True))


def substitute_of(removal: str) -> str | None:
    """The replacement for an absent unit; None deletes it.

    A string with a character that is not a letter ("[MASK]", "_") is used literally. Raises UnsupportedError for a
    removal by a tokenizer's token, UnknownNameError for other words.
    """
    if removal == "delete":
        return None
    if removal in SUBSTITUTES:
        return SUBSTITUTES[removal]
    if removal in REMOVALS:
        raise UnsupportedError(
            f"removal '{removal}' is not possible",
            ["the model is a function of texts and has no tokenizer with such a token"],
            "Use removal='delete', or give the string that replaces a unit, such as removal='[MASK]'.",
        )
    if removal.isalpha() or not removal:
        raise UnknownNameError("removal", removal, (*SUBSTITUTES, "delete"))
    return removal
