"""Heat maps of trained coefficients: what the records hold, and nothing of what they should not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raison.report.tables.records import Table
from raison.studies.kinds.trainings.coefficients import coefficient_tables
from raison.studies.kinds.trainings.records import TrainingRuns
from raison.studies.kinds.trainings.results import read
from tests.unit.studies.kinds.trainings.test_sections import fill

HELD = {"heads": [[1.0, 1.5], [0.5, 1.0]], "layers": [1.25, 1.0], "features": [[1.0, 1.0], [1.0, 0.5]]}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TrainingRuns:
    place: Path = tmp_path_factory.mktemp("study")
    return read(fill(place))


def tables(study: TrainingRuns, held: Any) -> list[Table]:
    """Of one training on its own data, whose record holds this."""
    key = ("imdb", "imdb", "comp", 0)
    record = study.records[key]
    history = {**record.history, "coefficients": held}
    return list(coefficient_tables(replace(study, records=study.records | {key: replace(record, history=history)})))


def test_records_without_coefficients_have_no_map(study: TrainingRuns) -> None:
    assert list(coefficient_tables(study)) == []


def test_layers_stand_beside_heads_and_colours_are_changes(study: TrainingRuns) -> None:
    heads, features = tables(study, HELD)
    assert heads.title == "imdb: comp, heads and layers"
    assert heads.head == ("layer", "1", "2", "layer")
    assert [(name, [cell.mean for cell in cells]) for name, cells in heads.rows] == [
        ("1", ["1.00", "1.50", "1.25"]),
        ("2", ["0.50", "1.00", "1.00"]),
    ]
    assert heads.shades == ((0.0, 1.0, 0.5), (-1.0, 0.0, 0.0))
    assert features.shades == ((0.0, 0.0), (0.0, -1.0))


def test_of_heads_alone_there_is_one_map(study: TrainingRuns) -> None:
    [heads] = tables(study, {"heads": [[3.0, 0.0]], "layers": [], "features": []})
    assert heads.title == "imdb: comp, heads"
    assert heads.head == ("layer", "1", "2")
    assert heads.shades == ((1.0, -0.5),)


@pytest.mark.parametrize(
    "held",
    [
        [], "x", {"heads": "x"}, {"heads": [[]]}, {"heads": [[1.0], [1.0, 2.0]]}, {"heads": [["x"]]},
        {"heads": [[float("nan")]]}, {"heads": [[10**400]]}, {"heads": [[True]]}, {"heads": [[1.0] * 1000]},
        {"heads": 3},
    ],
)  # fmt: skip
def test_of_a_record_that_holds_something_else_there_is_none(study: TrainingRuns, held: Any) -> None:
    assert tables(study, held) == []
