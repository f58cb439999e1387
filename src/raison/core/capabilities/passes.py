"""Differentiable forward passes that a caller makes itself."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Embeddings, Logits
from raison.core.inputs.encoding import Encoding

Result = TypeVar("Result")


class Passes(Capability):
    """Differentiable passes over an encoding, and batches that fit into memory.

    An adapter that offers embeddings, attention, rules or decomposition offers this, too: a method that needs one of
    these need not name it.
    """

    name: ClassVar[str] = "passes"
    absence: ClassVar[str] = "does not expose its forward pass"
    way_out: ClassVar[str] = "Use a method that only removes parts of the text, such as occlusion or kernel_shap."

    @abstractmethod
    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        """Logits of every text in one differentiable forward pass, from embeddings when they are given."""

    @abstractmethod
    def batches(self, encoding: Encoding) -> list[list[int]]:
        """Rows to run together so that a differentiable pass over each group stays within the memory budget."""

    @abstractmethod
    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        """The results of `run` for each group of `batches`; if memory runs out, for each half of a group, and so on.

        A group that failed is run again, so `run` must have no effect when it raises torch.OutOfMemoryError. For a
        single text the error is raised.
        """

    def decisions(self, encoding: Encoding, embeds: Embeddings | None = None) -> Float[Tensor, "batch parts choices"]:
        """Logits of each choice that a prediction consists of, in one differentiable pass.

        In at least single precision. A classifier makes one choice, among its classes. An adapter that answers with a
        part of the text overrides this: it makes two choices, of the answer's first and last token, with -inf where no
        answer may be.
        """
        return self.logits(encoding, embeds)[:, None]

    def predicted(self, encoding: Encoding) -> Int[Tensor, "batch parts"]:
        """The choices that make up the prediction of each text: its class, or its answer's first and last token.

        On the CPU. One forward pass per text, without gradients, in batches of bounded size.
        """
        predicted: dict[int, Tensor] = {}

        def run(rows: list[int]) -> Tensor:
            with torch.no_grad():
                return self.chosen(self.decisions(encoding.select(rows))).cpu()

        for rows, chosen in self.in_batches(encoding, run):
            predicted.update(zip(rows, chosen, strict=True))
        return torch.stack([predicted[row] for row in range(len(encoding))])

    def chosen(self, decisions: Float[Tensor, "batch parts choices"]) -> Int[Tensor, "batch parts"]:
        """The prediction that decisions amount to: each part's likeliest choice, unless parts depend on each other."""
        return decisions.argmax(-1)
