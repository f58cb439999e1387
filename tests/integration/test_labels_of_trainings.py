"""Words in the training data and numbers in other data: no number is read by the order of the alphabet."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli.train.commands import app
from raison.core.errors import InputError
from raison.data import Dataset, Row
from raison.training.recipes.classifier import labels_of

WORDS = ("unacceptable", "acceptable")


def rows(name: str, *labels: str | int) -> Dataset:
    return Dataset(name, tuple(Row(f"text {place}", label, place) for place, label in enumerate(labels, 1)))


def test_numbers_do_not_count_words() -> None:
    train = rows("train.csv", *WORDS)
    for others in ([rows("test.csv", "acceptable", 1)], [rows("dev.csv", *WORDS), None, rows("test.csv", *WORDS, 1)]):
        with pytest.raises(InputError, match=r"test\.csv, row [23]: the label 1 is a number, .*with --labels"):
            labels_of(train, *others)
    unknown = replace(rows("test.csv", 0, 1), labels=("no", "yes"))
    with pytest.raises(InputError, match="row 1: the label 0 is a number"):
        labels_of(train, unknown)


def test_numbers_with_names_are_read() -> None:
    train, names = rows("train.csv", *WORDS), ("acceptable", "unacceptable")
    assert labels_of(train, rows("test.csv", *WORDS), None) == names
    assert labels_of(train, replace(rows("test.csv", 0, 1), labels=("Unacceptable", "Acceptable"))) == names
    assert labels_of(replace(train, labels=WORDS), rows("test.csv", 0, 1)) == WORDS
    assert labels_of(rows("train.csv", "4", "none"), rows("test.csv", 4)) == ("4", "none")


@pytest.mark.parametrize(
    "command",
    [
        ("classifier", "--test", "numbers.csv", "--base", "none"),
        ("classifier", "--test", "words.csv", "--dev", "numbers.csv", "--base", "none"),
        ("scratch", "--dev", "numbers.csv", "--architecture", "bert"),
    ],
    ids=["test", "dev", "scratch"],
)
def test_the_commands_refuse_them(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file, labels in (("train", WORDS), ("words", WORDS), ("numbers", (0, 1))):
        lines = (f"the {file} film {n},{labels[n % 2]}\n" for n in range(20))
        (tmp_path / f"{file}.csv").write_text("text,label\n" + "".join(lines))
    result = CliRunner().invoke(app, [*command, "--train", "train.csv", "--out", "out"])
    assert isinstance(result.exception, InputError), result.output
    assert "the label 0 is a number" in str(result.exception)
    assert "--labels" in str(result.exception)
