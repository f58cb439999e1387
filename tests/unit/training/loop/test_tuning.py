"""The search over loss weights, on functions whose best weights are known."""

import json
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
import optuna
import pytest
import torch

from raison import progress
from raison.core.errors import InputError, NonFiniteError, UnknownNameError
from raison.jobs.store import RecordStore
from raison.training.loop.tuning import ReportScores, SearchSettings, TuningTrial, best, search

SPACE = {"p": (0.0, 1.0), "a": (0.0, 1.0), "inv": (0.0, 2.0)}
PEAK = {"p": 0.8, "a": 0.15, "inv": 1.3}
QUIET = SearchSettings(progress=False)


class Killed(BaseException):
    """Stands for the end of the process."""


def height(weights: Mapping[str, float]) -> float:
    return -sum((weights[name] - PEAK[name]) ** 2 for name in PEAK)


@dataclass
class Hill:
    """Five reports that climb to the height of the weights' place; counts them, and can die."""

    die_at: int = -1
    reports: list[int] = field(default_factory=list)

    def __call__(self, weights: Mapping[str, float], report: ReportScores) -> None:
        self.reports.append(0)
        for step in range(5):
            if sum(self.reports) == self.die_at:
                raise Killed
            self.reports[-1] += 1
            if report({"height": height(weights) - (4 - step)}):
                return


def once(weights: Mapping[str, float], report: ReportScores) -> None:
    report({"height": height(weights)})


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_search_beats_random_weights(seed: int) -> None:
    trials = search(replace(QUIET, trials=40, seed=seed), SPACE, ["height"], once)
    assert [trial.number for trial in trials] == list(range(40))
    for trial in trials:
        assert all(low <= trial.weights[name] <= high for name, (low, high) in SPACE.items())
        assert trial.scores == {"height": height(trial.weights)}
    # Optuna draws the first ten at random.
    heights = [trial.scores["height"] for trial in trials]
    assert median(heights[20:]) > median(heights[:10])
    found = best(trials, "height")
    assert found.scores["height"] == max(heights)
    assert found.number >= 10
    assert found.scores["height"] > -0.05


def test_a_seed_decides_and_others_differ() -> None:
    plan = replace(QUIET, trials=12)
    first = search(plan, SPACE, ["height"], once)
    assert search(plan, dict(reversed(SPACE.items())), ["height"], once) == first
    other = search(replace(plan, seed=1), SPACE, ["height"], once)
    drawn = {trial.weights["p"] for trial in first}
    assert len(drawn) == 12
    assert drawn.isdisjoint(trial.weights["p"] for trial in other)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("goals", [["height"], ["height", "flat"]])
@pytest.mark.parametrize("die_at", [0, 3, 25, 61])
def test_a_killed_search_goes_on_as_if_nothing_had_been(tmp_path: Path, goals: Sequence[str], die_at: int) -> None:
    def with_flat(hill: Hill):
        return lambda weights, report: hill(weights, lambda scores: report(scores | {"flat": -weights["a"]}))

    plan = replace(QUIET, trials=18, warm_trials=3)
    whole = search(plan, SPACE, goals, with_flat(Hill()))
    plan = replace(plan, journal=tmp_path / "run" / "search.jsonl")
    with pytest.raises(Killed):
        search(plan, SPACE, goals, with_flat(Hill(die_at)))
    finished = len(plan.journal.read_text().splitlines()) - 1
    assert finished < len(whole)
    with plan.journal.open("a") as file:
        file.write('{"number": 7, "wei')
    torch.rand(3)
    rest = Hill()
    assert search(plan, SPACE, goals, with_flat(rest)) == whole
    assert len(rest.reports) == 18 - finished
    again = Hill()
    assert search(plan, SPACE, goals, with_flat(again)) == whole
    assert again.reports == []
    assert search(replace(plan, trials=4), SPACE, goals, with_flat(again)) == whole[:4]
    longer = search(replace(plan, trials=20), SPACE, goals, with_flat(again))
    assert longer[:18] == whole
    assert len(again.reports) == 2


def test_hopeless_trials_are_given_up_and_save_work() -> None:
    hill = Hill()
    trials = search(replace(QUIET, trials=30, warm_trials=6), SPACE, ["height"], hill)
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert len(pruned) >= 5
    assert min(trial.number for trial in pruned) >= 6
    assert hill.reports == [len(trial.reports) for trial in trials]
    assert all(len(trial.reports) < 5 for trial in pruned)
    assert sum(hill.reports) < 5 * 30
    for trial in trials[6:]:
        # All climb alike, so that the first report already decides.
        others = [other.reports[0]["height"] for other in trials[: trial.number] if other.state == "complete"]
        assert (trial.state == "pruned") == (trial.reports[0]["height"] < median(others))
    everything = Hill()
    search(replace(QUIET, trials=12, warm_trials=12), SPACE, ["height"], everything)
    assert everything.reports == [5] * 12


