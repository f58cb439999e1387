"""Lines of a run's files that its header does not announce."""

import json
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.jobs.store import RecordStore
from raison.runs.explained import ExplanationOffsets
from raison.runs.run import HEADER, read_run

RECORD = {"text": 0, "scores": [], "evaluations": 1, "gradients": 0, "seconds": 0, "target": "a", "prediction": "a"}


@pytest.mark.parametrize(("row", "seed"), [("lime", 1), ("other", 0)])
def test_a_record_of_another_row_or_seed_is_refused(tmp_path: Path, row: str, seed: int) -> None:
    head = {"raison": "1", "model": "m", "data": "d", "texts": 10_000_000, "metrics": [], "versions": {}}
    head |= {"rows": [{"label": "lime", "method": "lime", "seeds": [0]}]}
    (tmp_path / HEADER).write_text(json.dumps(head | {"settings": {"unit": "word", "of": "probability", "seed": 0}}))
    store = RecordStore(tmp_path / "records.jsonl")
    store.append([RECORD | {"row": "lime", "seed": 0, "units": 3}])
    assert len(read_run(tmp_path).records) == 1
    store.append([RECORD | {"row": row, "seed": seed, "units": 3}])
    with pytest.raises(DataError, match=rf"line 2: not a record: the run has no row '{row}' with seed {seed}"):
        read_run(tmp_path)


def test_explanations_of_other_rows_and_seeds_are_passed_over(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "explanations.jsonl")
    store.append({"row": "lime", "seed": seed, "text": 1, "explanation": {}} for seed in range(1000))
    offsets = ExplanationOffsets(store, 10_000_000, {("lime", 0)})
    assert offsets.there("lime", 0).sum() == 1
    assert not offsets.there("lime", 999).any()
