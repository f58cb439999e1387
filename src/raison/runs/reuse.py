"""Take over what other runs have already found: rows of the same methods on the same texts, models and settings.

A row is taken over whole, with all its seeds and texts, or not at all. Which rows, and from which run, is written to
`reused.json` beside the records.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.data.records import write_whole
from raison.runs.agreement import add_pairs, pairs_in
from raison.runs.run import HEADER, Key, Record, Run, read_run, settings_hash
from raison.runs.study import STUDY

FILE = "reused.json"
_OWN = ("rows", "metrics")
"""Parts of the header in which a run that is drawn on may differ: libraries' versions must be the same."""


def runs_in(folders: Sequence[Path]) -> list[Path]:
    """The runs' folders in these: each is a run's own or a study's. Raises DataError for one that is neither."""
    found = []
    for folder in folders:
        inside = [folder] if (folder / HEADER).exists() else sorted(path.parent for path in folder.glob(f"*/{HEADER}"))
        if not inside:
            raise DataError(f"{folder} holds no run to draw on: name a run's folder, or a study's.")
        found += inside
    return found


def take_over(
    run: Run, sources: Sequence[Path], model: dict[str, Any] | None = None, *, agreement: bool = False
) -> int:
    """Copy into `run`, which has a folder, whole rows that it lacks and the sources have; returns how many.

    `model` is what the run's study says of its model: a source whose study says something else is another model of the
    same name. Explanations come along where the source has them; a run with metrics of many texts together needs
    explanations, or these metrics' values. With `agreement` a source without explanations must have the pairs of its
    rows, which come along: between these rows and those of the run's own nothing is known. Raises DataError where a
    source cannot be read.
    """
    assert run.folder is not None, "a run in memory draws on nothing"
    taken = 0
    for source in sources:
        if source.resolve() != run.folder.resolve():
            taken += _take_from(run, source, model, agreement)
    return taken


def _take_from(run: Run, source: Path, model: dict[str, Any] | None, agreement: bool) -> int:
    other = read_run(source)
    places = _places(run, other)
    if places is None or not _same_model(source, model):
        return 0
    pairs = pairs_in(source) if agreement and not other.has_explanations else []
    if agreement and not pairs and not other.has_explanations:
        return 0
    taken = []
    for row in run.header["rows"]:
        keys = [(row["label"], seed, text) for seed in row["seeds"] for text in range(run.header["texts"])]
        there = row in other.header["rows"] and all(key in other.records for key in keys)
        if there and not all(key in run.records for key in keys) and _copy(run, other, keys, places):
            taken.append(row["label"])
    if pairs:
        assert run.folder is not None
        add_pairs(run.folder, [pair for pair in pairs if {pair["first"], pair["second"]} <= {*taken}])
    if taken:
        _note(run, {"run": settings_hash(other.header), "versions": other.header["versions"], "rows": taken})
    return len(taken)


def _places(run: Run, other: Run) -> list[int] | None:
    """Where the other's records have the scores of the run's metrics; None where it is no such run."""
    keys = (run.header.keys() | other.header.keys()) - set(_OWN)
    if any(run.header.get(key) != other.header.get(key) for key in keys):
        return None
    known = [metric for metric in other.header["metrics"] if not metric["grouped"]]
    wanted = [metric for metric in run.header["metrics"] if not metric["grouped"]]
    return [known.index(metric) for metric in wanted] if all(metric in known for metric in wanted) else None


def _same_model(source: Path, model: dict[str, Any] | None) -> bool:
    study = source.parent / STUDY
    if model is None or not study.exists():
        return True
    said = json.loads(study.read_text(encoding="utf-8"))["models"]
    return any(known == model for key, known in said.items() if source.name.startswith(f"{key}--"))


def _copy(run: Run, other: Run, keys: Sequence[Key], places: Sequence[int]) -> bool:
    """Copy one row; False where something that the run needs is not there."""
    grouped = [metric["label"] for metric in run.header["metrics"] if metric["grouped"]]
    row, seeds = keys[0][0], dict.fromkeys(seed for _, seed, _ in keys)
    explained = other.has_explanations
    if not explained and any((row, seed, label) not in other.groups for seed in seeds for label in grouped):
        return False
    known = {(row, seed): other.explanations(row, seed) for seed in seeds} if explained else {}
    found = [_placed(other.records[key], places) for key in keys]
    if explained:
        run.add([(record, known[record.row, record.seed][record.text]) for record in found])
    else:
        run.add_records(found)
    for seed in seeds:
        for label in grouped:
            if (row, seed, label) in other.groups:
                run.add_groups(row, seed, label, other.groups[row, seed, label])
    return True


def _placed(record: Record, places: Sequence[int]) -> Record:
    scores = tuple(record.scores[place] for place in places)
    return Record(
        record.row, record.seed, record.text, scores, record.costs, record.target, record.prediction, record.units
    )


def _note(run: Run, entry: dict[str, Any]) -> None:
    assert run.folder is not None
    path = run.folder / FILE
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    write_whole(path, json.dumps([*known, entry], ensure_ascii=False, indent=1) + "\n")