def played(
    curves: Sequence[Sequence[Mapping[str, float]]], warm_trials: int, goals: Sequence[str]
) -> tuple[TuningTrial, ...]:
    """A search whose trials report the given numbers, whatever their weights."""
    rows = iter(curves)

    def run(weights: Mapping[str, float], report: ReportScores) -> None:
        for scores in next(rows):
            if report(scores):
                return

    return search(replace(QUIET, trials=len(curves), warm_trials=warm_trials), SPACE, goals, run)


def test_what_a_trial_is_compared_with() -> None:
    nan = float("nan")
    curves = [
        [[1], [9], [2]],  # the best so far counts, so 1, 9, 9
        [[3]],  # fewer reports: 3, 3, 3
        [[5], [1], [11]],  # 5, 5, 11
        # The medians of these are 3, 5, 9.
        [[3], [5], [8], [20]],  # equal to the median twice, then below
        [[4], [nan], [9], [0]],  # NaN changes nothing; 4 < 5
        [[2], [50]],  # 2 < 3
        [[3], [6], [9], [9]],  # never below
    ]
    curves = [[{"x": value} for (value,) in curve] for curve in curves]
    trials = played(curves, 3, ["x"])
    assert [trial.state for trial in trials] == ["complete"] * 3 + ["pruned"] * 3 + ["complete"]
    assert [len(trial.reports) for trial in trials] == [3, 1, 3, 3, 2, 1, 4]
    assert [trial.scores["x"] for trial in trials[:5]] == [9, 3, 11, 8, 4]
    assert best(trials, "x").number == 2


