"""A metric that is being written returns something wrong: one line says what, and nothing becomes a value."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import AnswerError, InputError, UnsupportedError
from raison.core.metric import GroupMetric, Metric
from raison.metrics.max_sensitivity import MaxSensitivity
from tests.toys import TEXTS, Linear

NUMBERS: dict[str, object] = {
    "nothing": None,
    "text": "0.5",
    "infinity": math.inf,
    "tensor": torch.tensor(0.5),
    "array": np.array([0.5]),
    "two": (0.5, 0.5),
}
PARTS: dict[str, object] = {
    "nothing": None,
    "one": 0.5,
    "three": (0.5, 0.5, 0.5),
    "infinity": (0.5, -math.inf),
}
GROUPS: dict[str, object] = {
    "nothing": None,
    "one number": 0.5,
    "none": [],
    "a gap": [0.5, None],
    "infinity": [math.inf],
    "table": np.zeros((2, 2)),
}


@dataclass(frozen=True)
class Broken(Metric):
    """Returns what NUMBERS says."""

    returned: str = "nothing"
    reference: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True

    def measure(self, explanation: Any, evidence: Any) -> Any:
        return NUMBERS[self.returned]


@dataclass(frozen=True)
class BrokenParts(Broken):
    """Returns what PARTS says."""

    @property
    def pool(self) -> str:
        return "ratio"

    def measure(self, explanation: Any, evidence: Any) -> Any:
        return PARTS[self.returned]


@dataclass(frozen=True)
class BrokenGroups(GroupMetric):
    """Returns what GROUPS says, or more values for the explanations of one method than of others."""

    returned: str = "nothing"
    reference: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True

    @property
    def size(self) -> None:
        return None

    def measure(self, explanations: Any, evidence: Any) -> Any:
        if self.returned == "unequal":
            return [0.5] * (2 if explanations[0].method.startswith("random") else 1)
        return GROUPS[self.returned]


@dataclass(frozen=True)
class InPlace(MaxSensitivity):
    """Works in place on the scores that it is given."""

    def measure(self, explanation: Any, evidence: Any) -> float:
        for shift in self.shifts(explanation):
            evidence.shifted_scores(shift).fill(7.0)
        return 0.0


def test_a_metric_that_works_in_place_changes_no_other() -> None:
    explained = raison.explain(Linear(), TEXTS, "occlusion", progress=False)
    [alone] = raison.evaluate(Linear(), explained, MaxSensitivity(), progress=False).metrics
    [_, beside] = raison.evaluate(Linear(), explained, [InPlace(), MaxSensitivity()], progress=False).metrics
    assert beside.values == alone.values


KEEPS: dict[str, tuple[Callable[[int], object], str]] = {
    "numbers": (lambda units: np.ones((1, units), dtype=int), "an array of shape 1 x 2 and type int64"),
    "short": (lambda units: np.ones((1, units - 1), dtype=bool), "an array of shape 1 x 1 and type bool"),
    "flat": (lambda units: np.ones(units, dtype=bool), "an array of shape 2 and type bool"),
    "list": (lambda units: [[True] * units], "an object of type list"),
    "tensor": (lambda units: torch.ones(1, units, dtype=torch.bool), "an object of type Tensor"),
}


@dataclass(frozen=True)
class Asking(Broken):
    """Asks for the keeps that KEEPS says, before it measures or while it does."""

    early: bool = True

    def keeps(self, explanation: Any) -> Any:
        return {"mask": KEEPS[self.returned][0](len(explanation.units))} if self.early else {}

    def measure(self, explanation: Any, evidence: Any) -> Any:
        return float(evidence.values(KEEPS[self.returned][0](len(explanation.units)), "mask")[0])


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("returned", KEEPS)
def test_keeps_of_another_shape_are_refused_with_the_metric_s_name(returned: str, early: bool) -> None:
    explained = raison.explain(Linear(), TEXTS[0], "occlusion")
    found = refused(lambda: raison.evaluate(Linear(), explained, Asking(returned, early), progress=False))
    assert found == (
        f"Asking.{'keeps' if early else 'measure'} asks for keeps as {KEEPS[returned][1]}, "
        f"on '{'any text' if early else 'good film'}' of 2 units: "
        "give a numpy array of masks x 2 of type bool, True for the units that stay."
    )


@dataclass(frozen=True)
class Unnamed(Broken):
    """Asks for keeps without a removal."""

    def keeps(self, explanation: Any) -> Any:
        return np.ones((1, len(explanation.units)), dtype=bool)


def test_keeps_without_a_removal_are_refused() -> None:
    explained = raison.explain(Linear(), TEXTS[0], "occlusion")
    found = refused(lambda: raison.evaluate(Linear(), explained, Unnamed(), progress=False))
    assert found == (
        "Unnamed.keeps returned array([[ True, True]]) on 'any text': return a dict from removals, such as IN_PLACE, "
        "to keeps."
    )


@dataclass(frozen=True)
class Replacing(Broken):
    """Its removal has a name of its own."""

    replaced_by: str = "delete"

    def keeps(self, explanation: Any) -> Any:
        return {self.replaced_by: np.ones((1, len(explanation.units)), dtype=bool)}


def test_a_removal_is_checked_whatever_its_setting_is_called() -> None:
    explained = raison.explain(Linear(), TEXTS[0], "occlusion")
    with pytest.raises(UnsupportedError, match=r"removes by 'blank', which the model cannot: give replaced_by='"):
        raison.evaluate(Linear(), explained, Replacing(replaced_by="blank"), progress=False)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(AnswerError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("returned", NUMBERS)
def test_what_is_no_number_is_refused(returned: str) -> None:
    explained = raison.explain(Linear(), TEXTS, "occlusion", progress=False)
    expected = (
        f"Broken.measure returned {NUMBERS[returned]!r} on 'good film': return a float, or NaN where it is undefined."
    )
    assert refused(lambda: raison.evaluate(Linear(), explained, Broken(returned), progress=False)) == expected
    compared = refused(lambda: raison.compare(Linear(), TEXTS, "occlusion", Broken(returned), progress=False))
    assert compared.startswith(f"Broken.measure returned {NUMBERS[returned]!r} on ")


@pytest.mark.parametrize("returned", PARTS)
def test_other_parts_than_the_pool_needs_are_refused(returned: str) -> None:
    found = refused(lambda: raison.compare(Linear(), TEXTS, "occlusion", BrokenParts(returned), progress=False))
    assert found.startswith(f"BrokenParts.measure returned {PARTS[returned]!r} on ")
    assert found.endswith("return a tuple of 2 floats, as its pool 'ratio' needs, each NaN where it is undefined.")


@pytest.mark.parametrize("returned", GROUPS)
def test_values_of_groups_are_checked(returned: str) -> None:
    explained = raison.explain(Linear(), TEXTS, "occlusion", progress=False)
    found = refused(lambda: raison.evaluate(Linear(), explained, BrokenGroups(returned), progress=False))
    assert found.endswith(" on a group of 4 texts: return a list of one or more floats, or NaN where it is undefined.")


def test_methods_have_equal_numbers_of_values_of_groups() -> None:
    broken = BrokenGroups("unequal")
    found = refused(lambda: raison.compare(Linear(), TEXTS, ["occlusion", "random"], broken, progress=False))
    assert sorted(re.findall(r"\d", found)) == ["1", "2"]
    assert found.endswith("for another: return as many for the same texts.")


def test_numbers_of_numpy_and_truths_are_numbers() -> None:
    for number in (np.float32(0.5), np.int64(1), np.bool_(True), True, 3, math.nan):
        NUMBERS["fit"] = number
        (scores,) = raison.compare(Linear(), TEXTS, "occlusion", Broken("fit"), progress=False).rows[0].metrics
        assert scores.values == pytest.approx([float(number)] * 4, nan_ok=True)
    del NUMBERS["fit"]


def test_a_metric_without_a_direction_is_refused_before_anything_runs() -> None:
    @dataclass(frozen=True)
    class Directionless(Metric):
        def measure(self, explanation: Any, evidence: Any) -> float:
            return 1.0

    with pytest.raises(InputError, match="Directionless does not state higher_is_better: set it in the class"):
        raison.compare(Linear(), TEXTS, ["occlusion"], [Directionless()], progress=False)
