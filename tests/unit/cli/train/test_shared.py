"""What the training commands say about their data."""

import pytest

from raison.cli.train.shared import tell_shared
from raison.data import Dataset, Row


def data_of(name: str, *texts: str) -> Dataset:
    return Dataset(name, tuple(Row(text, None, number) for number, text in enumerate(texts)))


def test_held_out_texts_that_are_trained_on_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    learned = data_of("a", "one", "two", "three", "two")
    tell_shared(learned, data_of("b", "two", "two", "four"))
    assert "2 of the 3 texts of b are also among the training texts" in capsys.readouterr().err
    tell_shared(learned, None)
    assert "2 of the 4 texts of a occur more than once" in capsys.readouterr().err
    tell_shared(learned, data_of("c", "five"))
    tell_shared(data_of("d", "one", "two"), None)
    assert capsys.readouterr().err == ""
