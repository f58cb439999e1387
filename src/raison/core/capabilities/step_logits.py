"""Predictions along the way through a text."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Logits
from raison.core.inputs.encoding import Encoding


class StepLogits(Capability):
    """Gives a prediction after each unit, as if the text ended there: causal models."""

    name: ClassVar[str] = "step_logits"
    absence: ClassVar[str] = "has no intermediate predictions"
    way_out: ClassVar[str] = "Only causal models predict after each part of a text: use a decoder, or another method."

    @abstractmethod
    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        """Intermediate predictions: logits as if each text, under each keep, ended after each of its units.

        Read at the unit's last token. If a prompt asks for the answer, the text after the input (the answer cue) is
        appended there too. The last unit's prediction is the prediction itself. A deleted unit has the prediction of
        the text before it. Like `masked_logits`, on the CPU and without gradients.
        """

    @abstractmethod
    def start_logits(self, encoding: Encoding) -> Logits:
        """The prediction before any unit is read, from what precedes the first (a prompt or a begin-of-text token).

        Raises UnsupportedError if nothing precedes it.
        """
