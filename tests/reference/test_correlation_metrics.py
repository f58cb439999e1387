"""Leave-one-out correlation and completeness error against literal versions, one sequence at a time."""

import math
from dataclasses import replace

import numpy as np
import pytest

import raison
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.metrics import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.reference.test_faithfulness_metrics import TEXTS, probability
from tests.tiny import TINY
from tests.toys import Linear


@pytest.fixture(scope="module")
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


@pytest.fixture(scope="module")
def explanations(model: Classifier) -> list[Explanation]:
    return raison.explain(model, TEXTS, "random")


def tau_b(first: list[float], second: list[float]) -> float:
    """(concordant - discordant) / sqrt(pairs untied in first * pairs untied in second); 0 where that is 0 / 0."""
    balance = untied_first = untied_second = 0
    for i in range(len(first)):
        for j in range(i):
            one = (first[i] > first[j]) - (first[i] < first[j])
            two = (second[i] > second[j]) - (second[i] < second[j])
            balance += one * two
            untied_first += one != 0
            untied_second += two != 0
    return balance / math.sqrt(untied_first * untied_second) if untied_first and untied_second else 0.0


def measure(model: LanguageModel, explanation: Explanation, metric: str, *scores: float) -> float:
    """The metric of an explanation, with other scores if any are given."""
    changed = replace(explanation, scores=tuple(map(float, scores)) or explanation.scores)
    return raison.evaluate(model, changed, [metric], progress=False).metrics[0].values[0]


def toy(text: str) -> Explanation:
    return raison.explain(Linear(), text, "occlusion", of="logit", target=1)


@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize("removal", ["", "delete", "in_place"])
def test_leave_one_out_correlation(
    model: Classifier, explanations: list[Explanation], removal: str, levels: int
) -> None:
    """With few levels many scores tie."""
    spec = f"leave_one_out_correlation(removal={removal!r})" if removal else "leave_one_out_correlation"
    for explanation in explanations:
        scores = [math.floor(levels * s) if levels else s for s in explanation.scores]
        full = probability(model, explanation, set(), False)
        falls = [full - probability(model, explanation, {i}, removal != "delete") for i in range(len(scores))]
        assert measure(model, explanation, spec, *scores) == pytest.approx(tau_b(scores, falls), abs=1e-9)


def test_leave_one_out_correlation_by_hand() -> None:
    # Masked alone, "good" lets p fall, "film" lets it rise a little and "bad" much.
    explanation = toy("bad good film")
    assert measure(Linear(), explanation, "leave_one_out_correlation", 3, 2, 1) == pytest.approx(-1 / 3)
    assert measure(Linear(), explanation, "leave_one_out_correlation", 1, 3, 2) == pytest.approx(1)
    assert measure(Linear(), explanation, "leave_one_out_correlation", 2, 1, 2) == pytest.approx(-2 / math.sqrt(2 * 3))
    assert measure(Linear(), explanation, "leave_one_out_correlation", 1, 2, 1) == pytest.approx(2 / math.sqrt(2 * 3))


@pytest.mark.parametrize("text", ["good", "good bad film", "good good"])
def test_no_order_to_compare_gives_zero(text: str) -> None:
    """One unit; equal scores; equal falls."""
    explanation = toy(text)
    if text == "good good":
        assert measure(Linear(), explanation, "leave_one_out_correlation", 1, 2) == 0
    assert measure(Linear(), explanation, "leave_one_out_correlation", *[0.0] * len(explanation.units)) == 0
    assert measure(Linear(), explanation, "leave_one_out_correlation", *[0.7] * len(explanation.units)) == 0


def test_rounding_of_the_passes_is_no_order() -> None:
    explanation = toy("good bad film")
    assert measure(Linear(), explanation, "leave_one_out_correlation", 1.0, 1.0 + 1e-9, 1.0 - 1e-9) == 0


def test_completeness_error_by_hand() -> None:
    explanation = replace(toy("good bad"), scores=(0.5, -0.1), value_full=0.9, value_empty=0.2)
    assert measure(Linear(), explanation, "completeness_error") == pytest.approx(0.3)
    assert measure(Linear(), explanation, "completeness_error(relative=True)") == pytest.approx(0.3 / 0.7)
    flipped = replace(explanation, value_full=0.2, value_empty=0.9)
    assert measure(Linear(), flipped, "completeness_error") == pytest.approx(1.1)
    assert measure(Linear(), flipped, "completeness_error(relative=True)") == pytest.approx(1.1 / 0.7)
    same = replace(explanation, value_full=0.2)
    assert measure(Linear(), same, "completeness_error(relative=True)") == pytest.approx(0.4 / 1e-6)


def test_completeness_error_takes_the_values_of_the_explanation(
    model: Classifier, explanations: list[Explanation]
) -> None:
    for explanation in explanations:
        everything = set(range(len(explanation.units)))
        change = probability(model, explanation, set(), True) - probability(model, explanation, everything, True)
        expected = abs(math.fsum(explanation.scores) - change)
        assert (explanation.of, explanation.removal) == ("probability", "mask")
        assert measure(model, explanation, "completeness_error") == pytest.approx(expected, abs=1e-6)
        relative = measure(model, explanation, "completeness_error(relative=True)")
        assert relative == pytest.approx(expected / abs(change), rel=1e-2)


def test_completeness_error_needs_no_evaluation(explanations: list[Explanation]) -> None:
    assert CATALOGUE.create("completeness_error").keeps(explanations[0]) == {}


def test_completeness_error_looks_at_the_sum_alone() -> None:
    """On a linear model occlusion is complete: any other sum is worse, further off even more, and order is nothing."""
    name = "completeness_error"
    explanation = toy("good wonderful film fine")
    scores = np.array(explanation.scores)
    best = measure(Linear(), explanation, name)
    assert best == pytest.approx(0, abs=1e-12)
    assert measure(Linear(), explanation, name, *scores[::-1].tolist()) == pytest.approx(best, abs=1e-12)
    for factors in ((1, 2, 3), (1, 0.5, 0)):
        values = [measure(Linear(), explanation, name, *(factor * scores).tolist()) for factor in factors]
        assert values[0] < values[1] < values[2]