def test_a_trial_lives_while_one_goal_is_worth_it() -> None:
    low, high = {"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}
    curves = [[high], [high], [{"x": 0.0, "y": 1.0}] * 2, [low, high], [high]]
    trials = played(curves, 2, ["x", "y"])
    assert [trial.state for trial in trials] == ["complete"] * 3 + ["pruned", "complete"]
    assert len(trials[3].reports) == 1


def test_two_goals_have_their_own_best_trials() -> None:
    def run(weights: Mapping[str, float], report: ReportScores) -> None:
        report({"left": -abs(weights["p"] - 0.1), "right": -abs(weights["p"] - 0.9), "beside": 1.0})

    trials = search(replace(QUIET, trials=30), {"p": (-1.0, 2.0)}, ["left", "right"], run)
    left, right = best(trials, "left"), best(trials, "right")
    assert abs(left.weights["p"] - 0.1) < 0.1
    assert abs(right.weights["p"] - 0.9) < 0.1
    assert best(trials, "beside").number == 0
    # What neither goal wants, more than two thirds of the range, is tried less and less.
    outside = [not 0.1 <= trial.weights["p"] <= 0.9 for trial in trials]
    assert sum(outside[:10]) > 5
    assert sum(outside[20:]) < 5
    with pytest.raises(UnknownNameError, match="Did you mean 'left'"):
        best(trials, "lift")


def test_a_trial_that_diverges_does_not_end_the_search(tmp_path: Path) -> None:
    def run(weights: Mapping[str, float], report: ReportScores) -> None:
        report({"height": height(weights) if weights["a"] < 0.8 else float("nan")})
        if weights["p"] > 0.5:
            raise NonFiniteError("the loss became\nnan.")

    plan = replace(QUIET, trials=20, journal=tmp_path / "journal")
    trials = search(plan, SPACE, ["height"], run)
    diverged = [trial for trial in trials if trial.weights["p"] > 0.5]
    silent = [trial for trial in trials if trial.weights["p"] <= 0.5 and trial.weights["a"] >= 0.8]
    assert diverged
    assert silent
    assert {(trial.state, trial.reason) for trial in diverged} == {("failed", "the loss became nan.")}
    assert {(trial.state, trial.reason) for trial in silent} == {("failed", "every score was NaN")}
    assert best(trials, "height").weights["p"] <= 0.5
    # Read back from the journal, whose lines are JSON without NaN.
    assert repr(search(plan, SPACE, ["height"], run)) == repr(trials)
    for line in plan.journal.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_goal_that_is_not_a_number_is_only_not_chosen() -> None:
    nan = float("nan")
    trials = played([[{"x": nan, "y": float(n)}] for n in range(12)], 12, ["x", "y"])
    assert {trial.state for trial in trials} == {"complete"}
    assert best(trials, "y").number == 11
    with pytest.raises(InputError, match="'x' is NaN in every trial"):
        best(trials, "x")


def test_a_search_in_which_all_diverge_says_so(tmp_path: Path) -> None:
    def run(weights: Mapping[str, float], report: ReportScores) -> None:
        raise NonFiniteError("the loss became inf: lower the learning rate.")

    plan = replace(QUIET, trials=3, journal=tmp_path / "journal")
    message = r"every one of the 3 trials diverged \(first: the loss became inf: lower the learning rate\): lower"
    with pytest.raises(InputError, match=message):
        search(plan, SPACE, ["height"], run)
    with pytest.raises(InputError, match=message):
        search(plan, SPACE, ["height"], once)


def test_another_searchs_journal_is_refused(tmp_path: Path) -> None:
    plan = replace(QUIET, trials=2, journal=tmp_path / "journal", identity="model a")
    search(plan, SPACE, ["height"], once)
    for other, space, goals, what in (
        (replace(plan, identity="model b"), SPACE, ["height"], "data or model"),
        (replace(plan, seed=1, warm_trials=0), SPACE, ["height"], "seed, warm_trials"),
        (plan, SPACE | {"p": (0.0, 0.5)}, ["height"], "space"),
        (plan, SPACE, ["depth"], "goals"),
    ):
        with pytest.raises(InputError, match=rf"journal.*differs in: {what}\).*delete the file"):
            search(other, space, goals, once)
    for content, what in (("notes\n", "not the journal"), ('{"number": 0}\n', "not the journal")):
        plan.journal.write_text(content)
        with pytest.raises(InputError, match=what):
            search(plan, SPACE, ["height"], once)
        assert plan.journal.read_text() == content


def test_a_journal_whose_first_line_was_cut_is_begun_again(tmp_path: Path) -> None:
    plan = replace(QUIET, trials=2, journal=tmp_path / "journal")
    found = search(plan, SPACE, ["height"], once)
    first = plan.journal.read_text().splitlines()[0]
    for end in (0, 1, 12, len(first) // 2, len(first)):
        plan.journal.write_text(first[:end])
        assert search(plan, SPACE, ["height"], once) == found
        assert len(RecordStore(plan.journal).read().records) == 3


def test_a_broken_journal_is_refused(tmp_path: Path) -> None:
    plan = replace(QUIET, trials=3, journal=tmp_path / "journal")
    search(plan, SPACE, ["height"], once)
    lines = plan.journal.read_text().splitlines(keepends=True)
    plan.journal.write_text(lines[0] + lines[2])
    with pytest.raises(InputError, match="lacks some of its trials"):
        search(plan, SPACE, ["height"], once)
    plan.journal.write_text(lines[0] + '{"number": 0}\n')
    with pytest.raises(InputError, match="broken .*reports"):
        search(plan, SPACE, ["height"], once)


def test_settings_that_cannot_be_used() -> None:
    for settings, space, goals in (
        (replace(QUIET, trials=0), SPACE, ["height"]),
        (replace(QUIET, warm_trials=-1), SPACE, ["height"]),
        (QUIET, {}, ["height"]),
        (QUIET, SPACE, []),
        (QUIET, SPACE, ["height", "height"]),
        (QUIET, {"p": (1.0, 0.0)}, ["height"]),
        (QUIET, {"p": (0.0, float("nan"))}, ["height"]),
    ):
        with pytest.raises(InputError):
            search(settings, space, goals, once)
    with pytest.raises(UnknownNameError, match="Did you mean 'height'"):
        search(QUIET, SPACE, ["heigth"], once)
    with pytest.raises(InputError, match="reported no score"):
        search(QUIET, SPACE, ["height"], lambda weights, report: None)


def test_the_surroundings_stay_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    np.random.seed(3)
    random.seed(3)
    states = (torch.get_rng_state(), random.getstate(), str(np.random.get_state()))
    filters = list(warnings.filters)
    before = optuna.logging.get_verbosity()
    try:
        optuna.logging.set_verbosity(optuna.logging.DEBUG)
        search(replace(QUIET, trials=14), SPACE, ["height"], once)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), str(np.random.get_state())) == states[1:]
    assert list(warnings.filters) == filters
    assert capfd.readouterr() == ("", "")


def test_the_lines_of_a_search_show_the_best_values(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a terminal, there is a line every few seconds.
    monkeypatch.setattr(progress, "EVERY", 0.0)
    trials = search(SearchSettings(trials=3), SPACE, ["height"], once)
    assert f"{best(trials, 'height').scores['height']:.4f}" in capfd.readouterr().err


def test_without_optuna_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'raison\[tune\]'.*--weights"):
        search(QUIET, SPACE, ["height"], once)
