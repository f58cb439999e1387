"""Writes labels.json of committed results whose records are older than that file: `python studies/write_labels.py`.

It needs the data of the studies, and no model: accuracies come from the records' predictions.
"""

import sys
from pathlib import Path

from raison.core.errors import RaisonError
from raison.runs.run import HEADER, read_run
from raison.studies.data_loading import load_rows
from raison.studies.file import read
from raison.studies.kinds.trainings.spec import Trainings
from raison.studies.kinds.trainings.work import load_task
from raison.studies.labels import accuracy_of, write_labels

FOLDER = Path(__file__).parent


def write(folder: Path) -> None:
    """The file of one study's results."""
    # Beside the file as it was run, for paths in it are relative to the study's folder.
    study = read(folder.parent / "mini.toml")
    if isinstance(study.spec, Trainings):
        write_labels(folder, {name: load_task(task, None).test for name, task in study.spec.tasks.items()}, {})
        return
    grid = study.spec.grid
    data = {key: load_rows(entry, None) for key, entry in grid.data.items()}
    found = {
        run.name: accuracy_of(read_run(folder / run.name), data[run.data], grid.models[run.model].labels)
        for run in grid.wanted
        if (folder / run.name / HEADER).exists()
    }
    write_labels(folder, data, found)


def main() -> int:
    """Every committed folder; 1 where the data of one cannot be read."""
    failed = 0
    for folder in sorted(FOLDER.glob("*/results")):
        try:
            write(folder)
        except RaisonError as error:
            failed = 1
            sys.stderr.write(f"{folder.parent.name}: {error}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
