"""Which files hold questions, and which rows of them are taken."""

import json
from pathlib import Path
from typing import Any

import pytest

import raison
from raison.core.errors import DataError, InputError
from raison.data.columns import Wanted
from raison.data.questions import holds_questions, stream_questions
from raison.data.streams import Reading

ASKED = {"question": "Who?", "sources": {"a": "Ada."}, "key": "k1"}
CHAT = {"messages": [{"role": "user", "content": "Who?"}]}
SPAN = {"attributes": {"llm.input_messages.0.message.content": "Who?"}}
NESTED = {"attributes": {"openinference": {"span": {"kind": "CHAIN"}}}}
OTHER_SPAN = {"context": {"trace_id": "1"}, "attributes": {"name": "x"}}


def file_of(folder: Path, *rows: dict[str, Any] | str, encoding: str = "utf-8") -> Path:
    path = folder / "rows.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        (ASKED, True),
        (CHAT, True),
        (SPAN, True),
        (NESTED, True),
        (OTHER_SPAN, True),
        ({"text": "so good", "label": "positive", "attributes": {"wifi": "yes"}}, False),
        ({"text": "so good", "label": "positive", "messages": 3}, False),
        ({"review": "so good", "attributes": None}, False),
        ({"title": "so good", "attributes": {"wifi": "yes"}}, False),
    ],
)
def test_a_file_of_questions_is_known_by_its_shape(row: dict[str, Any], holds: bool, tmp_path: Path) -> None:
    path = file_of(tmp_path, row)
    assert holds_questions(path) is holds
    if "text" in row:
        assert raison.data.load(path).texts == (row["text"],)


def test_only_as_many_rows_are_read_as_are_taken(tmp_path: Path) -> None:
    path = file_of(tmp_path, ASKED, ASKED, "{broken", ASKED)
    assert len(raison.data.load(path, limit=2)) == 2
    with pytest.raises(DataError, match=r"line 3 of .* is not a valid row: .* --skip-bad \(skip_bad=True\) skips it"):
        raison.data.load(path)
    skipped = raison.data.load(path, skip_bad=True)
    assert (len(skipped), [line.number for line in skipped.broken]) == (3, [3])
    for limit in (0, -1):
        with pytest.raises(InputError, match=f"limit cannot be {limit}"):
            raison.data.load(path, limit=limit)


def test_the_encoding_is_the_callers(tmp_path: Path) -> None:
    path = file_of(tmp_path, ASKED | {"question": "Où?"}, encoding="latin-1")
    with pytest.raises(DataError, match="is not utf-8"):
        raison.data.load(path)
    [asked] = raison.data.load(path, encoding="latin-1").questions
    assert asked.question == "Où?"
    [item] = stream_questions([str(path)], Reading(encoding="latin-1"))
    assert item.id == "rows.jsonl:1"


def test_ids_come_from_a_column_that_exists(tmp_path: Path) -> None:
    path = file_of(tmp_path, ASKED, ASKED | {"key": "k2"})
    for column in ("key", 2):
        assert [item.id for item in stream_questions([str(path)], Reading(id_column=column))] == ["k1", "k2"]
    with pytest.raises(DataError, match="unknown column 'kee'. Did you mean 'key'"):
        list(stream_questions([str(path)], Reading(id_column="kee")))
    first_broken = file_of(tmp_path, "{broken", ASKED)
    assert [item.id for item in stream_questions([str(first_broken)], Reading(id_column="key"))][1:] == ["k1"]
    traces = file_of(tmp_path, SPAN)
    with pytest.raises(DataError, match="leave out the column of ids"):
        list(stream_questions([str(traces)], Reading(id_column="key")))


@pytest.mark.parametrize("rationale", [["good"], [[0, 1, 0, 0], [0, 1, 1, 1]], [True, False], "because"])
def test_what_is_no_span_is_no_rationale(rationale: object, tmp_path: Path) -> None:
    path = file_of(tmp_path, {"text": "so good", "label": "a", "rationale": rationale})
    assert raison.data.load(path).rows[0].rationales == ()
    with pytest.raises(DataError):
        raison.data.load(path, Wanted(rationale="rationale"))


def test_a_span_outside_of_its_text_is_still_said(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"text": "so good", "label": "a", "rationale": [[0, 99]]})
    with pytest.raises(DataError, match=r"the span \[0, 99\] is empty or outside its text"):
        raison.data.load(path)
