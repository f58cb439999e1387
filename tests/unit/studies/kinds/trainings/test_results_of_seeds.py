"""The differences of a claim in each training, from committed records."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raison.core.errors import DataError
from raison.studies.claims import verdicts
from raison.studies.kinds.trainings import results
from raison.studies.kinds.trainings.records import MeasureClaim

FOLDER = Path(__file__).parents[5] / "studies/ivra_tables_1_3/results"


def test_a_claim_knows_its_difference_in_each_training() -> None:
    study = results.read(FOLDER)
    claim = next(one for one in study.header.claims if "comprehensiveness is better on it than integrated" in one.says)
    sample = results.sample(study, claim, "imdb")
    assert sample is not None
    with gzip.open(FOLDER / "trainings.jsonl.gz", "rt", encoding="utf-8") as file:
        records = {(one["task"], one["seed"], one["row"]): one for one in map(json.loads, file)}

    def mean(seed: int, row: str) -> float:
        return float(np.mean(records["imdb", seed, row]["scores"][sample.metric]))

    seeds = sorted({seed for _, seed, _ in records})
    literal = [mean(seed, sample.row) - mean(seed, str(sample.than)) for seed in seeds]
    assert sample.trainings == pytest.approx(literal)
    alone = replace(study, header=replace(study.header, claims=(claim,)))
    found = next(one for one in verdicts(alone) if one.run == "imdb")
    assert (found.finding, found.differing) == ("undecided", True)
    assert found.difference.low > 0, "its interval over texts alone would decide"


def test_a_seed_under_which_a_metric_is_undefined_says_nothing_of_the_trainings() -> None:
    study = results.read(FOLDER)
    claim = next(one for one in study.header.claims if "simulatability" in one.metric)
    whole = results.sample(study, claim, "squad")
    key = next(key for key in study.records if key[0] == "squad" and key[2] == claim.row)
    known = study.records[key]
    nowhere = tuple((math.nan,) * len(group) for group in known.groups[claim.metric])
    unknown = replace(known, groups={**known.groups, claim.metric: nowhere})
    less = results.sample(replace(study, records={**study.records, key: unknown}), claim, "squad")
    assert whole is not None
    assert less is not None
    assert (len(whole.trainings), len(less.trainings)) == (3, 2)
    assert {*less.trainings} < {*whole.trainings}


def records_of(folder: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    with gzip.open(folder / "trainings.jsonl.gz", "rt", encoding="utf-8") as file:
        return {(one["task"], one["seed"], one["row"]): one for one in map(json.loads, file)}


@pytest.mark.parametrize(
    ("study", "task", "axis", "count"), [("ivra_tables_1_3", "imdb", 0, 128), ("ivra_table_4", "snli", 1, 8)]
)
def test_groups_under_several_seeds_are_no_independent_values(study: str, task: str, axis: int, count: int) -> None:
    """128 groups of texts count once each, not once for each seed; of two groups, the eight trainings count."""
    folder = FOLDER.parents[1] / study / "results"
    found = results.read(folder)
    grouped = {info.label for info in found.header.metrics if info.grouped}
    claim = next(one for one in found.header.claims if one.metric in grouped)
    sample = results.sample(found, claim, task)
    assert sample is not None
    records = records_of(folder)
    seeds = sorted({seed for _, seed, _ in records})

    def literal(row: str) -> np.ndarray:
        groups = [np.ravel(records[task, seed, row]["groups"][claim.metric]) for seed in seeds]
        return np.mean(groups, axis=axis)

    assert len(sample.first) == count
    assert sample.first[:, 0] == pytest.approx(literal(sample.row))
    assert sample.gap.mean == pytest.approx((literal(sample.row) - literal(str(sample.than))).mean())


def test_a_claim_against_a_number_needs_every_training_too() -> None:
    study = results.read(FOLDER)
    metric = "aopc_comprehensiveness(profile='unirex', removal='mask')"
    claim = MeasureClaim(says="high", above="attention_average", than=0.172, metric=metric, task="imdb")
    alone = replace(study, header=replace(study.header, claims=(claim,)))
    [found] = verdicts(alone)
    assert found.difference.low > 0, "its interval over texts alone would decide"
    assert (found.finding, found.differing) == ("undecided", True)


def test_a_claimed_difference_moves_every_training() -> None:
    study = results.read(FOLDER)
    claim = MeasureClaim(says="as accurate", above="IvRA sparsemax, sim", than="plain", metric="accuracy", by=-0.05)
    alone = replace(study, header=replace(study.header, claims=(claim,)))
    records = records_of(FOLDER)
    for found in verdicts(alone):
        tried = [
            np.mean(records[found.run, seed, claim.row]["correct"])
            - np.mean(records[found.run, seed, "plain"]["correct"])
            for seed in study.header.seeds
        ]
        assert found.difference.mean == pytest.approx(np.mean(tried) + 0.05)
        assert found.trainings is not None
        assert found.trainings.mean == pytest.approx(np.mean(tried) + 0.05)


def test_records_of_another_number_of_texts_are_refused(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        if path.suffix != ".gz":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = []
    for record in records_of(FOLDER).values():
        record.pop("crc32", None)
        if record["seed"] == 2:
            record["correct"] = record["correct"][:-3]
        lines.append(json.dumps(record))
    (tmp_path / "trainings.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"has 253 texts, and others have 256: it belongs to another run|has 256 texts"):
        results.read(tmp_path)
