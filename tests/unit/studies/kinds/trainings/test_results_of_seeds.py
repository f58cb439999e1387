"""The differences of a claim in each training, from committed records."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raison.studies.claims import verdicts
from raison.studies.kinds.trainings import results

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
