"""How a model is used: what encodes its texts, and how its outputs become classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from raison.core.encoding import Encoding
from raison.core.unit import Granularity, Text
from raison.models.passes.heads import SpanHead
from raison.models.passes.readout import Readout
from raison.models.passes.workings import Workings


@runtime_checkable
class Encoder(Protocol):
    """Texts to encodings."""

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """How a causal language model is used as a classifier: the text around the input, and how answers are read."""

    classes: tuple[str, ...]
    encoder: Encoder
    readout: Readout
    workings: Workings | None = None
    """Of the same model, where it is read in other ways, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Answering:
    """How a model that answers questions is used: which texts it takes, and how its answer becomes two classes."""

    encoder: Encoder
    head: SpanHead
