"""What the training commands say about their data."""

import pytest

from raison.cli.train.shared import tell_asked, tell_known, tell_shared
from raison.data import Dataset, Row
from raison.data.question_rows import QuestionRow


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


def test_held_out_texts_that_the_model_was_trained_on_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    train, dev = Dataset("sst2/train, the first 12 words", ()), Dataset("sst2/dev", ())
    tell_known("demo/sst2", train, None)
    assert "demo/sst2 itself was trained on sst2/train, the first 12 words: the held-out" in capsys.readouterr().err
    tell_known("demo/sst2", train, dev)
    assert capsys.readouterr().err == ""


def test_held_out_questions_that_are_trained_on_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [QuestionRow(number, "who?", {"a": str(number % 3), "b": "it"}) for number in range(4)]
    tell_asked(rows, 2)
    assert "1 of the 2 held-out questions are also among the training questions" in capsys.readouterr().err
    tell_asked(rows[:3], 2)
    assert capsys.readouterr().err == ""
