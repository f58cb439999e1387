"""Backward rules other than the gradient."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.internals.rules import Rules
from raison.core.targets.target import Target


class BackwardRules(Capability):
    """Its backward pass can follow other rules than the gradient, because attention uses transformers' interface."""

    name: ClassVar[str] = "rules"
    absence: ClassVar[str] = "has no backward rules besides the gradient"
    way_out: ClassVar[str] = "Use integrated_gradients."

    @abstractmethod
    def ruled_gradients(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        """The gradient of the target with respect to the embeddings, under the backward `rules`.

        Returns it per text (own tokens only, at least single precision, on the CPU), and the target's value at the
        embeddings; under `Difference` also at its starts. One forward and one backward pass per text; under
        `Difference` one more forward pass, and the target's value is a difference of two runs; under `Relevance`, the
        target's own gradient is the ordinary one.
        """
