"""Word embeddings in place of tokens."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Embeddings, Logits, PathEmbeddings, Points
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target

Path = Callable[[int, Points], PathEmbeddings]
"""Points of a path of one text: (text number, positions on the path) -> embeddings, as wide as the whole encoding."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A small random displacement of the word embeddings.

    Each vocabulary entry moves by its own vector, drawn uniformly from the ball of radius `radius` times the mean norm
    of the embedding table's rows; special tokens stay. `draw` numbers the displacements.
    """

    radius: float
    draw: int


class WordEmbeddings(Capability):
    """Accepts word embeddings in place of ids, and gradients reach them."""

    name: ClassVar[str] = "embeddings"
    absence: ClassVar[str] = "takes no embeddings in place of tokens"
    way_out: ClassVar[str] = "Use a method that only removes parts of the text, such as occlusion or kernel_shap."

    @abstractmethod
    def embed(self, encoding: Encoding) -> Embeddings:
        """Word embeddings of the tokens, as the model's embedding table gives them."""

    @abstractmethod
    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        """The encoding with every unit removed in place ("mask", "unk" or "pad": the length stays the same)."""

    @abstractmethod
    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        """`Passes.logits` from given word embeddings; those of a prompt must be the prompt's own.

        The prompt (`encoding.prefix_length`) is not run again where its states are stored.
        """

    @abstractmethod
    def path_gradients(
        self,
        encoding: Encoding,
        path: Path,
        positions: Points,
        weights: Points,
        target: Target,
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        """For each text, sum over points p of weights[p] * d target / d embeddings at path(text, positions[p]).

        Returns the sums (own tokens only, at least single precision, on the CPU) and the target's value at each point.
        Costs one forward and one backward pass per text and point, in batches of bounded size.
        """

    @abstractmethod
    def shifted(self, shift: Shift) -> AbstractContextManager[None]:
        """Move the word embeddings inside the context, in every pass and in `embed`.

        An entry's vector depends only on the shift and its id.
        """
