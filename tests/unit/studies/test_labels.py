"""A model's accuracy, read from the records of a comparison."""

from dataclasses import replace

import pytest

from raison.data import Dataset, Row
from raison.runs.columns import Columns
from raison.runs.headers import RowHead, RunHead, SettingsHead
from raison.runs.record import Record
from raison.runs.run import Run
from raison.runs.summary import Costs
from raison.studies.labels import accuracy_of, majority_of

DATA = Dataset("films", tuple(Row(f"text {number}", number % 2, number) for number in range(5)), labels=("bad", "good"))
CLASSES = ("bad", "good")
PREDICTED = ["bad", "good", "good", "good", "bad"]


def run_of(done: dict[str, list[int]]) -> Run:
    rows = tuple(RowHead(label, label, (0, 1)) for label in done)
    header = RunHead("1", "m", "d", len(DATA.rows), rows, (), SettingsHead("word", "logit", 0, {}), {}, {})
    run = Run(header, None)
    for label, texts in done.items():
        for seed in (0, 1):
            for text in texts:
                run.records.add(Record(label, seed, text, (), Costs(1, 0, 0.1), "target", PREDICTED[text], 3))
    return run


def test_the_accuracy_is_that_of_all_texts_that_some_row_has() -> None:
    assert accuracy_of(run_of({"a": [0, 1], "b": [1, 2, 3]}), DATA, CLASSES) == 0.75
    assert accuracy_of(run_of({"a": [0, 1, 2, 3, 4]}), DATA, CLASSES) == 0.8
    assert accuracy_of(run_of({"a": []}), DATA, CLASSES) is None
    assert accuracy_of(run_of({"a": [0, 1]}), DATA, ("poor", "fine")) is None


def test_classes_have_their_own_names_in_the_data() -> None:
    """Labels that a study file names are the model's classes in order; numbers without a name are places."""
    run = run_of({"a": [0, 1, 2, 3, 4]})
    named = replace(
        DATA, rows=tuple(replace(row, label=("poor", "fine")[row.number % 2]) for row in DATA.rows), labels=()
    )
    assert accuracy_of(run, named, CLASSES, ("poor", "fine")) == 0.8
    assert accuracy_of(run, named, CLASSES, ("fine", "poor")) == 0.2
    assert accuracy_of(run, named, CLASSES) is None
    assert accuracy_of(run, replace(DATA, labels=()), CLASSES) == 0.8


def test_labels_that_differ_in_case_are_one_class() -> None:
    rows = tuple(Row("a", label, n) for n, label in enumerate(["Pos", "pos", "POS", "pos", "neg", "neg"]))
    assert majority_of(Dataset("films", rows)) == 0.6667


def test_no_record_is_built_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(_columns: Columns, _key: object) -> Record:
        raise AssertionError("a prediction needs no record")

    run = run_of({"a": [0, 1, 2, 3, 4], "b": [0, 1, 2, 3, 4]})
    monkeypatch.setattr(Columns, "__getitem__", built)
    assert accuracy_of(run, DATA, CLASSES) == 0.8
