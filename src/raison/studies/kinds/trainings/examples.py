"""Explanations of texts by the plain and the trained models of a task, for the page of examples."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from raison.core.results.explanation import Explanation
from raison.report.pages.examples import Example, ExamplesAsked, chosen_texts
from raison.report.pages.examples_page import Examples
from raison.report.pages.shown import shown_texts
from raison.runs.headers import is_folder_name
from raison.runs.run import read_run
from raison.studies.kinds.trainings.records import JUDGED, PLAIN, TaskHead, TrainingRuns, model_folder
from raison.studies.kinds.trainings.tables import rows

_CONTROL = "random"


def examples_in(study: TrainingRuns, asked: ExamplesAsked) -> Iterator[Examples]:
    """The texts of each task, under the first seed; none if the explanations are not in the folder."""
    for task in study.header.tasks:
        if not is_folder_name(task.name):
            continue  # A foreign record: no study has such a task name.
        by_row = dict(_explained(study, task, asked))
        usual = [label for label in by_row if label.rpartition(": ")[2].partition("(")[0] != _CONTROL]
        labels = [label for label in (usual if asked.rows is None else asked.rows) if label in by_row]
        texts = sorted({text for label in labels for text in by_row[label]})
        examples = tuple(
            tuple(
                # Named by the base: the folder in which the models were trained is not informative.
                Example(text, label, None, replace(by_row[label][text], model=task.base))
                for label in labels
                if text in by_row[label]
            )
            for text in texts
        )
        if examples:
            yield Examples(task.name, f"{task.base} on {task.name}", task.data.test.name, examples)


def _explained(
    study: TrainingRuns, task: TaskHead, asked: ExamplesAsked
) -> Iterator[tuple[str, Mapping[int, Explanation]]]:
    """Each row's explanations of the first texts."""
    controls = rows(study, "control")
    for model in rows(study, "plain", "training"):
        folder = model_folder(study.folder, task.name, model.name, study.header.seeds[0]) / JUDGED / task.name
        if task.name in model.tasks and (folder / "run.json").is_file():
            named = {model.method: model.name}
            named |= {row.method: row.name for row in controls if row.name.startswith(f"{model.name}: ")}
            for label, explanations in _by_row(folder, asked).items():
                yield (label if model.name == PLAIN else named.get(label, label)), explanations


def _by_row(folder: Path, asked: ExamplesAsked) -> dict[str, dict[int, Explanation]]:
    by_row: dict[str, dict[int, Explanation]] = {}
    texts = shown_texts(read_run(folder))
    for text in chosen_texts(texts, asked):
        for one in texts[text]:
            by_row.setdefault(one.record.row, {})[text] = one.explanation
    return by_row
