"""The texts of a command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import raison
from raison.cli.readable_texts import TextSource, judged_rows, read
from raison.core.errors import DataError, InputError
from raison.data import Wanted
from raison.explaining.answers import Answers
from raison.explaining.settings import Settings
from tests.copying import copying_writer


def test_files_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\nune fête,1\nbad,0\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"give encoding='latin-1' \(--encoding latin-1\), or save it as UTF-8"):
        read(str(path), Wanted())
    assert read(str(path), Wanted(), encoding="latin-1").texts == ("une fête", "bad")


def test_questions_are_read_as_texts_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "asked.jsonl"
    asked = {"question": "Où?", "sources": {"a": "the old sailor"}, "answer": "the old sailor"}
    path.write_text(json.dumps(asked, ensure_ascii=False) + "\n{broken\n", encoding="latin-1")
    writer = copying_writer(["the old sailor", "Où?"])
    with pytest.raises(DataError, match="is not utf-8"):
        judged_rows(writer, TextSource(str(path), template="plain"), Settings())
    source = TextSource(str(path), template="plain", encoding="latin-1")
    with pytest.raises(DataError, match="line 2 of .* --skip-bad"):
        judged_rows(writer, source, Settings())
    rows = judged_rows(writer, replace(source, skip_bad=True), Settings())
    assert isinstance(rows.texts, Answers)
    assert len(rows.texts.texts) == 1
    assert "raison: left out line 2 of" in capsys.readouterr().err
    with pytest.raises(InputError, match="leave the column options out"):
        judged_rows(writer, replace(source, text_column="question"), Settings())


def test_names_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "\x1b[2Jrows.jsonl"
    rows = [{"text": "the old sailor", "other": word} for word in ("yes", "\x1b[2Jmaybe")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    model = raison.load(lambda texts: [[0.1, 0.7, 0.2] for _ in texts], classes=["no", "so", "yes"])
    source = TextSource(str(path), contrast_column="other", skip_bad=True)
    assert len(judged_rows(model, source, Settings()).texts) == 1
    said = capsys.readouterr().err
    assert said.count("left out") == 2
    assert "\x1b" not in said
    assert r"\x1b[2Jrows.jsonl" in said
