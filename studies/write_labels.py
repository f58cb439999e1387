"""Writes labels.json of committed results whose records are older than that file: `python studies/write_labels.py`.

It needs the data of the studies, and no model: accuracies come from the records' predictions.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from raison.core.errors import RaisonError
from raison.data import Dataset
from raison.runs.run import HEADER, read_run
from raison.studies.kinds.comparison.check import run_name
from raison.studies.kinds.comparison.spec import StudyData, read
from raison.studies.kinds.trainings.jobs import load_task
from raison.studies.kinds.trainings.results import is_trainings
from raison.studies.kinds.trainings.spec import read as read_trainings
from raison.studies.kinds.trust.spec import read as read_trust
from raison.studies.labels import accuracy_of, write_labels
from raison.studies.rows import load_rows
from raison.trust import calls as trust_calls
from raison.trust.results import is_trust

FOLDER = Path(__file__).parent


def write(folder: Path) -> None:
    """The file of one study's results."""
    # Beside the file as it was run, for paths in it are relative to the study's folder.
    path = folder.parent / "mini.toml"
    if is_trainings(folder):
        tasks = read_trainings(path).tasks
        write_labels(folder, {name: load_task(task, None).test for name, task in tasks.items()}, {})
    elif is_trust(folder):
        write_labels(folder, _loaded(read_trust(path, trust_calls.works()).data), {})
    else:
        plain = read(path)
        data = _loaded(plain.data)
        runs = {run_name(*run): run for run in plain.runs if (folder / run_name(*run) / HEADER).exists()}
        write_labels(
            folder,
            data,
            {
                name: accuracy_of(read_run(folder / name), data[key], plain.models[model].labels)
                for name, (model, key) in runs.items()
            },
        )


def _loaded(entries: Mapping[str, StudyData]) -> dict[str, Dataset]:
    return {key: load_rows(entry, None) for key, entry in entries.items()}


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
