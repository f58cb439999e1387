"""The settings of a method are made plain and checked when it is made, with the method's name in the message."""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost, Method
from raison.core.settings.fields import Setting
from raison.core.settings.settled import plain, settle
from raison.methods.random import Random

if TYPE_CHECKING:
    from nowhere import Unknown


@dataclass(frozen=True)
class Sieve:
    """Sorts stones."""

    holes: Annotated[int, Setting(least=2)] = 4
    widths: Annotated[tuple[float, ...] | list[float], Setting(above=0, below=1, fewest=1)] = (0.5,)
    shape: Literal["round", "square"] = "round"
    frame: Annotated[int, Setting(most=9)] | None = None
    turned: ClassVar[bool] = False


def made(**values: Any) -> Sieve:
    sieve = Sieve()
    for name, value in values.items():
        object.__setattr__(sieve, name, value)
    settle(sieve, "sieve")
    return sieve


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ([1, [np.int8(2)]], (1, (2,))),
        (True, True),
        ("a", "a"),
        (None, None),
        (Fraction(1, 2), Fraction(1, 2)),
    ],
)
def test_numbers_are_pythons_own_and_lists_tuples(given: object, kept: object) -> None:
    found = plain(given)
    assert (found, type(found)) == (kept, type(kept))


def test_values_that_fit_are_kept_plain() -> None:
    sieve = made(holes=np.int64(2), widths=[np.float64(0.25), 0.75], shape="square", frame=9)
    assert sieve == Sieve(2, (0.25, 0.75), "square", 9)
    assert (type(sieve.holes), type(sieve.widths)) == (int, tuple)
    assert hash(sieve) == hash(Sieve(2, (0.25, 0.75), "square", 9))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"holes": 1}, "holes of sieve cannot be 1: give a whole number of at least 2."),
        ({"holes": 2.5}, "holes of sieve cannot be 2.5: give a whole number of at least 2."),
        ({"holes": True}, "holes of sieve cannot be True: give a whole number of at least 2."),
        ({"holes": "3"}, "holes of sieve cannot be '3': give a whole number of at least 2."),
        ({"widths": ()}, "widths of sieve cannot be ():"),
        ({"widths": [0.5, 1]}, "widths of sieve cannot be (0.5, 1):"),
        ({"widths": [0]}, "widths of sieve cannot be (0,):"),
        ({"widths": 0.5}, "widths of sieve cannot be 0.5:"),
        ({"widths": [float("nan")]}, "widths of sieve cannot be (nan,):"),
        ({"frame": 10}, "frame of sieve cannot be 10: give a whole number of at most 9."),
        ({"shape": 3}, 'shape of sieve cannot be 3: give "round" or "square".'),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_owner(values: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**values)
    assert str(caught.value).startswith(line)


def test_every_mistake_is_named() -> None:
    with pytest.raises(InputError) as caught:
        made(holes=1, frame=10)
    assert [line.split(" cannot")[0].strip() for line in str(caught.value).splitlines()] == [
        "holes of sieve",
        "frame of sieve",
    ]


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="unknown shape of sieve 'sqare'. Did you mean 'square'"):
        made(shape="sqare")


def test_types_that_only_a_type_checker_knows_are_not_checked() -> None:
    @dataclass(frozen=True)
    class Foreign(Random):
        sort: "Unknown | None" = None

    object.__setattr__(found := object.__new__(Foreign), "sort", [3])
    object.__setattr__(found, "draws", np.int64(2))
    settle(found, "foreign")
    assert (found.sort, found.draws) == ((3,), 2)


@dataclass(frozen=True)
class Loose(Method):
    """A method of the caller's own, whose setting may be anything that results can state."""

    loose: object = None
    reference: ClassVar[str] = ""
    passes: ClassVar[str] = "0"

    def cost(self, units: int) -> Cost:
        return Cost(0)

    def attribute(self, problem: Any, rngs: Any) -> Any:
        raise AssertionError("nothing runs")


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize("value", [b"x", frozenset({1}), np.float32, len, Colour.RED, math.nan, (1.0, math.inf)])
def test_settings_that_json_lacks_are_refused(value: object) -> None:
    with pytest.raises(InputError) as caught:
        Loose(value)
    assert str(caught.value).startswith("loose of test_settled.Loose cannot be ")
    assert "results state it as JSON" in str(caught.value)


def test_settings_that_json_has_are_kept() -> None:
    assert Loose([1, ("a", None), True]).loose == (1, ("a", None), True)
