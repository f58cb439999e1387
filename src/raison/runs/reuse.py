"""Reuse rows of other runs: the same methods on the same texts, models and settings.

A row is reused completely, with all its seeds and texts, or not at all. The rows and their runs are written to
`reused.json` in the same folder as the records.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.jobs.disk import write_whole
from raison.jobs.folder import STUDY, read_marker
from raison.jobs.identity import CONFIGURATION, FILES, IDENTITY, SETTINGS, TOKENIZER, WEIGHTS, differing
from raison.jobs.origins import stores_in
from raison.runs.agreement import AgreementPair, add_pairs, pairs_in
from raison.runs.headers import RunHead
from raison.runs.run import (
    CAUTIONS,
    HEADER,
    TOGETHER,
    RecordKey,
    Run,
    read_header,
    read_run,
    settings_hash,
)

FILE = "reused.json"
_OWN = ("rows", "metrics")
"""Parts of the header in which a source run may differ; versions of libraries must be equal."""


def runs_in(folders: Sequence[Path]) -> list[Path]:
    """The runs' folders in these: a folder may be a run, or contain some, as a study does."""
    return [path.parent for folder in folders for path in stores_in(folder, HEADER)]


def take_over(
    run: Run, sources: Sequence[Path], model: dict[str, Any] | None = None, *, agreement: bool = False
) -> None:
    """Copy into `run`, which has a folder, whole rows that it lacks and the sources have.

    `model` is the description of the model in the run's study: a source with another description has another model of
    the same name. Explanations are copied if the source has them; a run with metrics of many texts together needs
    explanations, or these metrics' values. With `agreement`, a source without explanations must have the pairs of its
    rows, which are copied; pairs between these rows and the run's own stay unknown. Raises DataError if a source cannot
    be read.
    """
    assert run.folder is not None, "a run in memory cannot reuse others"
    for source in sources:
        if source.resolve() != run.folder.resolve():
            _take_from(run, source, model, agreement)


def rows_in(
    header: RunHead, sources: Sequence[Path], model: dict[str, Any] | None = None, *, agreement: bool = False
) -> set[str]:
    """The rows that `take_over` would copy into a new run of this header. Raises DataError, as it does."""
    offers = [_offered(header, source, model, agreement) for source in sources]
    return {row for offer in offers if offer is not None for row in offer.rows}


@dataclass(frozen=True, slots=True)
class _ReusableRows:
    """What one source offers a run: rows with all seeds, and the positions of the run's metrics."""

    rows: dict[str, tuple[int, ...]]
    places: list[int]
    source: Run
    pairs: list[AgreementPair]


def _offered(header: RunHead, folder: Path, model: dict[str, Any] | None, agreement: bool) -> _ReusableRows | None:
    """None if the source is another run; its records, which may be many, are then not read."""
    known = read_header(folder / HEADER)
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
        # Metrics of many texts and agreement are computed from explanations, or already known.
        made = all((label, seed, metric) in source.groups for seed in seeds for metric in grouped)
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


def _take_from(run: Run, folder: Path, model: dict[str, Any] | None, agreement: bool) -> None:
    offer = _offered(run.header, folder, model, agreement)
    if offer is None:
        return
    if offer.pairs:
        assert run.folder is not None
        # Before the rows: if interrupted in between, the copy is repeated.
        add_pairs(run.folder, [pair for pair in offer.pairs if {pair["first"], pair["second"]} <= offer.rows.keys()])
    texts = range(run.header.texts)
    keys = {label: [(label, seed, text) for seed in seeds for text in texts] for label, seeds in offer.rows.items()}
    missing = [label for label, of_row in keys.items() if not all(key in run.records for key in of_row)]
    if missing:
        header = offer.source.header
        # Runs of older versions do not record their weights.
        known = {} if header.identity else {"unchecked": [WEIGHTS, TOKENIZER, CONFIGURATION]}
        _note(run, {"run": settings_hash(header), "versions": header.versions, **known}, missing)
    for label in missing:
        _copy(run, offer, keys[label])


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
    # Older studies do not describe their models.
    return models is None or any(known == model for key, known in models.items() if source.name.startswith(f"{key}--"))


def _copy(run: Run, offer: _ReusableRows, keys: Sequence[RecordKey]) -> None:
    """Copy one row."""
    source, row, seeds = offer.source, keys[0][0], dict.fromkeys(seed for _, seed, _ in keys)
    copied = (source.records[key] for key in keys)
    records = [replace(one, scores=tuple(one.scores[place] for place in offer.places)) for one in copied]
    if _explains(source, row, seeds):
        known = {(row, seed): source.explanations(row, seed) for seed in seeds}
        run.add([(record, known[record.row, record.seed][record.text]) for record in records])
    else:
        run.add_records(records)
    grouped = run.header.grouped
    for seed in seeds:
        for label in grouped:
            if (row, seed, label) in source.groups:
                run.add_groups(row, seed, label, source.groups[row, seed, label])


def _note(run: Run, source: dict[str, Any], rows: Sequence[str]) -> None:
    """Record the source of rows before they are copied; a repeated copy is recorded once."""
    assert run.folder is not None
    path = run.folder / FILE
    try:
        known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path} ({error}): restore it, or delete it.") from None
    entry = next((one for one in known if one.items() >= source.items()), None)
    if entry is None:
        known.append(source | {"rows": [*rows]})
    else:
        entry["rows"] = [*dict.fromkeys([*entry["rows"], *rows])]
    write_whole(path, json.dumps(known, ensure_ascii=False, indent=1) + "\n")
