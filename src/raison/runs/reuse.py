"""Reuse rows of other runs: the same methods on the same texts, models and settings.

The other run has the same texts, or some of them: a study with more texts computes only the new ones. A row is reused
with all its seeds and all texts of the other run, or not at all. The rows, their runs and, if not all, their texts are
written to `reused.json` in the same folder as the records.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.disk import write_whole
from raison.jobs.folder import STUDY, read_marker
from raison.jobs.identity import CONFIGURATION, FILES, IDENTITY, SETTINGS, TOKENIZER, WEIGHTS, differing
from raison.jobs.origins import stores_in
from raison.runs.agreement import AgreementPair, add_part, pairs_in
from raison.runs.headers import MOST_TOGETHER, RunHead
from raison.runs.record import Record
from raison.runs.run import (
    CAUTIONS,
    HEADER,
    TOGETHER,
    Run,
    read_header,
    read_run,
    settings_hash,
)

FILE = "reused.json"
TEXTS = "texts"
"""The key in a note for the numbers of the texts, if they are not all."""
_OWN = ("rows", "metrics")
"""Parts of the header in which a source run may differ; versions of libraries must be equal."""


def runs_in(folders: Sequence[Path]) -> list[Path]:
    """The runs' folders in these: a folder may be a run, or contain some, as a study does."""
    return [path.parent for folder in folders for path in stores_in(folder, HEADER)]


@dataclass(frozen=True, slots=True)
class Portion:
    """A run's request on some of its texts: the header of such a run, and the number here of each of its texts."""

    header: RunHead
    numbers: Sequence[int]
    is_whole: bool = False


def whole(header: RunHead) -> Portion:
    """All texts of a run."""
    return Portion(header, range(header.texts), is_whole=True)


def take_over(
    run: Run,
    portions: Sequence[Portion],
    sources: Sequence[Path],
    model: dict[str, Any] | None = None,
    *,
    agreement: bool = False,
) -> None:
    """Copy into `run`, which has a folder, what it lacks and the sources have: rows of a portion of its texts.

    `model` is the description of the model in the run's study: a source with another description has another model of
    the same name. Explanations are copied if the source has them; a run with metrics of many texts together needs
    explanations, or, for all texts, these metrics' values. With `agreement`, a source without explanations must have
    the pairs of its rows, which are copied; pairs between these rows and the run's own stay unknown.
    Raises DataError if a source cannot be read.
    """
    assert run.folder is not None, "a run in memory cannot reuse others"
    for portion in portions:
        for source in sources:
            if source.resolve() != run.folder.resolve():
                _take_from(run, portion, source, model, agreement)


def known_in(
    portions: Sequence[Portion],
    sources: Sequence[Path],
    model: dict[str, Any] | None = None,
    *,
    agreement: bool = False,
) -> dict[str, set[int]]:
    """The texts of each row that `take_over` would copy into a new run. Raises DataError, as it does."""
    known: dict[str, set[int]] = {}
    for portion in portions:
        for source in sources:
            offer = _offered(portion, source, model, agreement)
            for row in () if offer is None else offer.rows:
                known.setdefault(row, set()).update(portion.numbers)
    return known


def taken_over(folder: Path) -> dict[str, set[int]]:
    """The texts of each row that were copied from runs on fewer texts. Raises DataError."""
    taken: dict[str, set[int]] = {}
    for entry in _notes(folder):
        for row in entry["rows"] if TEXTS in entry else ():
            taken.setdefault(row, set()).update(entry[TEXTS])
    return taken


@dataclass(frozen=True, slots=True)
class _ReusableRows:
    """What one source offers a portion of a run: rows with all seeds, and the positions of the run's metrics."""

    rows: dict[str, tuple[int, ...]]
    places: list[int]
    source: Run
    pairs: list[AgreementPair]


def _offered(portion: Portion, folder: Path, model: dict[str, Any] | None, agreement: bool) -> _ReusableRows | None:
    """None if the source is another run; its records, which may be many, are then not read."""
    header, known = portion.header, read_header(folder / HEADER)
    places, exchanged = _places(header, known), _exchanged(header, known)
    grouped = header.grouped
    if places is None or not _same_model(folder, model) or exchanged & {*grouped}:
        return None
    source, pairs = read_run(folder), pairs_in(folder) if agreement else []
    paired = {row for pair in pairs for row in (pair["first"], pair["second"])}
    rows = {}
    for row in header.rows:
        label, seeds = row.label, row.seeds
        there = all((label, seed, text) in source.records for seed in seeds for text in range(header.texts))
        # Metrics of many texts are computed from explanations, or already known for all texts.
        made = all((label, seed, metric) in source.groups for seed in seeds for metric in grouped)
        made = made and (portion.is_whole or not grouped)
        # A selected map does not belong to one method: it has no pairs.
        made = made and (not agreement or label in paired or row.selected_by is not None)
        same = row in source.header.rows and row.method not in exchanged
        if same and there and (made or _explains(source, label, seeds)):
            rows[label] = seeds
    return _ReusableRows(rows, places, source, pairs)


def _differing(header: RunHead, other: RunHead) -> list[str]:
    return differing(other.identity, header.identity)


def _exchanged(header: RunHead, other: RunHead) -> set[str]:
    """The methods and metrics that read different files there and here; missing files may have been the same."""
    both = header.identity.keys() & other.identity.keys()
    return {part.removeprefix(FILES) for part in _differing(header, other) if part in both and part.startswith(FILES)}


