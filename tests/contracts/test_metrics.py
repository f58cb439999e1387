"""The contract of a metric, for every file of the catalogue: range, direction, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import raison
from raison.core.explanation import Explanation
from raison.core.metric import Metric
from raison.metrics import CATALOGUE
from raison.models.classifier import Classifier
from tests.contracts.conftest import TEXTS
from tests.toys import Linear

LONG = "good bad film not fine good um bad . film good terrible wonderful not bad fine"
"""Long enough that a fifth of it is several units; a linear model's good order is known exactly."""


@pytest.fixture(params=CATALOGUE.names)
def metric(request: pytest.FixtureRequest) -> Metric:
    return CATALOGUE.create(request.param)


@pytest.fixture(params=[name for name in CATALOGUE.names if CATALOGUE.get(name).ordered])
def ordered(request: pytest.FixtureRequest) -> Metric:
    """The others have their contract in tests/reference/test_correlation_metrics.py."""
    return CATALOGUE.create(request.param)


def measure(metric: Metric, explanation: Explanation, scores: np.ndarray) -> float:
    changed = replace(explanation, scores=tuple(scores.tolist()))
    return raison.evaluate(Linear(), changed, [metric]).metrics[0].values[0]


@pytest.fixture
def exact() -> Explanation:
    """On a linear model occlusion is exact: the order of its scores is the best order there is."""
    return raison.explain(Linear(), LONG, "occlusion", of="logit", target=1)


def test_a_known_good_order_beats_its_reverse_and_random_lies_between(ordered: Metric, exact: Explanation) -> None:
    scores = np.array(exact.scores)
    rng = np.random.default_rng(0)
    good, bad = measure(ordered, exact, scores), measure(ordered, exact, -scores)
    random = np.mean([measure(ordered, exact, rng.permutation(scores)) for _ in range(20)])
    sign = 1 if ordered.higher_is_better else -1
    assert sign * good > sign * random > sign * bad


def test_rescaled_scores_give_the_same_value(ordered: Metric, exact: Explanation) -> None:
    scores = np.array(exact.scores)
    assert measure(ordered, exact, scores) == pytest.approx(measure(ordered, exact, 7.5 * scores))


def test_every_tiny_model_gives_finite_values(metric: Metric, tiny: Classifier) -> None:
    for unit in ("token", "word", "sentence"):
        explanations = raison.explain(tiny, TEXTS, "random", unit=unit)
        found = raison.evaluate(tiny, explanations, [metric])
        assert np.isfinite(found.metrics[0].values).all()
        assert found.metrics[0].summary.count == len(TEXTS)


def test_values_do_not_depend_on_the_batch(metric: Metric, tiny: Classifier) -> None:
    explanations = raison.explain(tiny, TEXTS, "occlusion")
    together = raison.evaluate(tiny, explanations, [metric]).metrics[0].values
    alone = [raison.evaluate(tiny, explanation, [metric]).metrics[0].values[0] for explanation in explanations]
    np.testing.assert_allclose(together, alone, atol=2e-4)


def test_everything_it_measures_was_announced(metric: Metric, tiny: Classifier) -> None:
    """What `keeps` does not announce is evaluated one text at a time: slow, and never seen in the batch."""
    explanation = raison.explain(tiny, TEXTS[0], "occlusion")
    calls: list[int] = []
    inner = tiny.masked_logits
    tiny.masked_logits = lambda *args: calls.append(1) or inner(*args)  # type: ignore[method-assign]
    raison.evaluate(tiny, explanation, [metric])
    assert len(calls) <= 1 + len(metric.keeps(explanation))


def test_scores_after_a_round_trip_are_the_same(metric: Metric, exact: Explanation) -> None:
    again = Explanation.from_json(exact.to_json())
    first, second = (raison.evaluate(Linear(), e, [metric]).metrics[0].values for e in (again, exact))
    assert first == second


def test_random_state_is_untouched(metric: Metric, exact: Explanation) -> None:
    before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["pos"]
    raison.evaluate(Linear(), exact, [metric])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state(legacy=False)["state"]["pos"] == before[1]
