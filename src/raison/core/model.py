"""The only interface to a model. raison.models has one adapter for each kind of prediction."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.anatomy import Anatomy
from raison.core.attention import AttentionSite
from raison.core.dims import Attention, Embeddings, HeadStates, Logits, PathEmbeddings, Points
from raison.core.encoding import Encoding
from raison.core.errors import UnsupportedError
from raison.core.outputs import Outputs, outputs_of
from raison.core.rules import Rules
from raison.core.target import Target, check_of
from raison.core.unit import Granularity, Text


class Capability(StrEnum):
    """What a model can do; a method states what it needs."""

    EMBEDDINGS = "embeddings"
    """Accepts word embeddings in place of ids, and gradients reach them."""
    ATTENTION = "attention"
    """Its attention can be read."""
    ATTENTION_PATHS = "attention_paths"
    """Its attention can be replaced, and gradients reach it."""
    STEP_LOGITS = "step_logits"
    """Gives a prediction after each unit, as if the text ended there: causal models."""
    RULES = "rules"
    """Its backward pass can follow other rules than the gradient's: attention goes through transformers' interface."""
    DECOMPOSITION = "decomposition"
    """Its layers can be decomposed into each token's contribution: the family says where their parts are."""
    CLASSES = "classes"
    """Gives probabilities of classes or labels, and not one number in units of its own."""


@runtime_checkable
class TapRecord(Protocol):
    """What an attention tap has seen, by layer, after a forward pass inside its context; only what was asked for."""

    query: dict[int, HeadStates]
    key: dict[int, HeadStates]
    scores: dict[int, Attention]
    probabilities: dict[int, Attention]


@dataclass(frozen=True, slots=True)
class Shift:
    """A small random displacement of the word embeddings.

    Each vocabulary entry moves by its own vector, drawn uniformly from the ball of radius `radius` times the mean norm
    of the embedding table's rows; special tokens stay. `draw` numbers the displacements.
    """

    radius: float
    draw: int


Result = TypeVar("Result")

Path = Callable[[int, Points], PathEmbeddings]
"""Points of a path of one text: (text number, positions on the path) -> embeddings, as wide as the whole encoding."""


WITHOUT_CLASSES = "the model gives one number, and this needs the probabilities of classes"
"""Why something is refused where `LanguageModel.outputs` is a number."""