def _explains(source: Run, row: str, seeds: Iterable[int]) -> bool:
    return all(source.explains(row, seed) for seed in seeds)


def _take_from(run: Run, portion: Portion, folder: Path, model: dict[str, Any] | None, agreement: bool) -> None:
    offer = _offered(portion, folder, model, agreement)
    if offer is None:
        return
    if offer.pairs:
        assert run.folder is not None
        # Before the rows: if interrupted in between, the copy is repeated.
        pairs = [pair for pair in offer.pairs if {pair["first"], pair["second"]} <= offer.rows.keys()]
        add_part(run.folder, portion.numbers, pairs)
    missing = {
        label: [text for text, number in enumerate(portion.numbers) if not _has(run, label, seeds, number)]
        for label, seeds in offer.rows.items()
    }
    missing = {label: texts for label, texts in missing.items() if texts}
    if missing:
        header = offer.source.header
        # Runs of older versions do not record their weights.
        known = {} if header.identity else {"unchecked": [WEIGHTS, TOKENIZER, CONFIGURATION]}
        texts = {} if portion.is_whole else {TEXTS: list(portion.numbers)}
        _note(run, {"run": settings_hash(header), "versions": header.versions, **known, **texts}, list(missing))
    for label, texts_of_row in missing.items():
        _copy(run, portion, offer, label, texts_of_row)


def _has(run: Run, row: str, seeds: Iterable[int], text: int) -> bool:
    return all((row, seed, text) in run.records for seed in seeds)


def _places(header: RunHead, other: RunHead) -> list[int] | None:
    """The places of the run's metrics in the other run's records; None if it does not match."""
    keys = (header.raw.keys() | other.raw.keys()) - {*_OWN, IDENTITY, CAUTIONS, TOGETHER}
    if any(header.raw.get(key) != other.raw.get(key) for key in keys):
        return None
    # Rows and metrics, which may differ, are among the settings; the other settings were compared above.
    parts = {part for part in _differing(header, other) if not part.startswith(FILES)} - {SETTINGS}
    if parts and other.identity:
        return None
    known, wanted = other.single, header.single
    return [known.index(metric) for metric in wanted] if set(wanted) <= set(known) else None


def _same_model(source: Path, model: dict[str, Any] | None) -> bool:
    study = None if model is None else read_marker(source.parent, STUDY)
    models = None if study is None else study.get("models")
    # Older studies do not describe their models, or not all of them.
    if models is None or model is None:
        return True
    named = [known for key, known in models.items() if source.name.startswith(f"{key}--")]
    return any(all(known[part] == model.get(part) for part in known) for known in named)


def _copy(run: Run, portion: Portion, offer: _ReusableRows, row: str, texts: Sequence[int]) -> None:
    """Copy one row's records of some of the portion's texts."""
    source, seeds, wanted = offer.source, offer.rows[row], set(texts)
    for seed in seeds:
        # In the order of the file: a compressed one is read from its beginning for every step back.
        explained = iter(source.explanations(row, seed)) if _explains(source, row, seeds) else None
        places = range(portion.header.texts)
        for part in (places[start : start + MOST_TOGETHER] for start in range(0, len(places), MOST_TOGETHER)):
            explanations = None if explained is None else list(islice(explained, len(part)))
            copied = [text for text in part if text in wanted]
            records = [_moved(source.records[row, seed, text], portion, offer.places) for text in copied]
            if explanations is None:
                run.add_records(records)
            else:
                kept = [explanations[text - part.start] for text in copied]
                run.add(list(zip(records, kept, strict=True)))
    for seed in seeds if portion.is_whole else ():
        for label in run.header.grouped:
            if (row, seed, label) in source.groups:
                run.add_groups(row, seed, label, source.groups[row, seed, label])


def _moved(record: Record, portion: Portion, places: Sequence[int]) -> Record:
    """A record of the other run as one of this run: its text's number and its metrics in their order here."""
    return replace(record, text=portion.numbers[record.text], scores=tuple(record.scores[place] for place in places))


def _note(run: Run, source: dict[str, Any], rows: Sequence[str]) -> None:
    """Record the source of rows before they are copied; a repeated copy is recorded once."""
    assert run.folder is not None
    known = _notes(run.folder)
    entry = next((one for one in known if {**one, "rows": None} == {**source, "rows": None}), None)
    if entry is None:
        known.append(source | {"rows": [*rows]})
    else:
        entry["rows"] = [*dict.fromkeys([*entry["rows"], *rows])]
    write_whole(run.folder / FILE, json.dumps(known, ensure_ascii=False, indent=1) + "\n")


def _notes(folder: Path) -> list[dict[str, Any]]:
    path = folder / FILE
    try:
        known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path} ({error}): restore it, or delete it.") from None
    if not isinstance(known, list) or not all(map(_is_note, known)):
        raise DataError(f"{path} is not a list of reused rows: restore it, or delete it.")
    return known


def _is_note(entry: object) -> bool:
    """Whether an entry names rows and, if it has texts, their numbers."""
    if not isinstance(entry, dict):
        return False
    rows, texts = entry.get("rows"), entry.get(TEXTS, [])
    named = isinstance(rows, list) and all(isinstance(row, str) for row in rows)
    return named and isinstance(texts, list) and all(type(text) is int for text in texts)
