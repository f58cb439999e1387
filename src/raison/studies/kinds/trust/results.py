"""The folder of a study of trust: how explanations change with a model's parameters, and under attack.

trust.json   what all kinds write (raison.studies.folder), models, runs, methods, what was left out and why
RUN/         similarities.jsonl, attacks.jsonl, substitutions.jsonl (see raison.trust.results)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raison.jobs.folder import TRUST
from raison.runs.checked import check_trust
from raison.runs.learned import Labels, read_labels
from raison.studies.claims import Sample
from raison.studies.folder import Claim, Written, read_header, side_of
from raison.trust.results import TrustRun, Variant, read_run
from raison.trust.tables import EFFECTS, MEASURES, Values, areas, at_blocks, effects, summary

FOLDERS = (TRUST,)
AREA = "_area"
"""What follows a measure of similarity where the claim is about its area."""
ALL = "all"
"""The value of `blocks` for as many as the model has."""
CLAIMED = (*MEASURES, *(f"{measure}{AREA}" for measure in MEASURES), *EFFECTS)


@dataclass(frozen=True, slots=True)
class TrustRuns(Written):
    """What a study of trust has written so far."""

    runs: Mapping[str, TrustRun]
    labels: Labels

    @property
    def dropped(self) -> int:
        """Of all runs."""
        return sum(run.dropped for run in self.runs.values())

    @property
    def progress(self) -> tuple[int, int]:
        """Similarities and attacks."""
        wanted = sum(run.wanted for run in self.runs.values())
        return wanted - sum(run.missing for run in self.runs.values()), wanted

    @property
    def methods(self) -> tuple[str, ...]:
        """As the file names them."""
        return tuple(self.header["methods"])

    def model(self, run: TrustRun) -> Mapping[str, Any]:
        """What is known of a run's model: its name, blocks and parameters."""
        about: Mapping[str, Any] = self.header["models"][run.header["model"]]
        return about


def read(folder: Path) -> TrustRuns:
    """What a study of trust has written so far. Raises DataError if the folder holds none, or a newer version's."""
    header, text = read_header(folder, TRUST, check_trust)
    runs = {entry["name"]: read_run(folder, entry) for entry in header["runs"]}
    return TrustRuns(folder, header, text, runs, read_labels(folder))


def places(results: TrustRuns, claim: Claim) -> list[str]:
    """The run that a claim names, or all."""
    return [name for name in results.runs if claim.get("run", name) == name]


def sample(results: TrustRuns, claim: Claim, place: str) -> Sample:
    """Values of single texts, draws averaged first.

    A claim that says `by` how much is held against the other row's value plus that number (of a claim that a row is
    below it: minus).
    """
    run = results.runs[place]
    side, method = side_of(claim)
    than = claim.get("than", method)
    first = _values(run, method, claim)
    about = (_told(claim, run), _row(method, claim))
    learned = results.labels.of_run(run.name, results.model(run), run.header["data"])
    mean = summary(first.values()).mean
    if isinstance(than, int | float):
        number = float(than)
        return Sample(*about, number, _column(first.values()), number, mean, number, learned)
    other = claim.copy()
    if "attack" in claim:
        other["attack"] = claim.get("than_attack", claim["attack"])
        other["objective"] = claim.get("than_objective", claim["objective"])
    shift = float(claim.get("by", 0.0)) * (1 if side == "above" else -1)
    moved = {text: value + shift for text, value in _values(run, than, other).items()}
    row = f"{_row(than, other)} {shift:+g}" if shift else _row(than, other)
    shared = sorted(first.keys() & moved.keys())
    one, two = (_column([values[text] for text in shared]) for values in (first, moved))
    return Sample(*about, row, one, two, mean, summary(moved.values()).mean, learned)


def _column(values: Any) -> np.ndarray:
    return np.array(list(values), dtype=np.float64).reshape(-1, 1)


def _values(run: TrustRun, method: str, claim: Claim) -> Values:
    name = claim["measure"]
    for effect in EFFECTS:
        if name == effect:
            return effects(run, method, Variant(claim["attack"], claim["objective"]), effect)
    (measure,) = (measure for measure in MEASURES if measure == name.removesuffix(AREA))
    if name.endswith(AREA):
        return areas(run, method, claim["order"], measure)
    return at_blocks(run, method, claim["order"], _blocks(claim, run), measure)


def _blocks(claim: Claim, run: TrustRun) -> int:
    return run.blocks if claim["blocks"] == ALL else int(claim["blocks"])


def _told(claim: Claim, run: TrustRun) -> str:
    """What is measured, in words."""
    measure = str(claim["measure"]).replace("_", " ")
    if claim["measure"] in EFFECTS:
        return measure
    if "blocks" not in claim:
        return f"{measure}, {claim['order']}"
    count = _blocks(claim, run)
    if claim["order"] == "independent":
        return f"{measure}, block {count} from the last"
    return f"{measure}, the last {count} of {run.blocks} blocks"


def _row(method: str, claim: Claim) -> str:
    if claim["measure"] not in EFFECTS:
        return method
    attack = "" if claim["attack"] == "embedding" else f"{claim['attack']}, "
    return f"{method} ({attack}{claim['objective']})"
