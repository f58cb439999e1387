"""What a model offers and what is said of what it does not offer."""

import inspect
from types import MappingProxyType

import pytest

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.errors import UnsupportedError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.targets.outputs import PROBABILITIES
from raison.methods import CATALOGUE
from tests.capabilities import KINDS
from tests.toy_capabilities import ToyAttention, ToyPasses
from tests.toys import Linear


class Closed(Linear):
    """A toy that takes no embeddings, for a reason."""

    kinds = (ToyPasses, ToyAttention)
    withheld = MappingProxyType({WordEmbeddings: "it was told not to"})


@pytest.mark.parametrize("file", KINDS)
def test_a_kind_is_abstract_and_named_by_its_file(file: str) -> None:
    kind = KINDS[file]
    assert inspect.isabstract(kind)
    assert kind.name == file
    assert kind.absence
    assert not kind.way_out or kind.way_out.endswith(".")


def test_a_black_box_is_two_functions() -> None:
    assert LanguageModel.__abstractmethods__ == {"encode", "masked_logits"}


def test_what_is_asked_for_is_what_was_offered() -> None:
    model = Closed()
    assert isinstance(model.ask(Passes), ToyPasses)
    assert [kind for kind in KINDS.values() if model.offers(kind)] == [KINDS["attention"], KINDS["passes"]]


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if not Closed().offers(kind)])
def test_what_is_not_offered_is_refused_with_the_reason_and_the_way_out(kind: type[Capability]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        Closed().ask(kind)
    assert str(caught.value).startswith(f"toy/closed {kind.absence}: the model lacks the capability '{kind.name}'")
    assert str(caught.value).endswith(kind.way_out or ".")
    assert ("it was told not to" in str(caught.value)) == (kind is WordEmbeddings)


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_a_method_says_what_it_needs(name: str) -> None:
    method: type[Method] = CATALOGUE.get(name)
    assert method.needs <= set(KINDS.values())
    lacking = method.lacking(Closed())
    assert len(lacking) == len({kind for kind in method.needs if not Closed().offers(kind)})
    disproved = method.lacking(Linear(), method.needs)
    assert len(disproved) == len(method.needs)


def test_outputs_are_no_capability() -> None:
    class Number(Linear):
        classes = ("score",)

    aml = CATALOGUE.get("aml")
    assert aml.outputs == PROBABILITIES
    assert aml.lacking(Number()) == ["the model lacks the capability 'classes'"]
    assert not aml.lacking(Linear())
