"""A search over loss weights with Optuna's tree-structured Parzen estimator (Bergstra et al. 2011), resumable."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, Literal

from raison.core.errors import InputError, NonFiniteError, UnknownNameError
from raison.jobs.store import RecordStore
from raison.progress import progress_bar
from raison.training.loop.trainer import comparable

TrialScores = Mapping[str, float]
"""Values by the scores' names; higher is better, NaN counts as worst."""

ReportScores = Callable[[TrialScores], bool]
"""Reports the scores of one more evaluation; True: abandon this trial and return."""

RunTrial = Callable[[Mapping[str, float], ReportScores], None]
"""Trains with the given weights and reports every evaluation. It should show no progress bar."""

Space = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of each weight."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How to search.

    The first `warm_trials` trials are never pruned, because later ones are compared with them. `journal` is the file
    that keeps finished trials; a search resumes from it, also with more `trials`. `identity` names what the settings do
    not show (data, model): resuming requires the same.
    """

    trials: int = 30
    seed: int = 0
    warm_trials: int = 5
    journal: Path | None = None
    identity: str = ""
    progress: bool = True


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """One run. `scores` has the best value of each score that was reported, `reports` all values in their order.

    "pruned": given up early. "failed": it diverged, for the `reason` given.
    """

    number: int
    weights: Mapping[str, float]
    scores: TrialScores
    state: Literal["complete", "pruned", "failed"]
    reason: str = ""
    reports: tuple[TrialScores, ...] = ()


def search(settings: SearchSettings, space: Space, goals: Sequence[str], run: RunTrial) -> tuple[TuningTrial, ...]:
    """Run `settings.trials` trials, each with weights drawn from `space`, to maximise the scores named in `goals`.

    A trial is rated by its best report, not its last. After a report it is pruned if in every goal its best so far is
    below the median of what the earlier complete trials had reached by as many reports. Several goals are searched
    together, for the trials that no other beats in all of them; `best` picks one goal's. A trial depends only on the
    seed and the trials before it, so a search that was killed and started again finds the same. No global random state
    is used. A trial in which `run` raises NonFiniteError counts as failed, and the search continues.

    Raises InputError if optuna is missing, on invalid settings, on another search's journal, and if every trial failed.
    """
    _check(settings, space, goals)
    optuna = _optuna()
    journal = None if settings.journal is None else RecordStore(settings.journal)
    trials = [] if journal is None else _resumed(journal, _header(settings, space, goals))
    del trials[settings.trials :]
    with progress_bar("search", settings.trials, settings.progress, len(trials)) as advance:
        while len(trials) < settings.trials:
            number = len(trials)
            weights = _suggested(optuna, settings.seed, space, goals, trials)
            earlier = trials if number >= settings.warm_trials else []
            trials.append(_tried(number, weights, _Judge(goals, earlier), run))
            if journal is not None:
                journal.append([_encoded(trials[-1])])
            advance(1, _note(trials, goals))
    _refuse_failure(trials)
    return tuple(trials)


def best(trials: Sequence[TuningTrial], goal: str) -> TuningTrial:
    """The trial with the highest score `goal` that did not fail; the first of equals.

    Raises UnknownNameError if no such trial has the score, InputError if it is NaN in all of them.
    """
    usable = [trial for trial in trials if trial.state != "failed"]
    known = {name for trial in usable for name in trial.scores}
    if goal not in known:
        raise UnknownNameError("goal", goal, known)
    scored = [trial for trial in usable if not math.isnan(trial.scores.get(goal, math.nan))]
    if not scored:
        raise InputError(
            f"the score '{goal}' is NaN in every trial, so no weights can be selected. Check the validation data."
        )
    return max(scored, key=lambda trial: trial.scores[goal])


@dataclass(slots=True)
class _Judge:
    """The reports of the running trial, and whether it should be given up."""

    goals: Sequence[str]
    earlier: Sequence[TuningTrial]
    reports: list[dict[str, float]] = field(default_factory=list)
    given_up: bool = False

    def report(self, scores: TrialScores) -> bool:
        for goal in self.goals:
            if goal not in scores:
                raise UnknownNameError("goal", goal, scores)
        self.reports.append({name: float(value) for name, value in scores.items()})
        self.given_up = self.given_up or self._hopeless()
        return self.given_up

    def _hopeless(self) -> bool:
        count = len(self.reports)
        others = [trial for trial in self.earlier if trial.state == "complete"]
        return bool(others) and all(
            comparable(_best_of(self.reports, goal))
            < median(comparable(_best_of(o.reports[:count], goal)) for o in others)
            for goal in self.goals
        )


def _tried(number: int, weights: dict[str, float], judge: _Judge, run: RunTrial) -> TuningTrial:
    state: Literal["complete", "pruned", "failed"] = "complete"
    reason = ""
    try:
        run(dict(weights), judge.report)
    except NonFiniteError as error:
        state, reason = "failed", " ".join(str(error).split())
    else:
        if not judge.reports:
            raise InputError("a run of the search reported no score: it must report at least one evaluation.")
        if all(math.isnan(_best_of(judge.reports, goal)) for goal in judge.goals):
            state, reason = "failed", "every score was NaN"
        elif judge.given_up:
            state = "pruned"
    names = dict.fromkeys(name for report in judge.reports for name in report)
    scores = {name: _best_of(judge.reports, name) for name in names}
    return TuningTrial(number, weights, scores, state, reason, tuple(judge.reports))


def _suggested(
    optuna: ModuleType, seed: int, space: Space, goals: Sequence[str], trials: Sequence[TuningTrial]
) -> dict[str, float]:
    """The next trial's weights: a new Optuna study gets the trials so far and suggests one."""
    ranges = {name: optuna.distributions.FloatDistribution(low, high) for name, (low, high) in space.items()}
    with _quiet(optuna):
        # If the trial's number were only added, neighbouring seeds would share most of their first, random trials.
        sampler = optuna.samplers.TPESampler(seed=(seed * 100_003 + len(trials)) % 2**32)
        study = optuna.create_study(sampler=sampler, directions=["maximize"] * len(goals))
        for trial in trials:
            values = [trial.scores.get(goal, math.nan) for goal in goals]
            # Pruned trials count with their best values, because Optuna has no pruned state in a search for several
            # goals.
            is_complete = trial.state != "failed" and all(map(math.isfinite, values))
            study.add_trial(
                optuna.trial.create_trial(
                    state=optuna.trial.TrialState.COMPLETE if is_complete else optuna.trial.TrialState.FAIL,
                    params=dict(trial.weights),
                    distributions=ranges,
                    values=values if is_complete else None,
                )
            )
        suggestion = study.ask()
        drawn = {name: suggestion.suggest_float(name, *space[name]) for name in sorted(space)}
    return {name: drawn[name] for name in space}


