"""Questions with answers: how files write them, and windows around them."""

import json
from pathlib import Path

import pytest

from raison.core.errors import DataError, InputError
from raison.core.inputs.rationale import Span
from raison.core.targets.answer import Answer
from raison.data import Dataset, Row, around_answers, known_features, load
from raison.data.answer_spans import parse_answers
from raison.data.lengths import Lengths
from raison.studies.data_loading import load_rows
from raison.studies.entries import StudyData

CONTEXT = "In spring the baker paints boats, and in winter the baker paints  bread in the small cold kitchen."
QUESTION = "What does the baker paint in winter?"


def answer(text: str, context: str = CONTEXT, start: int | None = None) -> Answer:
    first = context.index(text) if start is None else start
    return Answer(first, first + len(text), text)


def row(number: int, text: str, context: str = CONTEXT) -> Row:
    return Row((f"{QUESTION} {number}", context), None, number, answers=(answer(text, context),))


def squad(*items: dict[str, object]) -> str:
    return json.dumps({"data": [{"title": "x", "paragraphs": [{"context": CONTEXT, "qas": list(items)}]}]})


def item(text: str, start: int, question: str = QUESTION) -> dict[str, object]:
    # The official files repeat an answer that several people gave.
    return {"id": "1", "question": question, "answers": [{"text": text, "answer_start": start}] * 2}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAISON_DATA", str(tmp_path))
    (tmp_path / "squad").mkdir()
    return tmp_path / "squad"


def test_squad_is_read(root: Path) -> None:
    content = squad(item("boats", CONTEXT.index("boats")), item("bread", CONTEXT.index("bread")))
    (root / "xquad.en.json").write_text(content)
    found = load("squad")
    assert found.rows == (
        Row((QUESTION, CONTEXT), None, 1, answers=(answer("boats"),)),
        Row((QUESTION, CONTEXT), None, 2, answers=(answer("bread"),)),
    )
    assert found.answers == (answer("boats"), answer("bread"))
    assert found.labels == ()


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (item("boats", 3), "does not contain 'boats' at character 3"),
        (item(" ", 0), "is not a string"),
        (item("boats", -1), "not a position in the context"),
        ({"question": QUESTION}, "KeyError|'answers'"),
        (item("boats", CONTEXT.index("boats"), " "), "blank"),
    ],
)
def test_a_broken_answer_is_a_broken_row(root: Path, broken: dict[str, object], says: str) -> None:
    (root / "xquad.en.json").write_text(squad(item("boats", CONTEXT.index("boats")), broken))
    with pytest.raises(DataError, match=rf"line 2: .*({says})"):
        load("squad")
    found = load("squad", skip_bad=True)
    assert len(found) == len(found.broken) == 1


def test_a_file_in_another_form_is_told(root: Path) -> None:
    (root / "xquad.en.json").write_text('{"rows": []}')
    with pytest.raises(DataError, match="not in SQuAD's form"):
        load("squad")


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_hub_layout_is_read_from_files(tmp_path: Path, listed: bool, kind: str) -> None:
    start = CONTEXT.index("bread")
    value = [{"text": "bread", "answer_start": start}] if listed else {"text": ["bread"], "answer_start": [start]}
    cells = {"id": "1", "title": "Baking", "question": QUESTION, "context": CONTEXT, "answers": value}
    path = tmp_path / f"asked.{kind}"
    if kind == "jsonl":
        path.write_text(json.dumps(cells) + "\n")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist([cells]), path)
    assert load(path).rows == (Row((QUESTION, CONTEXT), None, 1, answers=(answer("bread"),)),)


def test_a_column_of_other_answers_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text(json.dumps({"question": QUESTION, "context": CONTEXT, "answers": ["bread"]}) + "\n")
    assert load(path).rows == (Row((QUESTION, CONTEXT), None, 1),)
    path.write_text(
        json.dumps({"question": QUESTION, "context": CONTEXT, "answers": {"text": ["x"], "answer_start": [0]}})
    )
    with pytest.raises(DataError, match="does not contain 'x' at character 0"):
        load(path)


