"""What comes from outside is checked field by field: any wrong value is one typed line, never another error."""

import functools
import json
import random
from typing import Any

import pytest

from raison.core.errors import DataError
from raison.core.inputs.unit import Unit
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation, OutputToken
from raison.core.settings.reading import toml_value
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.unit.report.explanations.test_html import explain

WRONG: tuple[Any, ...] = (
    None, True, -1, 10**400, 1.5, float("nan"), float("inf"), "", "x", "<script>", "\ud800", [], [1], ["a"], [None],
    {}, {"a": 1}, [[]], [{}], [{"start": 0}],
)  # fmt: skip


def written() -> GenerationExplanation:
    token = OutputToken("sea", 3, 4, 7, 0.5, 0.5, 0.1, 4, 0)
    unit = Unit(0, 3, "the")
    return GenerationExplanation(
        "the ", "sea", (token,), "word", (unit,), ((0.4,),), "probability", "occlusion", {}, "m", "unk", 0, 0.1
    )


EXAMPLES = {
    "explanation": explain("a modest pleasure"),
    "pair": explain(("a man", "plays music")),
    "output": written(),
}
LAST = {"start": 9, "end": 17, "text": "pleasure"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_was_written_is_read(name: str) -> None:
    example = EXAMPLES[name]
    assert type(example).from_json(example.to_json()) == example


@pytest.mark.parametrize("name", EXAMPLES)
def test_any_wrong_value_is_one_typed_line_or_an_explanation_that_can_be_shown(name: str) -> None:
    example = EXAMPLES[name]
    data = json.loads(example.to_json())
    lines: list[str] = []
    for field in data:
        for wrong in WRONG:
            try:
                found = type(example).from_dict(data | {field: wrong})
            except DataError as error:
                lines.append(str(error))
            else:
                assert "<script>alert" not in found.to_html()
    assert len(lines) > 10 * len(data)
    assert all("\n" not in line and len(line) < 300 for line in lines)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EXAMPLES)
def test_any_wrong_part_is_one_typed_line(name: str, seed: int) -> None:
    rng = random.Random(seed)
    kind = type(EXAMPLES[name])
    for _ in range(100):
        data = json.loads(EXAMPLES[name].to_json())
        part: Any = data
        while True:
            key = rng.choice(list(part) if isinstance(part, dict) else range(len(part)))
            if not isinstance(part[key], dict | list) or not part[key] or rng.random() < 0.3:
                break
            part = part[key]
        part[key] = rng.choice(WRONG)
        try:
            kind.from_dict(data).to_html()
        except DataError:
            continue


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scores": [0.1, 0.2]}, "scores has 2 items; it must have 3"),
        ({"scores": [0.1, 0.2, float("nan")]}, r"scores\[2\] is nan, not a finite number"),
        ({"probabilities": [0.5, 1.5]}, r"probabilities\[1\] is 1.5, not a finite number between 0 and 1"),
        ({"unit": "<img src=x onerror=alert(1)>" * 20}, "unit is .* a string of at most 200 characters"),
        ({"units": [{"start": 0, "end": 99, "text": "a"}] * 3}, "end is 99; it must be between its start and"),
        ({"units": [LAST, {"start": 0, "end": 1, "text": "a"}]}, "at or after the end"),
        ({"units": [{**LAST, "text": "dull"}]}, "text is 'dull'; it must be the text's characters 9 to 17"),
        ({"schema": "1"}, "schema is '1'; it must be a whole number"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
    ],
)
def test_the_line_says_what_is_wrong(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Explanation.from_dict(EXAMPLES["explanation"].to_dict() | change)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '"x"', "\ud800"])
def test_what_is_no_object(text: str) -> None:
    for kind in (Explanation, GenerationExplanation):
        with pytest.raises(DataError, match="^not an explanation"):
            kind.from_json(text)


def test_half_a_character_survives_json_and_utf_8() -> None:
    """Some programs cut a text within an emoji: JSON can say so, UTF-8 cannot."""
    e = explain("one \ud83d half and é 海")
    written_out = e.to_json()
    assert Explanation.from_json(written_out.encode("utf-8").decode("utf-8")) == e
    assert "é 海" in written_out
    assert "\\ud83d" in written_out


NOTES: dict[str, tuple[Any, ...]] = {
    "completeness_gap": (0.1, 1),
    "decomposition_gap": (0.0,),
    "caution": ("read this", ["one", "other"]),
    "unsteady": ("it moves",),
    "trained_for": ("log_odds", ["a", "b"]),
    "precision": (
        {"evaluations": "bfloat16", "rank_correlation": None, "checked": 5},
        [{"evaluations": "bfloat16", "rank_correlation": 0.9, "checked": 5}],
    ),
    "unknown_tokens": ({"share": 0.5, "units": [0, 2]},),
    "anything else": (*WRONG[:2], ["a", {"b": None}], "<script>alert(1)</script>"),
}
CHOSEN = {"selected_by": "log_odds", "candidates": 3, "candidate_values": [0.1, None, 0.3]}


def test_notes_of_the_right_type_are_read_and_shown() -> None:
    data = EXAMPLES["explanation"].to_dict()
    for notes in [{name: value} for name, values in NOTES.items() for value in values] + [CHOSEN]:
        found = Explanation.from_dict(data | {"notes": notes})
        assert found.notes == notes
        assert "<script>alert" not in found.to_html()


@pytest.mark.parametrize("name", [*(name for name in NOTES if name != "anything else"), *CHOSEN])
def test_a_note_of_another_type_is_one_line_and_never_reaches_a_view(name: str) -> None:
    data = EXAMPLES["explanation"].to_dict()
    rest = CHOSEN if name in CHOSEN else {}
    refused = 0
    for wrong in (*WRONG, {"share": 0.5, "units": [3]}, {"share": 2, "units": []}, {"evaluations": 1, "checked": 2}):
        try:
            found = Explanation.from_dict(data | {"notes": rest | {name: wrong}})
        except DataError as error:
            refused += "\n" not in str(error)
        else:
            assert "<script>alert" not in found.to_html()
            assert plain(explanation_text(found))
    assert refused > len(WRONG) / 2


@pytest.mark.parametrize("left", ["selected_by", "candidates"])
def test_what_was_chosen_says_by_what_and_from_how_many(left: str) -> None:
    notes = {name: value for name, value in CHOSEN.items() if name != left}
    with pytest.raises(DataError, match=f"the notes: {left} is None"):
        Explanation.from_dict(EXAMPLES["explanation"].to_dict() | {"notes": notes})


DEEP: Any = functools.reduce(lambda inner, _: [inner], range(33), 0.5)


@pytest.mark.parametrize(
    "wrong", [float("nan"), {"a": [float("inf")]}, 10**400, DEEP], ids=["nan", "inf", "far", "deep"]
)
@pytest.mark.parametrize("field", ["config", "notes"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_settings_and_notes_are_finite_and_not_deep(name: str, field: str, wrong: Any) -> None:
    example = EXAMPLES[name]
    with pytest.raises(DataError, match=f"{field} has under 'own' a number that is not finite, or values that nest"):
        type(example).from_dict(example.to_dict() | {field: {"own": wrong}})
    assert type(example).from_dict(example.to_dict() | {field: {"own": DEEP[0]}})


def test_toml_is_read_or_refused_as_a_value() -> None:
    assert toml_value("a = [1]") == {"a": [1]}
    for wrong in ("a = x", "a = " + "[" * 5000 + "]" * 5000, "a = " + "1" * 5000):
        with pytest.raises(ValueError, match=r"Invalid value|nest too deeply|4300 digits"):
            toml_value(wrong)
