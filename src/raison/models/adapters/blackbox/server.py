"""A language model behind a server as a classifier: label words after a prompt, and only the server's answers."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.models.adapters.blackbox.asking import Answers, Asking
from raison.models.adapters.blackbox.function import logits_of, masked_texts, substitute_of
from raison.models.served.labels import LabelReader
from raison.models.served.newest import Newest
from raison.models.served.server import Server
from raison.models.tokens.word_encoder import WordEncoder

WHY = "its weights are on a server, which only returns answers"
WITHOUT_LOGITS = "only the label words' probabilities are known, which determine logits only up to a constant"

BOUNDS = 1 << 17
"""The number of texts whose bounds are kept: more than the methods of one explanation read."""

Keeps = Sequence[Bool[Tensor, "_masks _units"]]


@final
class ServedClassifier(LanguageModel):
    """Each masked text is a separate request; several are sent at a time, in alphabetical order.

    Texts that begin alike then follow each other, so that the server reads their beginning once.
    """

    removals = ("delete", "ellipsis")
    max_tokens = None
    multi_label = False

    def __init__(self, reader: LabelReader, name: str) -> None:
        self.reader, self.name = reader, name
        self.classes = tuple(label.name for label in reader.labels)
        self.undefined = {"logit": WITHOUT_LOGITS}
        self._bounds = Newest[int, float](BOUNDS)
        self.capabilities = (_RepeatedLabels(self),)
        self._encoder = WordEncoder(1)

    @property
    def server(self) -> Server:
        """The server that answers."""
        return self.reader.server

    def lacks(self, kind: type[Capability]) -> str:
        return f"the model lacks the capability '{kind.name}' ({WHY})"

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        return self._encoder.encode(texts, unit)

    def check_removal(self, removal: str) -> None:
        substitute_of(removal)

    def masked_logits(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self.request_logits(masked_texts(encoding, keeps, removal), repeat=0)

    def request_logits(self, texts: Sequence[Sequence[str]], repeat: int) -> list[Float[Tensor, "_masks classes"]]:
        """Logits of lists of texts; equal texts are requested once. Raises SpentError before anything is sent."""
        different = sorted({text for row in texts for text in row}, reverse=repeat > 0)
        if not different:
            return [torch.zeros(0, len(self.classes), dtype=torch.float64) for _ in texts]
        self._foresee(different, repeat)
        lanes = self.server.lanes([self.reader.frame(text)[1] for text in different])
        logits = torch.from_numpy(logits_of(self._asking(repeat, lanes).answers(different), False))
        number = {text: place for place, text in enumerate(different)}
        return [logits[[number[text] for text in row]] for row in texts]

    def bound(self, text: str) -> float:
        """How far the probabilities that a text was last given may be from the model's; 0 if they are exact."""
        return self._bounds.get(hash(text)) or 0.0

    def _foresee(self, texts: Sequence[str], repeat: int) -> None:
        """Check the limits for at least one request for each text that is not on disk."""
        sent = [len(self.reader.frame(text)[1]) for text in texts if not self.reader.known(text, repeat)]
        self.server.meter.foresee(sent, self.reader.new_tokens * len(sent))

    def _asking(self, repeat: int, lanes: int) -> Asking:
        async def function(texts: list[str]) -> Answers:
            readings = [await self.reader.read(text, repeat) for text in texts]
            for text, reading in zip(texts, readings, strict=True):
                # Most servers give exact numbers; a bound that was above 0 may have become 0.
                if reading.bound or self.bound(text):
                    self._bounds.add(hash(text), reading.bound)
            return np.array([reading.shares for reading in readings])

        return Asking(function, self.name, self.classes, False, 1, lanes)


@final
class _RepeatedLabels(AskedAgain):
    def __init__(self, model: ServedClassifier) -> None:
        self._model = model

    @property
    def description(self) -> str:
        reader = self._model.reader
        return f"{reader.server.name}: {reader.description}"

    @property
    def identity(self) -> list[str]:
        reader = self._model.reader
        return [reader.server.address.base, reader.server.model, reader.description, reader.frame("{text}")[1]]

    def prices(self, encoding: Encoding) -> list[Price]:
        reader = self._model.reader
        lengths = [len(reader.frame(str(text))[1]) for text in encoding.texts]
        count, new = reader.requests, reader.new_tokens
        if reader.tier == "text":
            new //= count
        return [Price(count, *reader.server.meter.price(length, count, new)) for length in lengths]

    def again(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[Float[Tensor, "_masks classes"]]:
        return self._model.request_logits(masked_texts(encoding, keeps, removal), repeat=1)

    def bounds(self, encoding: Encoding, keeps: Keeps, removal: str) -> list[float]:
        rows = masked_texts(encoding, keeps, removal)
        return [max(map(self._model.bound, row), default=0.0) for row in rows]
