"""The tests' own checks of types and shapes find what is wrong, and let through what is not checked."""

from collections.abc import Callable
from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from tests.checked import checked, jaxtyped


def plain(count: int) -> str:
    return str(count) if count else 0  # type: ignore[return-value]


def shaped(first: Float[Tensor, " texts"], second: Float[Tensor, " texts"]) -> Float[Tensor, "texts 2"]:
    return torch.stack([first, second]).mT


@dataclass(frozen=True)
class Plain:
    count: int


@dataclass(frozen=True)
class Shaped:
    first: Float[Tensor, " texts"]


PLACE = jaxtyped(typechecker=checked)
ONE, TWO = torch.zeros(1), torch.zeros(2)
WRONG: dict[str, Callable[[], object]] = {
    "argument": lambda: PLACE(plain)("one"),
    "result": lambda: PLACE(plain)(0),
    "shape": lambda: PLACE(shaped)(ONE, TWO),
    "field": lambda: PLACE(Plain)("one"),
    "shape of a field": lambda: PLACE(Shaped)(torch.zeros(1, 2)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeCheckError):
        call()


def test_what_is_right_passes() -> None:
    assert PLACE(plain)(1) == "1"
    assert PLACE(shaped)(TWO, TWO).shape == (2, 2)
    assert PLACE(Plain)(1).count == 1
    assert PLACE(Shaped)(ONE).first is ONE


def test_nothing_is_refused_where_checks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert PLACE(plain)("one") == "one"
    assert PLACE(plain)(0) == 0
    assert PLACE(Plain)("one").count == "one"


def test_the_package_is_checked() -> None:
    """The decorator of the import hook is the one that is tested here."""
    from raison.core.inputs.unit import Unit

    with pytest.raises(TypeCheckError):
        Unit("text", "start", 1)
