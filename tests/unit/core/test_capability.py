"""A new capability is one file: adapters offer it and methods ask for it without a change in the library."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

import raison
from raison.core.capability import Capability
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from tests.made_up.frequencies import Frequencies
from tests.toys import IDS, Linear


class ToyFrequencies(Frequencies):
    """A piece was read as often as its id says."""

    def counts(self, encoding: Encoding) -> Tensor:
        return encoding.input_ids + 1


class WellRead(Linear):
    """A toy that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = (*self.capabilities, ToyFrequencies())


@dataclass(frozen=True)
class Rarity(Method):
    """score = 1 / count."""

    reference: ClassVar[str] = "madeup"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({Frequencies})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED})
    passes: ClassVar[str] = "none"

    def attribute(self, problem: Problem, rngs: Rngs) -> Tensor:
        return 1 / problem.model.ask(Frequencies).counts(problem.encoding).double()

    def cost(self, units: int) -> Cost:
        return Cost()


def test_a_method_asks_for_it() -> None:
    found = raison.explain(WellRead(), "good film", Rarity())
    assert found.scores == pytest.approx([1 / (IDS["good"] + 1), 1 / (IDS["film"] + 1)])


def test_others_are_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedError, match=r"lacks the capability 'frequencies'\. These methods work: .*occlusion"):
        raison.explain(Linear(), "good film", Rarity())
    with pytest.raises(UnsupportedError, match="toy/linear does not say what it read in training: .* Use occlusion"):
        Linear().ask(Frequencies)


def test_it_adds_to_what_is_offered() -> None:
    assert WellRead().offers(Frequencies)
    assert not Linear().offers(Frequencies)
    assert torch.equal(
        WellRead().masked_logits(*_whole(WellRead()), "mask")[0], Linear().masked_logits(*_whole(Linear()), "mask")[0]
    )


def _whole(model: Linear) -> tuple[Encoding, list[Tensor]]:
    encoding = model.encode(["good film"], "word")
    return encoding, [torch.ones(1, 2, dtype=torch.bool)]
