"""Hidden states."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


class HiddenStates(Capability):
    """Its hidden states can be read."""

    name: ClassVar[str] = "hidden_states"
    absence: ClassVar[str] = "does not show its hidden states"

    @abstractmethod
    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        """Hidden states of each text's own tokens, averaged over all layers' outputs, in single precision, on the CPU.

        Without gradients, in batches of bounded size. The embedding layer's output does not count as a layer.
        """
