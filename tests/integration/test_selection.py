"""Maps chosen by a metric, several seeds, group metrics and marked texts in one comparison."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import Shift
from raison.core.errors import DataError, InputError, UnsupportedError
from raison.core.inputs.rationale import Span
from raison.core.method import Cost, Method, Property
from raison.core.problem import Evaluations
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import run, run_candidates, shifted_scores
from raison.explaining.batch import prepare
from raison.explaining.measuring import create_metrics, measure
from raison.explaining.settings import Settings
from raison.judging import estimate as estimating
from raison.judging.estimate import estimate_plan
from raison.judging.plan import Plan, plan_rows
from raison.methods import CATALOGUE
from raison.models.adapters.checks.throughput import Speed
from raison.models.adapters.classifier import Classifier
from raison.progress import hearing
from raison.runs.run import read_run
from raison.runs.table import comparison
from tests.integration.test_compare import TEXTS
from tests.tiny import TINY

DRAWS = 5
CONTROL = f"random(draws={DRAWS})"


ASKED: list[tuple[int, ...]] = []
"""The layers of every call of `Drawn.candidates`."""


@dataclass(frozen=True)
class Drawn(Method):
    """Three random maps per layer, each moved by the layer's number, at one pass per layer; unchosen, their mean."""

    layers: tuple[int, ...] = (1,)
    reference: ClassVar[str] = ""
    passes: ClassVar[str] = "|layers|"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.RANDOM, Property.CANDIDATES})

    @property
    def maps(self) -> int:
        return 3 * len(self.layers)

    @property
    def parts(self) -> tuple[Method, ...]:
        return tuple(replace(self, layers=(layer,)) for layer in self.layers)

    def attribute(self, problem, rngs):
        return self.unselected(self.candidates(problem, rngs))

    def candidates(self, problem, rngs):
        ASKED.append(self.layers)
        counts = problem.encoding.unit_counts
        maps = torch.zeros(self.maps, len(counts), max(counts))
        for number in range(self.maps):
            layer = self.layers[number // 3]
            # Which unit is removed depends on the layer: no two parts ask for the same.
            problem.values([(torch.arange(count) != layer)[None] for count in counts])
            for text, (rng, count) in enumerate(zip(rngs, counts, strict=True)):
                maps[number, text, :count] = torch.from_numpy(rng.standard_normal(count) + layer)
        problem.note("layers", [list(self.layers)] * len(counts))
        return maps

    def unselected(self, maps):
        return maps.mean(0)

    def cost(self, units: int) -> Cost:
        return Cost(len(self.layers))


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


@pytest.fixture(scope="module")
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


def test_the_best_of_n_is_never_worse_than_its_first_draw(model: Classifier) -> None:
    metrics = ["comprehensiveness", "sufficiency"]
    table = raison.compare(model, TEXTS[:20], [CONTROL], metrics, select=metrics, progress=False)
    assert [row.method for row in table.rows] == [CONTROL, "random", *(f"{CONTROL} by {metric}" for metric in metrics)]
    for metric in metrics:
        row = table[f"{CONTROL} by {metric}"]
        assert row.selected_by == metric
        sign = 1 if row[metric].higher_is_better else -1
        chosen, first = np.array(row[metric].values), np.array(table[CONTROL][metric].values)
        assert (sign * chosen >= sign * first).all()
        assert (chosen != first).any()


def test_selection_says_what_it_chose_from_and_what_that_cost(model: Classifier, tmp_path: Path) -> None:
    raison.compare(
        model, TEXTS[:4], [CONTROL], ["sufficiency"], select=["comprehensiveness"], out=tmp_path, progress=False
    )
    explanations = read_run(tmp_path).explanations(f"{CONTROL} by comprehensiveness", 0)
    for e in explanations:
        values = e.notes["candidate_values"]
        assert (e.notes["selected_by"], e.notes["candidates"]) == ("comprehensiveness", DRAWS)
        # One unit is removed from these short texts: as many passes as different units were tried.
        assert 1 <= e.evaluations <= min(DRAWS, len(e.units))
        again = raison.evaluate(model, e, ["comprehensiveness"])
        assert again["comprehensiveness"].values[0] == pytest.approx(max(values), abs=1e-6)


def test_a_choice_needs_something_to_choose_from_and_by(model: Classifier) -> None:
    with pytest.raises(InputError, match=r"occlusion, random offer only one: use a method .* random\(draws=24\)"):
        raison.compare(model, TEXTS[:2], ["occlusion"], select=["sufficiency"], progress=False)
    with pytest.raises(
        UnsupportedError,
        match=r"gini has no better or worse values.*consistency evaluates many.*max_sensitivity explains",
    ):
        raison.compare(model, TEXTS[:2], [CONTROL], select=["gini", "consistency", "max_sensitivity"], progress=False)


def test_several_seeds_are_averaged(model: Classifier) -> None:
    together = raison.compare(model, TEXTS[:6], ["occlusion"], ["comprehensiveness"], seed=[0, 1, 2], progress=False)
    alone = [
        raison.compare(model, TEXTS[:6], ["occlusion"], ["comprehensiveness"], seed=seed, progress=False)
        for seed in range(3)
    ]
    random = together["random"]["comprehensiveness"]
    each = np.array([table["random"]["comprehensiveness"].values for table in alone])
    np.testing.assert_allclose(random.values, each.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(random.seed_means, each.mean(axis=1), atol=1e-6)
    assert together["occlusion"]["comprehensiveness"].seed_means == ()
    with pytest.raises(InputError, match="list of distinct numbers"):
        raison.compare(model, TEXTS[:2], ["occlusion"], seed=[1, 1], progress=False)


def test_marked_texts_and_groups_in_a_folder(model: Classifier, tmp_path: Path) -> None:
    texts = TEXTS[:30]
    rationales = [((Span(0, 3),), (Span(0, 8),)) for _ in texts]
    metrics = ["auroc", "token_f1(top=2, average='micro')", "consistency(batch=10)", "comprehensiveness"]

    def go() -> raison.Comparison:
        return raison.compare(model, texts, ["occlusion"], metrics, rationales=rationales, out=tmp_path, progress=False)

    table = go()
    assert len(table["occlusion"]["consistency(batch=10)"].values) == 3
    assert table["occlusion"]["token_f1(top=2, average='micro')"].pool == "ratio"
    (tmp_path / "groups.jsonl").unlink()
    assert go().records() == table.records()
    (tmp_path / "groups.jsonl").unlink()
    (tmp_path / "explanations.jsonl").unlink()
    with pytest.raises(DataError, match="contains only records"):
        go()


def test_classes_named_text_by_text(model: Classifier) -> None:
    table = raison.compare(model, TEXTS[:3], ["occlusion"], ["comprehensiveness"], target=[0, 1, 2], progress=False)
    values = table["occlusion"]["comprehensiveness"].values
    for number, value in enumerate(values):
        e = raison.explain(model, TEXTS[number], "occlusion", target=number)
        assert raison.evaluate(model, e, ["comprehensiveness"])["comprehensiveness"].values[0] == pytest.approx(
            value, abs=1e-5
        )
    with pytest.raises(InputError, match="2 targets for 3 texts"):
        raison.compare(model, TEXTS[:3], ["occlusion"], target=[0, 1], progress=False)


def test_metrics_without_what_they_need_are_refused_together(model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        raison.compare(model, TEXTS[:3], ["occlusion"], ["auroc", "iou_f1"], out=tmp_path, progress=False)
    assert len(caught.value.reasons) == 2
    assert not list(tmp_path.iterdir())


def test_a_run_stopped_among_its_group_metrics_still_reads(model: Classifier, tmp_path: Path) -> None:
    metrics = ["consistency(batch=5)", "comprehensiveness"]
    raison.compare(model, TEXTS[:10], ["occlusion"], metrics, seed=[0, 1], out=tmp_path, progress=False)
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"seed": 1' not in line))
    table = comparison(read_run(tmp_path))
    assert table["random"]["consistency(batch=5)"].summary.count == 0
    assert table["occlusion"]["consistency(batch=5)"].summary.count == 2


def plain(explanations: list[Explanation]) -> list[dict]:
    """All that an explanation says but the time it took."""
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


@pytest.mark.parametrize("method", [CATALOGUE.create(CONTROL), Drawn(), Drawn((2, 0))], ids=repr)
def test_numbers_do_not_depend_on_what_the_batch_has(model: Classifier, method: Method) -> None:
    settings = Settings(seed=3)
    alone = run(prepare(model, TEXTS[:6], settings), method)
    batch = prepare(model, TEXTS[:6], settings)
    maps = run_candidates(batch, method)
    ASKED.clear()
    assert plain(run(batch, method)) == plain(alone)
    assert [plain(of_map) for of_map in run_candidates(batch, method)] == [plain(of_map) for of_map in maps]
    assert not ASKED
    other = replace(batch, settings=replace(settings, seed=4))
    assert run(other, method)[0].scores != alone[0].scores
    still = shifted_scores(batch, method, Shift(1e-9, 0), Evaluations())
    assert [tuple(scores) for scores in still] == [e.scores for e in alone]


def test_parts_are_shared_and_their_costs_added(model: Classifier) -> None:
    texts = TEXTS[:4]
    batch = prepare(model, texts, Settings())
    first, both = run_candidates(batch, Drawn((1,))), run_candidates(batch, Drawn((1, 2)))
    assert ASKED == [(1,), (2,)]
    second = run_candidates(prepare(model, texts, Settings()), Drawn((2,)))
    assert [e.scores for of_map in both for e in of_map] == [e.scores for of_map in [*first, *second] for e in of_map]
    for e, one in zip(both[0], first[0], strict=True):
        assert (one.evaluations, e.evaluations) == (1, 2)
        assert (one.notes["layers"], e.notes["layers"]) == ([1], [[1], [2]])
        assert e.config == {"layers": (1, 2)}
    assert sum(e.seconds for e in both[0]) == pytest.approx(sum(maps.seconds for maps in batch.maps.values()))


def test_all_choosers_of_all_methods_look_once(model: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def counted(batch, explanations, metrics, rationales=()):
        looked.append((len(explanations), len(metrics)))
        return measure(batch, explanations, metrics, rationales)

    monkeypatch.setattr("raison.explaining.selection.measure", counted)
    methods, metrics = [Drawn((1,)), Drawn((1, 2)), "random(draws=3)"], ["sufficiency", "log_odds"]
    table = raison.compare(model, TEXTS[:5], methods, metrics, select=metrics, seed=[0, 1], progress=False)
    # One and two parts are two parts in all, under each of two seeds; the row without a metric asks for none.
    assert ASKED == [(1,), (1,), (2,), (2,)]
    # Maps of the three methods and of the control with six draws.
    assert looked == [((3 + 6 + 3 + 6) * 2 * 5, 2)]
    ASKED.clear()
    without = raison.compare(model, TEXTS[:5], methods, metrics, seed=[0, 1], progress=False)
    assert sorted(ASKED) == [(1,), (1,), (2,), (2,)]
    for row in without.rows:
        for metric in metrics:
            assert table[row.method][metric].values == pytest.approx(row[metric].values, abs=1e-6)
        assert table[row.method].evaluations == row.evaluations
    single = raison.compare(model, TEXTS[:5], methods[:1], metrics, select=metrics[:1], seed=[0, 1], progress=False)
    label = next(row.method for row in single.rows if row.selected_by and "random" not in row.method)
    assert single[label]["log_odds"].values == pytest.approx(table[label]["log_odds"].values, abs=1e-6)
    assert single[label].evaluations == table[label].evaluations


def test_the_estimate_counts_shared_maps_once(model: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raison.judging.estimate.measure_speed", lambda *_: Speed(1.0, 2.0, 0, 0))

    def estimate(methods: list[Method], select: list[str]):
        rows = plan_rows(methods, create_metrics(select), (0, 1))
        return estimate_plan(Plan(model, ("a quiet film",), (), rows, (), Settings(), ""))

    tokens = model.encode(["a quiet film"], "word").lengths[0]
    whole = 2  # The text and its removal.
    alone = estimate([Drawn((1, 2))], [])
    assert alone.seconds == tokens * (whole + 2 * 2)
    assert estimate([Drawn((1, 2)), Drawn((1,))], []).seconds == alone.seconds
    # Each of six maps, and of six random ones, is looked at by one keep; both metrics look at the same.
    chosen = estimate([Drawn((1, 2))], ["comprehensiveness"])
    assert chosen.seconds == tokens * (whole + 2 * (2 + 6 + 6))
    both = estimate([Drawn((1, 2))], ["comprehensiveness", "aopc_comprehensiveness(shares=(0.2,))"])
    assert both.seconds == chosen.seconds
    assert (alone.total_forwards, chosen.total_forwards, both.total_forwards) == (6, 30, 30)
    assert [both.forwards[label] for label in both.forwards if "by" in label and "test" in label] == [2 * (2 + 6)] * 2


def test_methods_that_rerun_some_layers_are_timed_not_counted_as_whole_passes(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if a whole pass took hours.
    monkeypatch.setattr(estimating, "measure_speed", lambda *_: Speed(1e4, 1e4, 1, 1))
    many = "rpi(baselines=4, steps=5)"
    found = {
        name: estimating.estimate(model, TEXTS[:4], [name], ["comprehensiveness"]) for name in (many, "attention_last")
    }
    assert found[many].backwards[many] == found[many].total_backwards == 4 * 4 * (5 + 1)
    assert found[many].seconds < found["attention_last"].seconds


@pytest.mark.parametrize(("long", "runs"), [(estimating.LONG, 2), (0.0, 1)])
def test_a_long_run_of_some_layers_is_timed_once(
    model: Classifier, monkeypatch: pytest.MonkeyPatch, long: float, runs: int
) -> None:
    monkeypatch.setattr(estimating, "LONG", long)
    steps: list[int] = []
    with hearing(steps.append):
        estimating.estimate(model, TEXTS[:1], ["rpi(baselines=4, steps=5)"], ["comprehensiveness"])
    assert [count for count in steps if count == 4 * (5 + 1)] == [4 * (5 + 1)] * runs
