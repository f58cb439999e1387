"""Areas below insertion and deletion curves, and monotonicity, against literal versions, one sequence at a time."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import auc

import raison
from raison.core.capabilities.embeddings import Shift
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.metrics import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.reference.test_faithfulness_metrics import TEXTS, probability
from tests.tiny import TINY
from tests.toys import Linear

AREAS = ("activation_auc", "inverse_activation_auc", "insertion_auc", "deletion_auc")
DEFAULT_MASKS = {"activation_auc": True, "inverse_activation_auc": True, "insertion_auc": False, "deletion_auc": False}


@pytest.fixture(scope="module")
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


@pytest.fixture(scope="module")
def explanations(model: Classifier) -> list[Explanation]:
    return raison.explain(model, TEXTS, "random")


def curve(model: Classifier, explanation: Explanation, metric: str, mask: bool) -> list[float]:
    """p(class) after every step of the metric's walk, the start included."""
    units = range(len(explanation.units))
    highest_first = sorted(units, key=lambda i: -explanation.scores[i])
    gone = set() if metric == "deletion_auc" else set(units)
    values = [probability(model, explanation, gone, mask)]
    for unit in highest_first if metric in ("activation_auc", "insertion_auc", "deletion_auc") else highest_first[::-1]:
        gone = gone ^ {unit}
        values.append(probability(model, explanation, gone, mask))
    return values


def measure(model: LanguageModel, explanation: Explanation, metric: str, *scores: float) -> float:
    """The metric of an explanation, with other scores if any are given."""
    changed = replace(explanation, scores=tuple(map(float, scores)) or explanation.scores)
    return raison.evaluate(model, changed, [metric], progress=False).metrics[0].values[0]


def toy(text: str) -> Explanation:
    """Of the positive class; p = sigmoid(2 g), and [CLS] and [SEP] give 0.3 to g."""
    return raison.explain(Linear(), text, "occlusion", target=1)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize("removal", ["", "delete", "in_place", "mask"])
@pytest.mark.parametrize("metric", AREAS)
def test_area(model: Classifier, explanations: list[Explanation], metric: str, removal: str) -> None:
    mask = removal != "delete" if removal else DEFAULT_MASKS[metric]
    spec = f"{metric}(removal={removal!r})" if removal else metric
    for explanation in explanations:
        values = curve(model, explanation, metric, mask)
        shares = np.linspace(0, 1, len(values))
        found = measure(model, explanation, spec)
        assert found == pytest.approx(np.trapezoid(values, shares), abs=1e-6)
        assert found == pytest.approx(auc(shares, values), abs=1e-6)


