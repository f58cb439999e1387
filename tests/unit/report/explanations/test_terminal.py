"""The terminal's view: whole text, signs without colour, nothing that a text can do to the terminal."""

import io
import math
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from raison.core.inputs.unit import Text
from raison.core.results.explanation import Explanation
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.explained import of_words


def explain(text: Text, scores: tuple[float, ...], **changes: Any) -> Explanation:
    values: dict[str, Any] = {"probabilities": (0.03, 0.97), "value_full": 0.97, "seed": 7, "evaluations": 1200}
    return replace(of_words(text, scores), **(values | changes))


def coloured(e: Explanation, **settings: Any) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80, **settings)
    with console.capture() as captured:
        console.print(explanation_text(e))
    return captured.get()


def test_says_what_was_predicted_explained_and_spent() -> None:
    shown = plain(explanation_text(explain("so good", (0.1, 0.4), notes={"completeness_gap": -0.03}, truncated=1)))
    for wanted in (
        "positive 97.0 %",
        "probability of positive, word by word",
        "occlusion",
        "0.970 -> 0.500 with every word removed (mask)",
        "1,200 evaluations, 0.500 s",
        "-0.03 between the sum of the scores",
        "1 token was cut off",
        "against positive",
    ):
        assert wanted in shown


def test_says_by_what_a_map_was_chosen_and_warns_of_one_that_was_not() -> None:
    notes = {"selected_by": "sufficiency", "candidates": 3, "candidate_values": [0.25, None, -0.5]}
    shown = plain(explanation_text(explain("so good", (0.1, 0.4), notes=notes)))
    assert "the best of 3 maps by sufficiency" in shown
    assert "best of 3 maps by sufficiency, which gave them -0.500 to 0.250" in shown
    assert "Warning" not in shown
    warned = plain(explanation_text(explain("so good", (0.1, 0.4), notes={"caution": "it points elsewhere"})))
    assert "Warning: it points elsewhere." in warned


@pytest.mark.parametrize("width", [30, 40, 50, 60, 120])
def test_narrow_terminals_keep_the_numbers_and_the_words(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        console.print(explanation_text(explain("a modest overwhelming confidence", (0.1, 0.25, -0.5, 0.0625))))
    lines = captured.get().splitlines()
    for number, word in (("-0.500", "overwhelming"), ("+0.250", "modest"), ("+0.062", "confidence")):
        assert any(line.split()[:1] == [number] and line.endswith(word) for line in map(str.rstrip, lines)), word
    assert all(len(line) <= width for line in lines)


def test_text_keeps_its_form() -> None:
    assert "  so,   very  good !\n" in plain(explanation_text(explain("so,   very  good !", (0.1, 0.2, 0.4, 0.0))))


def test_both_texts_of_a_pair_are_labelled() -> None:
    lines = plain(explanation_text(explain(("one two", "three"), (0.1, 0.2, -0.4)))).splitlines()
    assert lines[lines.index("first text") + 1] == "  one two"
    assert lines[lines.index("second text") + 1] == "  three"


def test_strongest_units_are_ranked_with_signs_and_bars() -> None:
    lines = plain(explanation_text(explain("a b c d", (0.1, -0.4, 0.2, 0.0)))).splitlines()
    ranked = [line for line in lines if "│" in line]
    assert [line.split()[0] for line in ranked] == ["-0.400", "+0.200", "+0.100", "0.000"]
    assert [line.split()[-1] for line in ranked] == ["b", "c", "a", "d"]
    assert ranked[0].index("━") < ranked[0].index("│") < ranked[1].index("━")
    assert "━" not in ranked[3]


def test_weaker_units_are_summed() -> None:
    e = explain("a b c d e f g h i j", (1.0,) * 8 + (0.25, -0.5))
    assert "2 weaker words add up to -0.25" in plain(explanation_text(e))


def test_colour_only_where_the_terminal_has_it() -> None:
    e = explain("bad good", (-0.4, 0.4))
    assert "48;2;178;24;43" in coloured(e)
    assert "48;2;33;102;172" in coloured(e)
    assert "48;2" not in coloured(e, no_color=True)
    assert "\x1b" not in plain(explanation_text(e))


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2" not in coloured(explain("bad good", (-0.4, 0.4)))


def test_text_cannot_steer_the_terminal() -> None:
    shown = plain(explanation_text(explain("\x1b[31mred\x07 \x9b2J [bold]x[/bold]", (0.1, 0.2, 0.3))))
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert "[bold]x[/bold]" in shown


def test_score_that_is_not_a_number_is_shown_as_such() -> None:
    shown = plain(explanation_text(explain("a b", (math.nan, 0.5))))
    assert "n/a" in shown
    assert "+0.500" in shown


def test_ascii_terminal_gets_ascii_bars() -> None:
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=buffer, width=80).print(explanation_text(explain("bad good", (-0.4, 0.3))))
    buffer.flush()
    assert b"==" in buffer.buffer.getvalue()  # type: ignore[attr-defined]


