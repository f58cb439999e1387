"""A classifier's capabilities: each an object over its mechanics."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.attention import AttentionSite
from raison.core.capabilities.attention import ReadableAttention, TapRecord
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.embeddings import Path, Shift, WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.passes import Passes, Result
from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.capabilities.rules import BackwardRules
from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.dims import Embeddings, Logits, Points
from raison.core.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.rules import Rules
from raison.core.target import Target

if TYPE_CHECKING:
    from raison.models.adapters.classifier import Classifier

Gradients = tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]


class ClassifierPasses(Passes):
    """See Passes."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        return self._inner.logits(encoding, embeds)

    def batches(self, encoding: Encoding) -> list[list[int]]:
        return self._inner.batches(encoding)

    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        return self._inner.in_batches(encoding, run)

    def decisions(self, encoding: Encoding, embeds: Embeddings | None = None) -> Float[Tensor, "batch parts choices"]:
        return self._inner.decisions(encoding, embeds)

    def chosen(self, decisions: Float[Tensor, "batch parts choices"]) -> Tensor:
        return self._inner.head.predicted(decisions)


class ClassifierEmbeddings(WordEmbeddings):
    """See WordEmbeddings."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def embed(self, encoding: Encoding) -> Embeddings:
        return self._inner.embed(encoding)

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        return self._inner.removed(encoding, removal)

    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        return self._inner.logits_at(encoding, embeds)

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target
    ) -> Gradients:
        return self._inner.path_gradients(encoding, path, positions, weights, target)

    def shifted(self, shift: Shift) -> AbstractContextManager[None]:
        return self._inner.shifted(shift)


class ClassifierAttention(ReadableAttention):
    """See ReadableAttention."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def tap(
        self, layers: Sequence[int] | None = None, record: Sequence[str] = ("probabilities",)
    ) -> AbstractContextManager[TapRecord]:
        return self._inner.tap(layers, record)

    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        return self._inner.prediction_rows(encoding)


class ClassifierSites(ReplaceableAttention):
    """See ReplaceableAttention."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        return self._inner.attention_sites(encoding, layers)


class ClassifierSteps(StepLogits):
    """See StepLogits."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        return self._inner.step_logits(encoding, keeps, removal)

    def start_logits(self, encoding: Encoding) -> Logits:
        return self._inner.start_logits(encoding)


class ClassifierRules(BackwardRules):
    """See BackwardRules."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def ruled_gradients(self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target) -> Gradients:
        return self._inner.ruled_gradients(encoding, embeds, rules, target)


class ClassifierStates(HiddenStates):
    """See HiddenStates."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        return self._inner.hidden_states(encoding)


class ClassifierReduced(ReducedPrecision):
    """See ReducedPrecision. Takes 2 bytes per weight in addition to the model from the first call on."""

    def __init__(self, classifier: "Classifier") -> None:
        self._inner = classifier

    def reduced(self) -> LanguageModel:
        return self._inner.reduced()


_MAKERS: dict[type[Capability], Callable[["Classifier"], Capability]] = {
    Passes: ClassifierPasses,
    WordEmbeddings: ClassifierEmbeddings,
    ReadableAttention: ClassifierAttention,
    ReplaceableAttention: ClassifierSites,
    StepLogits: ClassifierSteps,
    BackwardRules: ClassifierRules,
    Anatomy: lambda classifier: classifier.anatomy(),
    HiddenStates: ClassifierStates,
    ReducedPrecision: ClassifierReduced,
}


def offered_by(classifier: "Classifier", kinds: Collection[type[Capability]]) -> tuple[Capability, ...]:
    """The capabilities of these kinds."""
    return tuple(make(classifier) for kind, make in _MAKERS.items() if kind in kinds)