class LanguageModel(ABC):
    """A model that classifies texts or gives each a number (`outputs`).

    No call changes the model, its tokenizer or the random state.
    """

    name: str
    classes: tuple[str, ...]
    multi_label: bool
    capabilities: frozenset[Capability]
    withheld: Mapping[Capability, str] = MappingProxyType({})
    """Capabilities that this model lacks although similar models have them, each with the reason."""
    removals: tuple[str, ...]
    """The kinds of removal that the tokenizer allows, the default first."""
    max_tokens: int | None
    """Longest input in tokens, special tokens included; None if the model has no limit."""

    unknown_id: int | None = None
    """The unknown token; None for a vocabulary without one, such as bytes."""

    @property
    def outputs(self) -> Outputs:
        """Classes, labels or one number."""
        return outputs_of(self.classes, self.multi_label)

    def lacks(self, capability: Capability) -> str:
        """One line that says that the model lacks a capability, with the reason where there is a special one."""
        why = self.withheld.get(capability)
        return f"the model lacks the capability '{capability}'" + (f" ({why})" if why else "")

    @abstractmethod
    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool = False) -> Encoding:
        """Tokenize once and find the units. Raises InputError on blank text, TextTooLongError past the limit."""

    @abstractmethod
    def embed(self, encoding: Encoding) -> Embeddings:
        """Word embeddings of the tokens, as the model's embedding table gives them."""

    @abstractmethod
    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        """Logits of every text in one differentiable forward pass, from embeddings when they are given."""

    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        """`logits` from given word embeddings; those of a prompt (`encoding.prefix_length`) must be the prompt's own.

        An adapter that stores a prompt's states overrides this, so that the prompt is not run again.
        """
        return self.logits(encoding, embeds)

    def reduced(self) -> "LanguageModel":
        """The same model with 16-bit weights (bfloat16), for `masked_logits`; itself if it already has these.

        Adapters that support this override it. Raises UnsupportedError elsewhere.
        """
        raise UnsupportedError(
            f"{self.name} cannot be evaluated in bfloat16",
            ["its adapter makes no copy of lower precision"],
            "Leave precision at float32.",
        )

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
        found: dict[int, Tensor] = {}

        def run(rows: list[int]) -> Tensor:
            with torch.no_grad():
                return self.decisions(encoding.select(rows)).argmax(-1).cpu()

        for rows, chosen in self.in_batches(encoding, run):
            found.update(zip(rows, chosen, strict=True))
        return torch.stack([found[row] for row in range(len(encoding))])

    @abstractmethod
    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        """The encoding with every unit removed in place ("mask", "unk" or "pad": the length stays the same)."""

    @abstractmethod
    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        """Logits of each text under each of its keeps, in at least single precision, on the CPU, without gradients."""

    @abstractmethod
    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        """Intermediate predictions: logits as if each text, under each keep, ended after each of its units.

        Read at the unit's last token. If a prompt asks for the answer, the text after the input (the answer cue) is
        appended there too. The last unit's prediction is the prediction itself. A deleted unit has the prediction of
        the text before it. Like `masked_logits`, on the CPU and without gradients. Needs Capability.STEP_LOGITS.
        """

    @abstractmethod
    def start_logits(self, encoding: Encoding) -> Logits:
        """The prediction before any unit is read, from what precedes the first (a prompt or a begin-of-text token).

        Raises UnsupportedError if nothing precedes it. Needs Capability.STEP_LOGITS.
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

    def ruled_gradients(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        """The gradient of the target with respect to the embeddings, under the backward `rules` (core/rules.py).

        Returns it per text (own tokens only, at least single precision, on the CPU), and the target's value at the
        embeddings; under `Difference` also at its starts. One forward and one backward pass per text; under
        `Difference` one more forward pass. Under `Difference`, the target's value is a difference of two runs; under
        `Relevance`, the target's own gradient is the ordinary one.

        An adapter with Capability.RULES overrides this. Raises UnsupportedError elsewhere.
        """
        raise UnsupportedError(
            f"{self.name} has no other backward rules than the gradient",
            [f"it lacks the capability '{Capability.RULES}'"],
            "Use integrated_gradients.",
        )

    def anatomy(self) -> Anatomy:
        """The model's layers as parts: their weights, and what they compute for a text.

        An adapter with Capability.DECOMPOSITION overrides this. Raises UnsupportedError elsewhere.
        """
        raise UnsupportedError(
            f"the layers of {self.name} cannot be decomposed",
            [f"it lacks the capability '{Capability.DECOMPOSITION}'"],
            "Use attention_rollout or integrated_gradients.",
        )

    @abstractmethod
    def tap(
        self, layers: Sequence[int] | None = None, record: Sequence[str] = ("probabilities",)
    ) -> AbstractContextManager[TapRecord]:
        """Record steps of the attention of the given layers (all by default) during the passes inside the context.

        Steps are query, key, scores (before the softmax) and probabilities; records stay in the graph.
        """

    @abstractmethod
    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """The weight of each token's last hidden state in the prediction, summing to 1.

        1 for the first token of a CLS model or the last token of a decoder; equal shares if the model pools a mean.
        """

    @abstractmethod
    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        """Where the attention to one text can be replaced, in the given layers; see AttentionSite.

        `layers` says which of so many layers, counted from 0. Costs one forward pass. Needs
        Capability.ATTENTION_PATHS.
        """

    @abstractmethod
    def batches(self, encoding: Encoding) -> list[list[int]]:
        """Rows to run together so that a differentiable pass over each group stays within the memory budget."""

    @abstractmethod
    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        """The results of `run` for each group of `batches`; if memory runs out, for each half of a group, and so on.

        A group that failed is run again, so `run` must have no effect when it raises torch.OutOfMemoryError. For a
        single text the error is raised.
        """

    @abstractmethod
    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        """Hidden states of each text's own tokens, averaged over all layers' outputs, in single precision, on the CPU.

        Without gradients, in batches of bounded size. The embedding layer's output does not count as a layer.
        """

    @abstractmethod
    def shifted(self, shift: Shift) -> AbstractContextManager[None]:
        """Move the word embeddings inside the context, in every pass and in `embed`.

        An entry's vector depends only on the shift and its id. Needs Capability.EMBEDDINGS.
        """


def asked_of(model: LanguageModel, of: str | None) -> str:
    """What of the model's outputs is explained; see check_of."""
    return check_of(of, model.classes, model.multi_label)


def check_classes(model: LanguageModel, what: str) -> None:
    """UnsupportedError unless the model gives probabilities of classes or labels."""
    if model.outputs == "number":
        raise UnsupportedError(
            f"{what} is not possible on {model.name}",
            [WITHOUT_CLASSES],
            "explain, compare and evaluate work on the number.",
        )