def test_small_scores_keep_three_digits() -> None:
    assert "+0.000123" in plain(explanation_text(explain("a b", (0.000123, -0.00001))))


def test_unsigned_scores_are_amounts() -> None:
    """Attention is never against anything: no sign, no side, a hue of its own, its own words."""
    e = explain("so very good", (0.1, 0.0, 0.4), signed=False, method="attention_rollout")
    lines = plain(explanation_text(e)).splitlines()
    shown = "\n".join(lines)
    assert "against" not in shown
    assert "for positive" not in shown
    assert "+" not in shown
    assert any("less important 0.000 " in line and " 0.400 more important" in line for line in lines)
    ranked = [line for line in lines if "│" in line]
    assert [line.split()[0] for line in ranked] == ["0.400", "0.100", "0.000"]
    assert ranked[0].index("│") == ranked[1].index("│") == 7
    assert ranked[0].count("━") == 28
    assert "48;2;106;27;125" in coloured(e)
    assert "48;2;178;24;43" not in coloured(e)


LABELS = {"classes": ("toxic", "insult", "threat"), "outputs": "labels"}


def test_labels_are_what_reaches_one_half() -> None:
    shares = (0.61, 0.93, 0.022)
    e = explain("so bad", (0.1, 0.4), **LABELS, probabilities=shares, target="insult")
    shown = plain(explanation_text(e))
    assert shown.startswith("Labels     insult 93.0 %, toxic 61.0 %\n")
    assert "probability of insult (93.0 %), word by word" in shown
    assert "Predicted" not in shown


def test_no_label_is_predicted_below_one_half() -> None:
    shares = (0.021, 0.02, 0.022)
    e = explain("so good", (0.1, 0.4), **LABELS, probabilities=shares, target="threat")
    shown = plain(explanation_text(e))
    assert shown.startswith("Labels     no label reaches 50 % (highest: threat 2.2 %)\n")
    assert "probability of threat (2.2 %), word by word" in shown
    assert "Predicted" not in shown
    assert e.decided == ()
    one = explain("so good", (0.1, 0.4), classes=("toxic",), outputs="labels", probabilities=(0.022,), target="toxic")
    assert plain(explanation_text(one)).startswith("Labels     no label reaches 50 % (toxic 2.2 %)\n")


def test_a_number_is_a_score() -> None:
    e = explain("so good", (0.1, 4.0), classes=("reward",), outputs="number", probabilities=(), of="logit",
                target="reward", value_full=19.62, value_empty=-3.5)  # fmt: skip
    lines = plain(explanation_text(e)).splitlines()
    assert lines[0] == "Score      19.6 (reward)"
    assert lines[1] == "Explained  the score, reward, word by word"
    assert any(line.startswith("lowers the score -4.00 ") and line.endswith("raises the score") for line in lines)
    assert any("19.620 -> -3.500 with every word removed" in line for line in lines)
    assert "%" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("share", "wanted"),
    [(0.04, None), (0.25, "25 % of the tokens are not in the model's vocabulary"),
     (0.92, "the model can hardly read this text: 92 % of the tokens")],
)  # fmt: skip
def test_says_what_the_vocabulary_lacks(share: float, wanted: str | None) -> None:
    e = explain("so 好", (0.1, 0.4), notes={"unknown_tokens": {"share": share, "units": [1]}})
    lines = plain(explanation_text(e)).splitlines()
    assert next(line for line in lines if "│" in line).endswith("好 (unknown to the model)")
    assert any(line.startswith("Unknown") and line.endswith("of the tokens, in 1 word") for line in lines)
    assert ("Warning" in "\n".join(lines)) is (wanted is not None)
    assert wanted is None or any(wanted in line for line in lines)
