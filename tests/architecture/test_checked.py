"""The tests' own checks of types and shapes find what is wrong, and let through what is not checked."""

from collections.abc import Callable
from dataclasses import dataclass

import jaxtyping
import numpy as np
import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from tests.checked import checked, jaxtyped


def plain(count: int) -> str:
    return str(count) if count else 0  # type: ignore[return-value]


def shaped(first: Float[Tensor, " texts"], second: Float[Tensor, " texts"], turned: bool) -> Float[Tensor, "texts 2"]:
    return torch.stack([first, second]).mT if turned else torch.stack([first, second])


@dataclass(frozen=True)
class Plain:
    count: int


@dataclass(frozen=True)
class Shaped:
    first: Float[Tensor, " texts"]


PLACE = jaxtyped(typechecker=checked)
ONE, TWO = torch.zeros(1), torch.zeros(2)
WRONG: dict[str, Callable[[], object]] = {
    "argument": lambda: PLACE(shaped)(ONE, ONE, "turned"),
    "result": lambda: PLACE(shaped)(ONE, ONE, False),
    "shape": lambda: PLACE(shaped)(ONE, TWO, True),
    "shape of a field": lambda: PLACE(Shaped)(torch.zeros(1, 2)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeCheckError):
        call()


def test_what_is_right_passes() -> None:
    assert PLACE(shaped)(TWO, TWO, True).shape == (2, 2)
    assert PLACE(Shaped)(ONE).first is ONE


def test_what_has_no_shape_stays_as_it_is() -> None:
    assert PLACE(plain) is plain
    assert PLACE(Plain) is Plain
    assert PLACE(plain)(0) == 0


def test_nothing_is_refused_where_checks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert PLACE(shaped)(ONE, ONE, False).shape == (2, 1)

    def inner(first: Float[Tensor, " texts"]) -> None: ...

    assert PLACE(inner) is inner


def test_the_package_is_checked() -> None:
    """The decorator of the import hook is the one that is tested here."""
    from raison.numerics.measures.curves import area

    with pytest.raises(TypeCheckError):
        area(np.zeros((2, 2)))
