"""What the component paints: the layout of every other view, places in the text, one scale, agreement in a number."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from raison.core.inputs.unit import Text, segments
from raison.core.results.explanation import Explanation
from raison.numerics.measures.agreement import spearman
from raison.report.explanations.layout import layout
from raison.report.explanations.pairwise_agreement import agreement
from raison.web.component.views import change, seen
from tests.explained import of_words

TEXTS: dict[str, Text] = {
    "plain": "a modest  pleasure .",
    "emoji": "👩‍👩‍👧 good 🎬👍🏽 film\n",
    "right to left": "كان الفيلم رائعًا",
    "pair": ("A man plays.", "Nobody makes music."),
}


def scored(text: Text, *scores: float, **changes: Any) -> Explanation:
    return replace(of_words(text, scores or None), **changes)


def views(*explanations: Explanation) -> list[dict[str, Any]]:
    painted: list[dict[str, Any]] = seen(explanations)["views"]  # type: ignore[assignment]
    return painted


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_spans_are_the_text_and_know_their_places(text: Text) -> None:
    [view] = views(of_words(text))
    for string, passage in zip(segments(text), view["passages"], strict=True):
        assert "".join(part["text"] for span in passage["spans"] for part in span["parts"]) == string
        for span in passage["spans"]:
            assert string[span["start"] : span["end"]] == "".join(part["text"] for part in span["parts"])


def test_numbers_colours_and_bars_are_those_of_the_layout() -> None:
    e = scored("a modest pleasure", 0.1, -0.25, 0.5)
    shown, [view] = layout(e), views(e)
    spans = [span for span in view["passages"][0]["spans"] if span["units"]]
    assert [span["said"] for span in spans] == ["+0.100, rank 3 of 3", "−0.250, rank 2 of 3", "+0.500, rank 1 of 3"]
    assert [span["colour"] for span in spans] == [shown.scale.css(level) for level in (0.2, -0.5, 1.0)]
    bars = [(bar["name"], bar["value"], bar["side"], bar["length"]) for bar in view["bars"]]
    assert bars == [
        ("pleasure", "+0.500", "for", 1.0),
        ("modest", "−0.250", "against", 0.5),
        ("a", "+0.100", "for", 0.2),
    ]


def test_a_score_that_is_no_number_has_no_colour_and_the_rest_is_json() -> None:
    [view] = views(scored("one two", float("nan"), 0.5))
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    assert [span["colour"] != "" for span in view["passages"][0]["spans"] if span["units"]] == [False, True]


def test_two_maps_have_the_ends_of_the_larger_one() -> None:
    small, large = scored("a b c", 0.1, 0.2, -0.1), scored("a b c", 0.4, -0.8, 0.1)
    assert [view["ends"]["high"] for view in views(small, large)] == ["+0.800", "+0.800"]
    assert [view["ends"]["high"] for view in views(small)] == ["+0.200"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"of": "logit"}, "probability and logit have no common scale"),
        ({"signed": False}, "signed and unsigned scores have no common scale"),
    ],
)
def test_what_has_no_common_scale_keeps_its_own_and_says_so(changes: dict[str, Any], reason: str) -> None:
    one, other = scored("a b c", 0.1, 0.2, 0.1), scored("a b c", 0.4, 0.8, 0.1, **changes)
    assert [view["ends"]["high"].lstrip("+") for view in views(one, other)] == ["0.200", "0.800"]
    assert any(remark.startswith(reason) for remark in seen([one, other])["remarks"])  # type: ignore[attr-defined]


def test_agreement_is_the_rank_correlation_of_the_units_that_both_texts_have() -> None:
    first = scored("a modest pleasure with ease", 0.1, 0.5, 0.9, -0.2, 0.3)
    second = scored("a dull pleasure with much ease", 0.2, -1.0, 0.1, 0.0, 0.7, 0.6)
    own = first.scores[0], first.scores[2], first.scores[3], first.scores[4]
    others = second.scores[0], second.scores[2], second.scores[3], second.scores[5]
    value = spearman(np.array(own), np.array(others))
    assert agreement(first, second) == f"Agreement: rank correlation of the scores {value:+.2f}, over 4 words"


def test_agreement_with_scores_that_have_no_sign_is_that_of_their_sizes() -> None:
    signed, plain = scored("a b c", 0.1, -0.9, 0.5), scored("a b c", 0.1, 0.9, 0.5, signed=False)
    assert agreement(signed, plain) == "Agreement: rank correlation of the sizes of the scores +1.00, over 3 words"


def test_too_few_common_units_have_no_agreement() -> None:
    assert "not measured" in agreement(scored("a b c", 1, 2, 3), scored("a b x", 1, 2, 3))


def test_equal_scores_have_no_order_to_agree_with() -> None:
    assert "scores n/a" in agreement(scored("a b c", 1, 1, 1), scored("a b c", 1, 2, 3))


def test_a_change_names_both_values() -> None:
    e = scored("a b")
    assert change(e, replace(e, value_full=0.25)) == "Probability of positive: 0.750 → 0.250 (−0.500)"


def test_a_prediction_that_changed_is_followed_by_the_first_ones_probability() -> None:
    e = scored("a b c", 1, 2, 3)
    other = replace(e, target="negative", probabilities=(0.9, 0.1), value_full=0.9)
    assert change(e, other) == "Probability of positive: 0.750 → 0.100 (−0.650)"
    remarks = seen([e, other])["remarks"]
    assert "The first map explains the probability of positive, the second the probability of negative" in remarks  # type: ignore[operator]
