"""Texts as a study's models are explained: read from the study's own folder, whatever its records are named."""

import json
import os
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.report.pages.examples import ExamplesAsked
from raison.studies.kinds.trainings.examples import examples_in
from raison.studies.kinds.trainings.records import JUDGED, TrainingRuns, model_folder
from raison.studies.kinds.trainings.results import read
from tests.unit.studies.kinds.trainings.test_sections import FILE, header


def study(folder: Path, name: str) -> TrainingRuns:
    """A study with a task of this name, and a broken run where its explanations would be looked for."""
    whole = header()
    whole["tasks"] = whole["tasks"][:1]
    whole["tasks"][0] |= {"name": name, "also": []}
    whole["rows"] = [row | {"tasks": [name]} for row in whole["rows"]]
    folder.mkdir()
    (folder / "trainings.json").write_text(json.dumps(whole))
    (folder / "study.toml").write_text(FILE)
    judged = model_folder(folder, name, "plain", 0) / JUDGED / name
    os.makedirs(judged, exist_ok=True)
    (judged / "run.json").write_text("broken")
    return read(folder)


@pytest.mark.parametrize("name", ["..", "../../elsewhere", "here/../there"])
def test_a_task_of_a_name_that_leads_elsewhere_has_no_examples(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"run\.json"):
        list(examples_in(study(tmp_path / "plain", "imdb"), ExamplesAsked()))
    assert not list(examples_in(study(tmp_path / "hostile", name), ExamplesAsked()))
