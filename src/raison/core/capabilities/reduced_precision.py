"""A 16-bit copy of the model."""

from abc import abstractmethod
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.model import LanguageModel


class ReducedPrecision(Capability):
    """It can be evaluated with 16-bit weights (bfloat16)."""

    name: ClassVar[str] = "reduced_precision"
    absence: ClassVar[str] = "cannot be evaluated in bfloat16"
    way_out: ClassVar[str] = "Leave precision at float32."

    @abstractmethod
    def reduced(self) -> LanguageModel:
        """The same model with 16-bit weights, for `masked_logits`; itself if it already has these.

        Raises UnsupportedError if its weights cannot be converted.
        """