@pytest.mark.parametrize("metric", ["activation_auc", "inverse_activation_auc"])
def test_curve_beside_its_area(model: Classifier, explanations: list[Explanation], metric: str) -> None:
    scores = raison.evaluate(model, explanations, [f"{metric}(curve=True)"], progress=False).metrics[0]
    plain = raison.evaluate(model, explanations, [metric], progress=False).metrics[0]
    assert scores.values == plain.values
    assert scores.summary == plain.summary
    for explanation, (_, *read) in zip(explanations, scores.parts, strict=True):
        values = curve(model, explanation, metric, mask=True)
        steps = len(values) - 1
        for tenth, found in enumerate(read):
            before = min(tenth * steps // 10, steps - 1)
            way = tenth * steps / 10 - before
            assert found == pytest.approx((1 - way) * values[before] + way * values[before + 1], abs=1e-6)


@pytest.mark.parametrize("removal", ["delete", "in_place"])
def test_monotonicity(model: Classifier, explanations: list[Explanation], removal: str) -> None:
    for explanation in explanations:
        values = curve(model, explanation, "monotonicity", removal == "in_place")[1:]
        risen = [later >= earlier for earlier, later in pairwise(values)]
        expected = sum(risen) / len(risen) if risen else 1.0
        assert measure(model, explanation, f"monotonicity(removal={removal!r})") == pytest.approx(expected)


def test_areas_by_hand() -> None:
    # To g a mask gives 0.15, "good" 1.1, "film" 0.05.
    explanation = toy("good film")
    nothing, good, film, full = sigmoid(1.2), sigmoid(3.1), sigmoid(1.0), sigmoid(2.9)
    assert measure(Linear(), explanation, "activation_auc", 2, 1) == pytest.approx((nothing + 2 * good + full) / 4)
    assert measure(Linear(), explanation, "inverse_activation_auc", 2, 1) == pytest.approx(
        (nothing + 2 * film + full) / 4
    )
    nothing, good, film, full = sigmoid(0.6), sigmoid(2.8), sigmoid(0.7), sigmoid(2.9)
    assert measure(Linear(), explanation, "insertion_auc", 2, 1) == pytest.approx((nothing + 2 * good + full) / 4)
    assert measure(Linear(), explanation, "deletion_auc", 2, 1) == pytest.approx((nothing + 2 * film + full) / 4)


def test_monotonicity_by_hand() -> None:
    # In place of a mask, "bad" and "film" lower g and "good" raises it; the first unit is no step.
    explanation = toy("bad good film")
    assert measure(Linear(), explanation, "monotonicity", 1, 3, 2) == 0.5
    assert measure(Linear(), explanation, "monotonicity", 3, 1, 2) == 0
    assert measure(Linear(), toy("bad good fine"), "monotonicity", 1, 3, 2) == 1


@dataclass
class Fixed:
    """Evidence that was written down."""

    written: list[float]
    rationales: tuple[np.ndarray, ...] = ()

    def probabilities(self, keeps: np.ndarray, removal: str) -> np.ndarray:
        return np.array(self.written)

    def values(self, keeps: np.ndarray, removal: str) -> np.ndarray:
        raise AssertionError("curves read probabilities")

    log_probabilities = values

    def shifted_scores(self, shift: Shift) -> np.ndarray:
        raise AssertionError("curves explain nothing again")

    reworded = shifted_scores


def test_rounding_of_the_passes_is_no_fall() -> None:
    explanation = toy("good bad film")
    assert CATALOGUE.create("monotonicity").measure(explanation, Fixed([0.5, 0.5 - 1e-6, 0.5])) == 1
    assert CATALOGUE.create("monotonicity").measure(explanation, Fixed([0.5, 0.5 - 1e-5, 0.5])) == 0.5
    # Close to 1 the same change of the logits is a much smaller change of p.
    assert CATALOGUE.create("monotonicity").measure(explanation, Fixed([1 - 1e-8, 1 - 2e-8, 1.0])) == 0.5


@pytest.mark.parametrize("metric", AREAS)
def test_one_unit_gives_the_mean_of_both_ends(metric: str) -> None:
    nothing = 1.2 - 0.3 if DEFAULT_MASKS[metric] else 0.6
    assert measure(Linear(), toy("good"), metric) == pytest.approx((sigmoid(nothing) + sigmoid(2.8)) / 2)


def test_one_unit_is_monotone() -> None:
    assert measure(Linear(), toy("bad"), "monotonicity") == 1


def test_equal_scores_insert_in_the_order_of_the_text_and_go_back_in_reverse() -> None:
    explanation = toy("good bad film")
    assert measure(Linear(), explanation, "activation_auc", 1, 1, 1) == pytest.approx(
        measure(Linear(), explanation, "activation_auc", 3, 2, 1)
    )
    assert measure(Linear(), explanation, "inverse_activation_auc", 1, 1, 1) == pytest.approx(
        measure(Linear(), explanation, "inverse_activation_auc", 3, 2, 1)
    )


@pytest.mark.parametrize(
    ("metric", "same"), [("activation_auc", "insertion_auc"), ("inverse_activation_auc", "deletion_auc")]
)
def test_the_pairs_differ_in_the_removal_alone(
    model: Classifier, explanations: list[Explanation], metric: str, same: str
) -> None:
    explanation = explanations[0]
    assert measure(model, explanation, f"{metric}(removal='delete')") == pytest.approx(
        measure(model, explanation, same), abs=1e-9
    )
    assert measure(model, explanation, metric) != pytest.approx(measure(model, explanation, same), abs=1e-6)


@pytest.mark.parametrize(("metric", "points"), [*((name, 1) for name in AREAS), ("monotonicity", 0)])
def test_cost_is_a_keep_per_unit_and_one_for_the_other_end(
    explanations: list[Explanation], metric: str, points: int
) -> None:
    for explanation in explanations:
        (keeps,) = CATALOGUE.create(metric).keeps(explanation).values()
        assert len(np.unique(keeps, axis=0)) == len(explanation.units) + points
