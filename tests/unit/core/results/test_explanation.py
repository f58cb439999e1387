"""What an explanation says of itself in JSON, and which JSON is none."""

import pytest

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from tests.unit.report.explanations.test_html import explain


def test_older_explanations_are_signed() -> None:
    old = explain("a b").to_dict()
    del old["signed"]
    assert Explanation.from_dict(old).signed


def test_signs_go_there_and_back() -> None:
    e = explain("a b", (0.1, 0.2), signed=False)
    assert Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("signed", ["yes", None, 1, False])
def test_a_sign_that_the_scores_do_not_have_is_refused(signed: object) -> None:
    with pytest.raises(DataError, match="signed"):
        Explanation.from_dict(explain("a b", (0.1, -0.2)).to_dict() | {"signed": signed})


def test_labels_that_the_model_says_are_in_the_json() -> None:
    labels = {"classes": ("toxic", "insult"), "outputs": "labels", "target": "insult"}
    e = explain("a b", **labels, probabilities=(0.4, 0.6))
    assert e.to_dict()["decided"] == ["insult"]
    assert Explanation.from_json(e.to_json()) == e
    assert "decided" not in explain("a b").to_dict()


@pytest.mark.parametrize(
    "changes",
    [
        {"outputs": "rating"},
        {"outputs": None},
        {"outputs": "number"},
        {"outputs": "number", "classes": ["a"]},
        {"probabilities": []},
    ],
)
def test_outputs_that_do_not_fit_their_probabilities_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(DataError, match="outputs?|probabilities"):
        Explanation.from_dict(explain("a b").to_dict() | changes)