def _best_of(reports: Sequence[TrialScores], name: str) -> float:
    return max((report[name] for report in reports if name in report), key=comparable)


def _note(trials: Sequence[TuningTrial], goals: Sequence[str]) -> str:
    usable = [trial for trial in trials if trial.state != "failed"]
    values = {goal: max((comparable(trial.scores[goal]) for trial in usable), default=-math.inf) for goal in goals}
    return ", ".join(f"{goal} {value:.4f}" for goal, value in values.items() if math.isfinite(value))


def _check(settings: SearchSettings, space: Space, goals: Sequence[str]) -> None:
    if settings.trials < 1 or settings.warm_trials < 0:
        raise InputError("a search needs at least 1 trial, and warm_trials cannot be negative.")
    if not space or not goals or len(set(goals)) < len(goals):
        raise InputError("a search needs at least one weight to vary, and goals that are all different.")
    for name, (low, high) in space.items():
        if not -math.inf < low <= high < math.inf:
            raise InputError(f"the range of '{name}' must go from a lower to a higher number; got {low} to {high}.")


def _refuse_failure(trials: Sequence[TuningTrial]) -> None:
    if all(trial.state == "failed" for trial in trials):
        raise InputError(
            f"every one of the {len(trials)} trials diverged (first: {trials[0].reason.rstrip('.')}): "
            "lower the learning rate, or the highest weights of the search."
        )


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            "the search needs optuna: pip install 'raison[tune]', or give the weights with --weights."
        ) from error
    return optuna


@contextmanager
def _quiet(optuna: ModuleType) -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _header(settings: SearchSettings, space: Space, goals: Sequence[str]) -> dict[str, Any]:
    # Without the number of trials: each depends only on those before it, so a search may be continued with more.
    return {
        "search": settings.identity,
        "seed": settings.seed,
        "warm_trials": settings.warm_trials,
        "space": {name: [float(low), float(high)] for name, (low, high) in space.items()},
        "goals": list(goals),
    }


def _resumed(journal: RecordStore, header: dict[str, Any]) -> list[TuningTrial]:
    """The trials in the journal, which is created if it is missing. A line that a kill cut short does not count."""
    way_out = "Repeat that search's command, or delete the file to start afresh."
    stored = journal.read()
    if not stored.records and _is_not_begun(journal.path):
        journal.append([header])
        return []
    if not stored.records or "search" not in stored.records[0]:
        raise InputError(f"{journal.path} is not the journal of a search. Delete it to start afresh.")
    other = [name for name in header if stored.records[0].get(name) != header[name]]
    if other:
        names = ", ".join("data or model" if name == "search" else name for name in other)
        raise InputError(f"the journal {journal.path} belongs to another search (it differs in: {names}). {way_out}")
    trials = [_decoded(record, journal.path) for record in stored.records[1:]]
    if [trial.number for trial in trials] != list(range(len(trials))):
        raise InputError(f"the journal {journal.path} lacks some of its trials. Delete it to start afresh.")
    return trials


def _is_not_begun(path: Path) -> bool:
    """Whether the file is missing or empty, or holds a part of the header alone, which a kill cut short."""
    content = path.read_bytes() if path.exists() else b""
    return b"\n" not in content and content.startswith(b'{"search"'[: len(content)])


def _encoded(trial: TuningTrial) -> dict[str, Any]:
    # JSON has no NaN.
    return asdict(trial) | {
        "scores": _texts(trial.scores),
        "reports": [_texts(report) for report in trial.reports],
    }


def _texts(scores: TrialScores) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else str(value) for name, value in scores.items()}


def _decoded(record: dict[str, Any], path: Path) -> TuningTrial:
    try:
        reports = tuple(_numbers(report) for report in record["reports"])
        scores, weights = _numbers(record["scores"]), _numbers(record["weights"])
        return TuningTrial(record["number"], weights, scores, record["state"], record["reason"], reports)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the journal {path} is broken ({error!r}). Delete it to start afresh.") from error


def _numbers(scores: Mapping[str, float | str]) -> dict[str, float]:
    return {name: float(value) for name, value in scores.items()}
