"""A method: a frozen record of hyper-parameters and one function."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.errors import UnsupportedError
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.core.registry import name_of
from raison.core.settings.settled import Settled
from raison.core.targets.choices import Of
from raison.core.targets.outputs import EVERY, Outputs

Rngs = Sequence[np.random.Generator]
"""One generator per text, seeded from the run's seed and the text, so that draws do not depend on the batch."""


class Property(StrEnum):
    """A claim about a method's scores that the contract tests check."""

    SIGNED = "signed"
    """A unit that counts against the target scores below zero, and one that counts for it above."""
    UNSIGNED = "unsigned"
    """No score is ever below zero, whatever the settings: scores say only how much a unit matters."""
    COMPLETE = "complete"
    """Scores sum to the value of the full text minus that of the fully removed one."""
    DUMMY = "dummy"
    """A unit that changes nothing scores zero."""
    LINEAR = "linear"
    """Scores are coefficients of a linear model of the value: those of units that are removed together add up."""
    TOKENWISE = "tokenwise"
    """`attribute` returns one score per token; a unit's score is the sum over its tokens."""
    RANDOM = "random"
    """Scores depend on the seed."""
    CANDIDATES = "candidates"
    """Offers several maps per text, from which a metric may choose one."""
    PATH = "path"
    """Integrates gradients from a baseline's embeddings to those of the text; the baseline can be given."""
    TRAINED = "trained"
    """Needs an explainer that was trained for the model (`raison train`)."""
    PARTIAL = "partial"
    """Re-runs only some layers: its passes are cheaper than full passes but count as such."""
    ADAPTIVE = "adaptive"
    """Its next keeps depend on earlier values, or it may run such a method: each text may need keeps of its own."""
    GROUPED = "grouped"
    """Also scores each run of units with the same name, such as the sentences of a source: the note `groups`."""
    DIFFERENTIABLE = "differentiable"
    """Scores are a differentiable function of the word embeddings, which can be given."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Passes of single sequences that one text takes."""

    forwards: int = 0
    backwards: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.forwards + other.forwards, self.backwards + other.backwards)

    @property
    def passes(self) -> int:
        """Forward and backward passes together."""
        return self.forwards + self.backwards

    @property
    def work(self) -> int:
        """In forward passes: a backward one takes about as long as two."""
        return self.forwards + 2 * self.backwards

    def of_tokens(self, count: int) -> "Cost":
        """The cost for several tokens, which share forward passes but need separate backward passes."""
        return Cost(self.forwards, count * self.backwards)

    def times(self, factor: int) -> "Cost":
        """The cost of several equal pieces of work."""
        return Cost(self.forwards * factor, self.backwards * factor)


@dataclass(frozen=True)
class Method(Settled, ABC):
    """Scores the units of a batch of texts. Its name is its file's name.

    Its fields are its settings. Their types, and a Setting in `Annotated`, say which values they may have.
    """

    reference: ClassVar[str]
    """Key in docs/references.bib."""
    needs: ClassVar[frozenset[type[Capability]]] = frozenset()
    """The capabilities that it needs from the model."""
    outputs: ClassVar[frozenset[Outputs]] = EVERY
    """The kinds of output that it explains."""
    properties: ClassVar[frozenset[Property]] = frozenset()
    statement_value: ClassVar[Of] = "log_probability"
    """The value of an answer's statement that `raison.cite` explains with this method."""
    passes: ClassVar[str]
    """Cost per text as a formula in units n, tokens t and the method's settings, for the generated table."""

    @abstractmethod
    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        """Scores per unit, or per token if the method is TOKENWISE; entries past a text's own units are ignored."""

    @classmethod
    def lacking(cls, model: LanguageModel, disproved: Collection[type[Capability]] = ()) -> list[str]:
        """Why the method does not work on this model, whatever its settings: a line for each thing that is missing.

        `disproved` are capabilities that the model offers, but that turned out not to work.
        """
        reasons = {kind.name: model.lacks(kind) for kind in cls.needs if kind in disproved or not model.offers(kind)}
        if model.outputs not in cls.outputs:
            reasons["classes"] = "the model lacks the capability 'classes'"
        return [reasons[name] for name in sorted(reasons)]

    def check(self, model: LanguageModel) -> None:
        """Raise a RaisonError unless the model has what these settings need beyond `lacking`, before anything runs.

        A method with the property TRAINED overrides this.
        """
        return

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        """Files besides the model's own that decide its scores: resumed work must find them unchanged.

        A method with the property TRAINED overrides this.
        """
        return ()

    @property
    def trained(self) -> bool:
        """Whether its scores come from something that was trained for the model.

        Overridden by methods that consist of others.
        """
        return Property.TRAINED in self.properties

    @property
    def most_units(self) -> int | None:
        """The largest number of units of a text, if bounded; longer texts are refused before anything runs."""
        return None

    @property
    def signed(self) -> bool:
        """Whether a score can be below zero, so that its sign says for or against the target.

        Overridden by methods whose settings decide this.
        """
        return Property.UNSIGNED not in self.properties

    @property
    def maps(self) -> int:
        """How many maps `candidates` offers; a method with the property CANDIDATES overrides this."""
        return 1

    @property
    def parts(self) -> tuple["Method", ...]:
        """Methods of the same name whose candidates, concatenated, are this method's.

        Several methods of a comparison may share parts, which are then computed once.
        """
        return (self,)

    def total_cost(self, units: int, tokens: int = 0) -> Cost:
        """An upper bound of the passes of one text by all parts, run one by one; `tokens` 0 is an unknown number.

        A method whose passes depend on the number of tokens, special ones included, overrides this.
        """
        return sum((part.cost(units) for part in self.parts), Cost())

    def most_keeps(self, units: int, groups: int) -> int:
        """How many different keeps of a text in so many runs of units with the same name it can request at most, for
        whatever target.

        A method with the property ADAPTIVE, whose targets need keeps of their own, overrides this if it knows better.
        """
        return 2**units

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        """All maps that a metric may choose from; `attribute` gives the result without selection.

        A method with the property CANDIDATES overrides this.
        """
        return self.attribute(problem, rngs)[None]

    def unselected(self, maps: Float[Tensor, "maps batch scored"]) -> Float[Tensor, "batch scored"]:
        """The result of `attribute`, computed from all candidates: the first one unless a method overrides this."""
        return maps[0]

    def attribute_from(self, problem: Problem, start: Embeddings) -> Float[Tensor, "batch scored"]:
        """The scores with `start` in place of the method's own baseline; special tokens must keep their embeddings.

        A method with the property PATH overrides this; the others raise UnsupportedError.
        """
        raise UnsupportedError(
            f"{name_of(self)} cannot start from another baseline", ["it has no path from a baseline"]
        )

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """The scores of texts whose word embeddings are `embeds`, differentiable with respect to these.

        `embeds` are as wide as the encoding. All texts and points go through the model as one batch, whose graph stays
        in memory, so the caller decides how many texts to pass. Counts no passes and adds no notes. Parameters get no
        gradients if the caller asks only for those of `embeds` (torch.autograd.grad).

        A method with the property DIFFERENTIABLE overrides this; the others raise UnsupportedError.
        """
        raise UnsupportedError(
            f"{name_of(self)} cannot be differentiated",
            ["its scores are not implemented as a function of word embeddings"],
        )

    @abstractmethod
    def cost(self, units: int) -> Cost:
        """Passes for a text of `units` units: exact, or an upper bound if repeated keeps are evaluated once."""
