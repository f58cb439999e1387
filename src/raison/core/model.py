"""The only interface to a model. raison.models has one adapter for each kind of prediction."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.targets.choosing import Choosing
from raison.core.targets.outputs import Outputs, outputs_of
from raison.core.targets.target import Of, check_of

CapabilityT = TypeVar("CapabilityT", bound=Capability)

WITHOUT_CLASSES = "the model outputs one number, and this needs class probabilities"
"""The reason for refusals if `LanguageModel.outputs` is a number."""


class LanguageModel(ABC):
    """A model that classifies texts or assigns each a number (`outputs`): the minimum, which a black box can do.

    Everything else is a capability that an adapter may offer (core/capabilities). No call changes the model, its
    tokenizer or the random state.
    """

    name: str
    classes: tuple[str, ...]
    multi_label: bool
    capabilities: tuple[Capability, ...] = ()
    """What it offers, at most one of each kind."""
    withheld: Mapping[type[Capability], str] = MappingProxyType({})
    """Capabilities that this model lacks, each with its specific reason, if any."""
    removals: tuple[str, ...]
    """The kinds of removal that the tokenizer allows, the default first."""
    max_tokens: int | None
    """Longest input in tokens, special tokens included; None if the model has no limit."""

    undefined: Mapping[str, str] = MappingProxyType({})
    """Scalars (`of`) that its outputs do not determine, each with the reason."""

    strings: int = 1
    """How many strings every text needs: 2 for pairs, 3 for a query and two documents."""

    choosing: Choosing | None = None
    """If it predicts at positions in a text: what finds and chooses them."""

    unknown_id: int | None = None
    """The unknown token; None for a vocabulary without one, such as bytes."""

    special_names: frozenset[str] = frozenset()
    """Names of special tokens, which a text may contain as plain text."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def pairs(self) -> bool:
        """Whether every text has to be a pair."""
        return self.strings == 2

    @property
    def ranker(self) -> "LanguageModel":
        """The model of texts (query, document, other document), by how much its number is higher for the first.

        Raises UnsupportedError where the model does not rank.
        """
        raise UnsupportedError(
            f"{self.name} does not rank documents",
            ["ranking needs a model that outputs one number for a pair (query, document)"],
            "Use a cross-encoder, an embedding model or a function of pairs that returns one number.",
        )

    @property
    def outputs(self) -> Outputs:
        """Classes, labels, one number, or a statement's probability."""
        return outputs_of(self.classes, self.multi_label)

    def offers(self, kind: type[Capability]) -> bool:
        """Whether `ask` gives a capability of this kind."""
        return any(isinstance(offered, kind) for offered in self.capabilities)

    def ask(self, kind: type[CapabilityT]) -> CapabilityT:
        """The model's capability of a kind. Raises UnsupportedError, with the reason, if it has none."""
        for offered in self.capabilities:
            if isinstance(offered, kind):
                return offered
        raise UnsupportedError(f"{self.name} {kind.absence}", [self.lacks(kind)], kind.way_out)

    def lacks(self, kind: type[Capability]) -> str:
        """One line that says that the model lacks a capability, with the specific reason, if there is one."""
        why = self.withheld.get(kind)
        return f"the model lacks the capability '{kind.name}'" + (f" ({why})" if why else "")

    def check_removal(self, removal: str) -> None:
        """Raise a RaisonError unless `masked_logits` removes in this way: one of `removals`.

        An adapter that puts strings of the caller's in place overrides this.
        """
        if removal not in self.removals:
            raise UnknownNameError(f"removal of {self.name}", removal, self.removals)

    @abstractmethod
    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        """Tokenize once and find the units. Raises InputError on blank text, TextTooLongError past the limit."""

    def tokenized(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        """The same without a pass, and so without the place that the model reads: to check texts, for their lengths and
        units, and for `choosing`, which finds places itself."""
        return self.encode(texts, unit, truncate)

    @abstractmethod
    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        """Logits of each text under each of its keeps, in at least single precision, on the CPU, without gradients.

        `removal` is one that `check_removal` allows.
        """


_FACTS: dict[str, tuple[type[Any] | tuple[type[Any], ...], str]] = {
    "name": (str, "a text"),
    "classes": (tuple, "a tuple of one or more names"),
    "multi_label": (bool, "True or False"),
    "removals": (tuple, "a tuple of one or more names"),
    "max_tokens": ((int, type(None)), "a whole number, or None without a limit"),
}


def check_facts(model: LanguageModel) -> None:
    """Raise InputError for a fact that an adapter does not state, or that has another type."""
    for fact, (kind, words) in _FACTS.items():
        value = getattr(model, fact, _FACTS)
        if value is _FACTS:
            raise InputError(f"{type(model).__name__} does not state {fact}: an adapter sets it to {words}.")
        if not isinstance(value, kind) or (kind is tuple and not (value and isinstance(value[0], str))):
            raise InputError(f"{type(model).__name__}.{fact} is {value!r:.60}: it has to be {words}.")


def asked_of(model: LanguageModel, of: str | None) -> Of:
    """The scalar of the outputs to explain; see check_of. UnsupportedError if the outputs do not determine it."""
    stated = "log_probability" if of is None and model.outputs == "statement" else of
    checked = check_of(stated, model.classes, model.multi_label)
    if checked in model.undefined:
        raise UnsupportedError(
            f"of='{checked}' is not possible on {model.name}",
            [model.undefined[checked]],
            "Leave of out, or give of='log_odds', of='log_probability' or of='margin'.",
        )
    return checked


def check_classes(model: LanguageModel, what: str) -> None:
    """UnsupportedError unless the model gives probabilities of classes or labels."""
    if model.outputs == "number":
        raise UnsupportedError(
            f"{what} is not possible on {model.name}",
            [WITHOUT_CLASSES],
            "Use explain, compare or evaluate on the number instead.",
        )
