"""The contract of a metric, for every file of the catalogue: range, direction, and what it must not depend on."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import raison
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.rationale import Rationale, Span
from raison.core.metric import IN_PLACE, GroupMetric, Metric, Need
from raison.core.registry import name_of
from raison.core.results.explanation import Explanation
from raison.metrics import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.contracts.conftest import TEXTS
from tests.toys import Linear

LONG = "good bad film not fine good um bad . film good terrible wonderful not bad fine"
"""Long enough that a fifth of it is several units; a linear model's good order is known exactly."""


SETTINGS = {
    # On an untrained model hardly any edit is harmless.
    "harmless_change": "harmless_change(tolerance=1.0)",
    "max_sensitivity": "max_sensitivity(samples=2)",
    "simulatability": "simulatability(student='tiny', epochs=1)",
}
"""Settings that suit short texts and tiny models: defaults that take long, or that select every unit."""

SINGLE = [name for name in CATALOGUE.names if issubclass(CATALOGUE.get(name), Metric)]
GROUPED = [name for name in CATALOGUE.names if issubclass(CATALOGUE.get(name), GroupMetric)]
NEEDS_WEIGHTS = {"simulatability"}


def create(name: str) -> Metric:
    return CATALOGUE.create(SETTINGS.get(name, name))


@pytest.fixture(params=SINGLE)
def metric(request: pytest.FixtureRequest) -> Metric:
    return create(request.param)


@pytest.fixture(params=[name for name in SINGLE if CATALOGUE.get(name).ordered])
def ordered(request: pytest.FixtureRequest) -> Metric:
    """The others' directions are tested where their reference is."""
    return create(request.param)