def test_no_answer_and_uneven_lists() -> None:
    assert parse_answers(None, CONTEXT) == parse_answers({"text": [], "answer_start": []}, CONTEXT) == ()
    with pytest.raises(ValueError, match="different numbers of texts and starts"):
        parse_answers({"text": ["a"], "answer_start": []}, CONTEXT)


def test_windows_hold_the_answer_and_whole_words() -> None:
    data = Dataset("asked", tuple(row(number, "bread") for number in range(60)))
    found = around_answers(data, 6)
    words = CONTEXT.split()
    places = set()
    for cut, whole in zip(found.rows, data.rows, strict=True):
        question, context = cut.text
        assert question == whole.text[0]
        assert len(context.split()) == 6
        assert context in CONTEXT
        assert all(word in words for word in context.split())
        [own] = cut.answers
        assert context[own.start : own.end] == own.text == "bread"
        places.add(context.split().index("bread"))
    assert places == set(range(6)), "the answer is not always at the same place"
    assert around_answers(data, 6) == found
    assert "windows of 6 words" in found.name
    assert found.broken == ()


def test_short_contexts_stay_and_long_answers_go() -> None:
    long = row(2, "the baker paints boats, and")
    data = Dataset("asked", (row(1, "bread"), long))
    assert around_answers(data, 100).rows == data.rows
    found = around_answers(data, 4)
    assert [cut.number for cut in found.rows] == [1]
    assert [(line.number, line.reason) for line in found.broken] == [
        (2, "the answer has 5 words, more than the window of 4")
    ]
    assert "1 row" in found.name
    with pytest.raises(DataError, match="no answer fits"):
        around_answers(Dataset("asked", (long,)), 4)


def test_further_answers_move_or_go() -> None:
    first, second = answer("bread"), answer("baker", start=CONTEXT.index("baker"))
    whole = Row((QUESTION, CONTEXT), None, 1, answers=(first, answer("paints  bread"), second))
    [cut] = around_answers(Dataset("asked", (whole,)), 2).rows
    context = cut.text[1]
    assert [context[own.start : own.end] for own in cut.answers] == [own.text for own in cut.answers]
    assert cut.answers[0].text == "bread"
    assert second.text not in [own.text for own in cut.answers]


@pytest.mark.parametrize(
    "bad",
    [
        Row("one text", None, 3),
        Row((QUESTION, CONTEXT), None, 3),
        Row((QUESTION, CONTEXT), None, 3, ((Span(0, 2, 1),),), (answer("bread"),)),
    ],
)
def test_rows_that_have_no_window(bad: Row) -> None:
    with pytest.raises(DataError, match="row 3: windows are for pairs"):
        around_answers(Dataset("asked", (bad,)), 5)


def test_rows_without_an_answer_are_told() -> None:
    with pytest.raises(DataError, match="row 4: no answer"):
        _ = Dataset("asked", (row(1, "bread"), Row((QUESTION, CONTEXT), None, 4))).answers
    with pytest.raises(InputError, match="questions with answers"):
        known_features(Dataset("asked", (row(1, "bread"),)))


def test_studies_cut_windows_before_a_limit(root: Path) -> None:
    long, short = "baker paints boats, and in", "bread"
    items = [item(long, CONTEXT.index(long)), *[item(short, CONTEXT.index(short))] * 3]
    (root / "xquad.en.json").write_text(squad(*items))
    found = load_rows(StudyData("squad", limit=2, lengths=Lengths(answer_window=4)), None)
    assert [cut.number for cut in found.rows] == [2, 3]
    assert {len(cut.text[1].split()) for cut in found.rows} == {4}
    drawn = load_rows(StudyData("squad", limit=2, sample=0, lengths=Lengths(answer_window=4)), None)
    assert len(drawn) == 2
