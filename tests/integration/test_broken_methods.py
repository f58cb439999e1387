"""A method that is being written returns something wrong: one line says what, and nothing becomes an explanation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import AnswerError, NonFiniteError, UnsupportedError
from raison.core.method import Cost, Method, Property
from tests.toys import TEXTS, Linear

WRONG = {
    "few": lambda texts, units: torch.zeros(texts, units - 1),
    "more": lambda texts, units: torch.zeros(texts, units + 1),
    "rows": lambda texts, units: torch.zeros(texts + 1, units),
    "flat": lambda texts, _: torch.zeros(texts),
    "list": lambda texts, units: [[0.0] * units] * texts,
    "array": lambda texts, units: np.zeros((texts, units)),
    "nothing": lambda *_: None,
}
NOT_FINITE = "not finite"


@dataclass(frozen=True)
class Broken(Method):
    """Returns what `WRONG` says, or NaN."""

    returned: str = "few"
    reference: ClassVar = ""
    passes: ClassVar = "0"

    def cost(self, units: int) -> Cost:
        return Cost(0)

    def attribute(self, problem: Any, rngs: Any) -> Any:
        if self.returned == NOT_FINITE:
            return torch.full((len(problem.encoding), max(problem.encoding.unit_counts)), torch.nan)
        return WRONG[self.returned](len(problem.encoding), max(problem.encoding.unit_counts))


@dataclass(frozen=True)
class Plain(Broken):
    """Nothing is wrong, but it is no method of the catalogue."""

    def attribute(self, problem: Any, rngs: Any) -> Any:
        return torch.zeros(len(problem.encoding), max(problem.encoding.unit_counts))


@dataclass(frozen=True)
class BrokenMaps(Broken):
    """Offers several maps, which are wrong."""

    properties: ClassVar = frozenset({Property.CANDIDATES})

    @property
    def maps(self) -> int:
        return 2

    def candidates(self, problem: Any, rngs: Any) -> Any:
        return self.attribute(problem, rngs)


@dataclass(frozen=True)
class Keeping(Broken):
    """Asks for the values of keeps that are wrong."""

    def attribute(self, problem: Any, rngs: Any) -> Any:
        counts = problem.encoding.unit_counts
        keeps = {
            "numbers": [torch.ones(1, count, dtype=torch.long) for count in counts],
            "long": [torch.ones(1, count + 1, dtype=torch.bool) for count in counts],
            "one": [torch.ones(1, counts[0], dtype=torch.bool)],
            "array": [np.ones((1, count), dtype=bool) for count in counts],
            "list": [[[True] * count] for count in counts],
        }[self.returned]
        # The tests check types of all calls, which the library does not.
        type(problem).values.__wrapped__(problem, keeps)
        return None


CHANGES: dict[str, Callable[[Any], object]] = {
    "problem.encoding.input_ids": lambda problem: problem.encoding.input_ids[:, 1].fill_(4),
    "problem.encoding.unit_ids": lambda problem: problem.encoding.unit_ids.numpy().fill(0),
    "problem.encoding.attention_mask": lambda problem: problem.encoding.attention_mask[:, 0].zero_(),
    "problem.target.index": lambda problem: problem.target.index.fill_(3),
}


@dataclass(frozen=True)
class Changing(Broken):
    """Returns scores, and changes what it was given in place."""

    def attribute(self, problem: Any, rngs: Any) -> Any:
        CHANGES[self.returned](problem)
        return torch.zeros(len(problem.encoding), max(problem.encoding.unit_counts))


@pytest.mark.parametrize("changed", CHANGES)
def test_a_method_that_changes_its_input_is_refused(changed: str) -> None:
    with pytest.raises(AnswerError) as caught:
        raison.compare(Linear(), TEXTS, [Changing(changed), "occlusion"], "comprehensiveness", progress=False)
    assert str(caught.value) == (
        f"test_broken_methods.Changing changed {changed} in place, which other methods and metrics of the same texts "
        "read: clone it first."
    )


@pytest.mark.parametrize("returned", WRONG)
def test_scores_of_another_shape_are_refused(returned):
    method = Broken(returned)
    with pytest.raises(AnswerError, match=r"Broken\.attribute has to return a tensor of 4 texts x 6 units"):
        raison.explain(Linear(), TEXTS, method, progress=False)
    with pytest.raises(AnswerError, match=r"test_broken_methods\.Broken returned scores of"):
        raison.compare(Linear(), TEXTS, method, "comprehensiveness", progress=False)


def test_scores_that_are_not_finite_are_not_blamed_on_the_model_alone():
    with pytest.raises(NonFiniteError, match=r"Broken gave NaN .*; anything else is a mistake of the method\."):
        raison.explain(Linear(), TEXTS, Broken(NOT_FINITE), progress=False)


@dataclass(frozen=True)
class Negative(Broken):
    """Declares that no score is below zero, and returns one that is."""

    properties: ClassVar = frozenset({Property.UNSIGNED})

    def attribute(self, problem: Any, rngs: Any) -> Any:
        scores = torch.zeros(len(problem.encoding), max(problem.encoding.unit_counts))
        for row, count in enumerate(problem.encoding.unit_counts):
            # Past the units of a text, entries are ignored.
            scores[row, count:] = -1.0
            scores[row, count - 1] = -0.25 if count == 6 else 0.0
        return scores


def test_scores_below_zero_of_an_unsigned_method_are_refused():
    message = (
        r"test_broken_methods\.Negative declares that no score is below zero \(UNSIGNED\), but gave -0\.25 on 'not a"
    )
    with pytest.raises(AnswerError, match=message):
        raison.explain(Linear(), TEXTS, Negative(), progress=False)


NOTES: dict[str, object] = {
    "float32": np.float32(0.5),
    "pair": (1, np.int64(2)),
    "tensor": torch.ones(2),
    "array": np.ones(2),
    "nan": math.nan,
    "set": {1},
    "keys": {(1, 2): 3},
    "caution": 3,
    "precision": 1,
    "noise": 0.1,
    "among": 3,
    "threshold": "x",
    "unknown_tokens": 0.2,
    "exact": 3,
    "groups": 0.5,
    "group_intervals": "x",
}


@dataclass(frozen=True)
class Noting(Broken):
    """Adds a note that NOTES says, for as many texts as there are, or for one."""

    alone: bool = False

    def attribute(self, problem: Any, rngs: Any) -> Any:
        texts = len(problem.encoding)
        problem.note(self.returned, [NOTES[self.returned]] * (1 if self.alone else texts))
        return torch.zeros(texts, max(problem.encoding.unit_counts))


@pytest.mark.parametrize("name", ["tensor", "array", "nan", "set", "keys"])
def test_a_note_that_json_lacks_is_refused(name: str) -> None:
    with pytest.raises(AnswerError, match=rf"^the note '{name}' is .* which cannot be stored \([^\n]*\.$"):
        raison.explain(Linear(), TEXTS, Noting(name), progress=False)


@pytest.mark.parametrize(("name", "kept"), [("float32", 0.5), ("pair", [1, 2])])
def test_numbers_and_tuples_of_notes_are_kept_as_json_has_them(name: str, kept: object) -> None:
    explained = raison.explain(Linear(), TEXTS[0], Noting(name), progress=False)
    assert (explained.notes[name], type(explained.notes[name])) == (kept, type(kept))
    assert raison.Explanation.from_json(explained.to_json()) == explained


@pytest.mark.parametrize(
    "name",
    [
        *("caution", "precision", "noise", "among", "threshold", "unknown_tokens"),
        *("exact", "groups", "group_intervals"),
    ],
)
def test_a_note_that_is_read_has_its_type(name: str) -> None:
    message = (
        rf"test_broken_methods\.Noting adds a note under a name that raison reads itself: {name} is .*; it must be"
    )
    with pytest.raises(AnswerError, match=message):
        raison.explain(Linear(), TEXTS, Noting(name), progress=False)


def test_a_note_is_about_every_text() -> None:
    with pytest.raises(AnswerError, match="the note 'pair' has 1 values for 4 texts: give one for each"):
        raison.explain(Linear(), TEXTS, Noting("pair", alone=True), progress=False)


class Counting(Linear):
    """Counts its passes."""

    passes = 0

    def masked_logits(self, *given: Any) -> Any:
        self.passes += 1
        return super().masked_logits(*given)


@pytest.mark.parametrize("metric", ["harmless_change", "max_sensitivity"])
def test_a_metric_that_explains_again_refuses_a_method_without_a_name_before_anything_runs(
    metric: str, tmp_path: Path
) -> None:
    model, out = Counting(), tmp_path / "out"
    with pytest.raises(UnsupportedError, match="explanations of test_broken_methods.Plain cannot be made again"):
        raison.compare(model, TEXTS, ["occlusion", Plain()], ["gini", metric], out=out, progress=False)
    assert model.passes == 0
    assert not out.exists()
    explained = raison.explain(model, TEXTS, Plain(), progress=False)
    before = model.passes
    with pytest.raises(UnsupportedError, match="explanations of test_broken_methods.Plain cannot be made again"):
        raison.evaluate(model, explained, metric, progress=False)
    assert model.passes == before


def test_maps_of_another_shape_are_refused():
    with pytest.raises(AnswerError, match=r"BrokenMaps\.candidates has to return a tensor of maps x 4 texts x 6 units"):
        raison.compare(
            Linear(), TEXTS, BrokenMaps("rows"), "comprehensiveness", select="comprehensiveness", progress=False
        )


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("numbers", r"type int64, for a text of 6 units: a method gives a torch tensor of masks x 6 of type bool"),
        ("array", r"keeps of type ndarray, for a text of 6 units: a method gives a torch tensor of masks x 6 of type"),
        ("list", "keeps of type list, for a text of 6 units: a method gives a torch tensor of masks x 6"),
        ("long", r"keeps of shape 1 x 7 and type bool, for a text of 6 units"),
        ("one", "1 tensors of keeps for 4 texts"),
    ],
)
def test_keeps_of_another_shape_are_refused(returned, message):
    with pytest.raises(AnswerError, match=message):
        raison.explain(Linear(), TEXTS, Keeping(returned), progress=False)
