"""Every number that a method or a metric may be given has its border on the side that its field states."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.core.registry import Catalogue, label_of
from raison.core.settings.fields import Field, fields_of
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS


@dataclass(frozen=True)
class Border:
    """One end of a field's range: the last value inside, and the first outside."""

    catalogue: Catalogue[Any]
    owner: str
    field: Field
    inside: int | float
    outside: int | float

    def made(self, value: int | float) -> Any:
        """The method or metric with this value, in a list if the field holds several."""
        return self.catalogue.get(self.owner)(**{self.field.name: (value,) if self.field.setting.fewest else value})

    def __str__(self) -> str:
        return f"{self.owner}-{self.field.name}-{self.outside:g}"


def borders() -> Iterator[Border]:
    for catalogue in (METHODS, METRICS):
        for owner in catalogue.names:
            for field in fields_of(catalogue.get(owner)).values():
                for inside, outside in _ends(field):
                    yield Border(catalogue, owner, field, inside, outside)


def _ends(field: Field) -> Iterator[tuple[int | float, int | float]]:
    setting = field.setting
    for end, away in ((setting.least, -math.inf), (setting.most, math.inf)):
        if end is not None:
            yield end, end + int(math.copysign(1, away)) if field.hint is int else math.nextafter(end, away)
    for end, away in ((setting.above, math.inf), (setting.below, -math.inf)):
        if end is not None:
            yield end + int(math.copysign(1, away)) if field.hint is int else math.nextafter(end, away), end


BORDERS = list(borders())


def test_ranges_are_stated() -> None:
    """Numbers without any range are these; a new one was thought about."""
    free = {
        f"{owner}.{field.name}"
        for catalogue in (METHODS, METRICS)
        for owner in catalogue.names
        for field in fields_of(catalogue.get(owner)).values()
        if field.hint in (int, float) and not any(_ends(field))
    }
    assert free == {"simulatability.seed"}


@pytest.mark.parametrize("border", BORDERS, ids=str)
def test_the_last_value_inside_is_accepted_and_the_first_outside_refused(border: Border) -> None:
    border.made(border.inside)
    with pytest.raises(InputError) as caught:
        border.made(border.outside)
    message = str(caught.value)
    assert message.startswith(f"{border.field.name} of {border.owner} cannot be ")
    assert f": give {border.field.words}." in message
    assert "\n" not in message


@pytest.mark.parametrize("border", [border for border in BORDERS if not border.field.setting.fewest], ids=str)
def test_numbers_of_numpy_are_accepted_as_pythons_own(border: Border) -> None:
    inside = (np.int64 if border.field.hint is int else np.float64)(border.inside)
    found = border.made(inside)
    assert found == border.made(border.inside)
    assert "np." not in label_of(found)


@pytest.mark.parametrize("border", BORDERS, ids=str)
@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", [[]]])
def test_what_is_no_such_number_is_refused(border: Border, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{border.field.name} of {border.owner} cannot be "):
        border.made(value)