def marked(explanation: Explanation) -> tuple[Rationale, ...]:
    """Two annotators: the best units of a good explanation, and the first half of them."""
    best = [explanation.units[unit] for unit in explanation.order()[: max(1, len(explanation.units) // 3)]]
    spans = tuple(Span(unit.start, unit.end, unit.segment) for unit in best)
    return (spans, spans[: max(1, len(spans) // 2)])


def measure(metric: Metric, explanation: Explanation, scores: Sequence[np.ndarray]) -> np.ndarray:
    """A value for each of some scores of a text.

    What matters is the one unit that a good explanation puts first: random orders find it now and then.
    """
    changed = [replace(explanation, scores=tuple(each.tolist())) for each in scores]
    best = explanation.units[explanation.order()[0]]
    rationales = [(((Span(best.start, best.end)),),)] * len(changed)
    return np.array(raison.evaluate(Linear(), changed, [metric], rationales=rationales).metrics[0].values)


@pytest.fixture
def exact() -> Explanation:
    """On a linear model occlusion is exact: the order of its scores is the best order there is."""
    return raison.explain(Linear(), LONG, "occlusion", of="logit", target=1)


def test_a_known_good_order_beats_its_reverse_and_random_lies_between(ordered: Metric, exact: Explanation) -> None:
    scores = np.array(exact.scores)
    rng = np.random.default_rng(0)
    good, bad, *orders = measure(ordered, exact, [scores, -scores, *(rng.permutation(scores) for _ in range(60))])
    random = np.mean(orders)
    sign = 1 if ordered.higher_is_better else -1
    assert np.isfinite(random), "its value does not exist for some orders: declare ordered = False"
    assert sign * good > sign * random > sign * bad


def test_rescaled_scores_give_the_same_value(ordered: Metric, exact: Explanation) -> None:
    scores = np.array(exact.scores)
    one, other = measure(ordered, exact, [scores, 7.5 * scores])
    assert one == pytest.approx(other)


def test_every_tiny_model_gives_finite_values(metric: Metric, tiny: Classifier) -> None:
    for unit in ("token", "word", "sentence"):
        explanations = raison.explain(tiny, TEXTS, "random", unit=unit)
        rationales = [marked(e) for e in explanations]
        found = raison.evaluate(tiny, explanations, [metric], rationales=rationales)
        # One unit, or units that all matter, leave some metrics undefined; what is defined is counted.
        known = [value for e, value in zip(explanations, found.metrics[0].values, strict=True) if len(e.units) > 1]
        assert np.isfinite(known).all()
        assert found.metrics[0].summary.count == np.isfinite(found.metrics[0].values).sum()


def test_values_do_not_depend_on_the_batch(metric: Metric, tiny: Classifier) -> None:
    explanations = raison.explain(tiny, TEXTS, "occlusion")
    rationales = [marked(e) for e in explanations]
    together = raison.evaluate(tiny, explanations, [metric], rationales=rationales).metrics[0].values
    alone = [
        raison.evaluate(tiny, e, [metric], rationales=[marks]).metrics[0].values[0]
        for e, marks in zip(explanations, rationales, strict=True)
    ]
    np.testing.assert_allclose(together, alone, atol=2e-4)


def test_everything_it_measures_was_announced(metric: Metric, tiny: Classifier) -> None:
    """What `keeps` does not announce is evaluated one text at a time: slow, and never seen in the batch."""
    explanation = raison.explain(tiny, TEXTS[0], "occlusion")
    calls: list[int] = []
    inner = tiny.masked_logits
    tiny.masked_logits = lambda *args: calls.append(1) or inner(*args)  # type: ignore[method-assign]
    raison.evaluate(tiny, explanation, [metric], rationales=[marked(explanation)])
    # One batch to predict, one per removal announced, and one (occlusion's own) per time it is explained again; other
    # wordings are all predicted, and then explained, together.
    again = len(metric.shifts(explanation)) + 2 * bool(metric.rewordings(explanation))
    assert len(calls) <= 1 + len(metric.keeps(explanation)) + again


def test_scores_after_a_round_trip_are_the_same(metric: Metric, exact: Explanation) -> None:
    again = Explanation.from_json(exact.to_json())
    rationales = [marked(exact)]
    first, second = (
        raison.evaluate(Linear(), e, [metric], rationales=rationales).metrics[0].values for e in (again, exact)
    )
    assert first == second


def test_random_state_is_untouched(metric: Metric, exact: Explanation) -> None:
    before = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["pos"]
    raison.evaluate(Linear(), exact, [metric], rationales=[marked(exact)])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state(legacy=False)["state"]["pos"] == before[1]


def test_what_it_needs_is_said_before_anything_runs(metric: Metric, exact: Explanation) -> None:
    if Need.RATIONALES not in metric.needs:
        assert raison.evaluate(Linear(), exact, [metric]).metrics[0].summary.count <= 1
        return
    with pytest.raises(UnsupportedError, match=f"{name_of(metric)}.* needs rationales"):
        raison.evaluate(Linear(), exact, [metric])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.demo] if name in NEEDS_WEIGHTS else []) for name in GROUPED]
)
def test_group_metrics_judge_many_texts(name: str) -> None:
    """Finite, the same every time, random state untouched, and one text is refused."""
    metric = create(name)
    texts = [" ".join(LONG.split()[i : i + 3 + i % 6]) for i in range(12)]
    explanations = raison.explain(Linear(), texts, "occlusion")
    before = torch.get_rng_state()
    first, second = (raison.evaluate(Linear(), explanations, [metric]).metrics[0] for _ in range(2))
    assert first.values == second.values
    assert np.isfinite(first.summary.mean)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(UnsupportedError, match="needs more than one text"):
        raison.evaluate(Linear(), explanations[0], [metric])


@pytest.mark.parametrize("name", [name for name in SINGLE if Need.RATIONALES in CATALOGUE.get(name).needs])
@pytest.mark.parametrize("units", [2, 5, 16, 25])
def test_a_default_sees_the_order_of_short_texts(name: str, units: int) -> None:
    """A fixed number of top units takes in all of a text that has no more."""
    text = " ".join(["good", *["film"] * (units - 1)])
    explanation = raison.explain(Linear(), text, "random")
    marks = [(((Span(explanation.units[0].start, explanation.units[0].end)),),)]
    found = []
    for sign in (1, -1):
        scores = tuple(float(-sign * unit) for unit in range(units))
        scored = raison.evaluate(Linear(), replace(explanation, scores=scores), [name], rationales=marks)
        found.append(scored.metrics[0].values[0])
    assert found[0] != found[1]


class Spy(Linear):
    """Notes by which removals perturbed texts reach it; its default is the first, and three of four are in place."""

    removals = ("mask", "unk", "pad", "delete")
    tokens: ClassVar[dict[str, str]] = {"unk": "pad"}

    def __init__(self) -> None:
        super().__init__()
        self.met: set[str] = set()

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        if any(not rows.all() for rows in keeps):
            self.met.add(removal)
        return super().masked_logits(encoding, keeps, self.tokens.get(removal, removal))

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        return super().removed(encoding, self.tokens.get(removal, removal))


def expected(metric: Metric, stated: str | None) -> str:
    """Its own, else the run's, else the model's first; a run that deletes leaves the model's first in place."""
    own = asdict(metric).get("removal")
    if own not in (None, IN_PLACE):
        return str(own)
    if own == IN_PLACE and stated == "delete":
        return Spy.removals[0]
    return stated or Spy.removals[0]


PERTURBING = [
    name
    for name in SINGLE
    if create(name).keeps(raison.explain(Linear(), LONG, "occlusion", of="logit"))
    and not create(name).needs & {Need.METHOD, Need.EMBEDDINGS}
]
WITH_A_SETTING = [name for name in PERTURBING if "removal" in asdict(create(name))]
STATED = (None, *Spy.removals)


def test_there_are_metrics_that_see_perturbed_texts() -> None:
    assert {"log_odds", "comprehensiveness", "infidelity"} <= set(PERTURBING)
    assert "log_odds" in WITH_A_SETTING


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("name", PERTURBING)
def test_evaluate_perturbs_by_the_removal_that_the_run_states(name: str, stated: str | None) -> None:
    model, metric = Spy(), create(name)
    found = raison.explain(model, LONG, "random", removal=stated)
    model.met.clear()
    raison.evaluate(model, found, [metric])
    assert model.met == {expected(metric, stated)}


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("name", WITH_A_SETTING)
def test_a_metrics_own_setting_stands_above_the_runs(name: str, stated: str | None) -> None:
    model, metric = Spy(), replace(create(name), removal="pad")
    found = raison.explain(model, LONG, "random", removal=stated)
    model.met.clear()
    raison.evaluate(model, found, [metric])
    assert model.met == {"pad"}


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("name", PERTURBING)
def test_compare_perturbs_by_the_removal_that_the_run_states(name: str, stated: str | None) -> None:
    model, metric = Spy(), create(name)
    raison.compare(model, [LONG], ["random"], [metric], removal=stated, progress=False)
    # An explanation states the value of the empty text, under the run's own removal.
    assert model.met == {expected(metric, stated), stated or Spy.removals[0]}


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("name", [name for name in PERTURBING if CATALOGUE.get(name).higher_is_better is not None])
def test_a_choice_perturbs_by_the_removal_that_the_run_states(name: str, stated: str | None) -> None:
    model, metric = Spy(), create(name)
    raison.explain(model, LONG, "random(draws=3)", removal=stated, select=metric, progress=False)
    assert model.met == {expected(metric, stated), stated or Spy.removals[0]}


def test_a_metric_that_masks_is_refused_where_everything_can_only_be_deleted() -> None:
    class Deleting(Linear):
        removals = ("delete",)

    model = Deleting()
    found = raison.explain(model, LONG, "random")
    with pytest.raises(UnsupportedError, match="log_odds replaces tokens in place, and the tokenizer has no token"):
        raison.evaluate(model, found, ["log_odds"])
