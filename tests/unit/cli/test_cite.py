"""raison cite: questions with files of sources, files of questions, and traces."""

import json

import pytest
from typer.testing import CliRunner

from raison import Citations
from raison.cli import app
from raison.core.errors import DataError, InputError
from raison.data.questions import read_questions
from tests.copying import copying_writer
from tests.unit.explaining.test_cite import ANSWER, QUESTION, SOURCES, TEMPLATE, WRITER

OPTIONS = ["--template", TEMPLATE, "--draws", "0"]


@pytest.fixture(autouse=True)
def _writer(monkeypatch):
    monkeypatch.setattr("raison.studies.plans.load_entry", lambda entry: WRITER)


def out(*arguments):
    done = CliRunner().invoke(app, ["cite", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def files(tmp_path):
    found = []
    for name, text in SOURCES.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text + "\n", encoding="utf-8")
        found += ["--source", path]
    return found


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_question_with_files(files, tmp_path):
    page = tmp_path / "page.html"
    c = Citations.from_json(out(QUESTION, *files, "--answer", ANSWER, *OPTIONS, "--json", "--html", page))
    assert c.ids == tuple(SOURCES)
    assert [c.top(i) for i in range(len(c.statements))][:2] == ["port", "owl"]
    assert "<title>who founded it</title>" in page.read_text("utf-8")
    assert "port" in out(QUESTION, *files, "--answer", ANSWER, *OPTIONS)


def test_a_byte_order_mark_is_no_part_of_a_source(tmp_path):
    path = tmp_path / "port.txt"
    path.write_text(SOURCES["port"], encoding="utf-8-sig")
    c = Citations.from_json(out(QUESTION, "--source", path, "--answer", ANSWER, *OPTIONS, "--json"))
    assert c.prompt[c.sources[0].start : c.sources[0].end] == SOURCES["port"]


def test_a_row_for_each_question(tmp_path):
    rows = [
        {"question": QUESTION, "sources": SOURCES, "answer": ANSWER},
        {"question": QUESTION, "sources": list(SOURCES.values()), "answer": ANSWER},
        {"question": QUESTION, "sources": [{"id": k, "text": v} for k, v in SOURCES.items()], "answer": ANSWER},
    ]
    found = json.loads(out("--data", written(tmp_path / "q.jsonl", rows), *OPTIONS, "--json"))
    cited = [Citations.from_dict(one) for one in found]
    assert [c.top(0) for c in cited] == ["port", "2", "port"]
    assert cited[0].scores == cited[1].scores == cited[2].scores


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "q.parquet"
    pandas.DataFrame([{"question": QUESTION, "sources": SOURCES, "answer": ANSWER}]).to_parquet(path)
    [c] = json.loads(out("--data", path, *OPTIONS, "--json"))
    assert Citations.from_dict(c).top(1) == "owl"


SPANS = [
    {"context": {"trace_id": "a"}, "attributes": {
        "input.value": QUESTION,
        "retrieval.documents": [{"document": {"id": k, "content": v}} for k, v in SOURCES.items()]}},
    {"context": {"trace_id": "a"}, "attributes": {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "read " + SOURCES["owl"] + " " + SOURCES["port"],
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": QUESTION,
        "llm.output_messages.0.message.content": ANSWER}},
    {"trace_id": "b", "attributes": {"input": {"value": "why"}, "retrieval": {
        "documents": [{"document.id": "x", "document.content": "so ."}]}}},
]  # fmt: skip
"""Nested, flat, and in between, as exporters write them."""


def test_traces(tmp_path):
    first, second = read_questions(written(tmp_path / "trace.jsonl", SPANS))
    assert [message["role"] for message in first.question] == ["system", "user"]
    # What was retrieved and not shown to the model is no source.
    assert first.sources == {name: SOURCES[name] for name in ("owl", "port")}
    assert first.answer == ANSWER
    assert (second.question, second.sources, second.answer) == ("why", {"x": "so ."}, None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"sources": SOURCES}], "line 1 of .* has no question"),
        ([{"question": "a"}], "has no sources"),
        ([{"question": "a", "sources": 3}], "sources are 3"),
        ([{"question": "a", "sources": {"b": 1}}], "give {'id'"),
        ([{"question": "a", "sources": {"b": "c"}, "answer": 1}], "answer is 1"),
        ([{"question": "a", "sources": [{"id": 1, "text": "b"}, {"id": 1, "text": "c"}]}], "same id"),
        ([{"attributes": {"input.value": "a"}}], "no llm.input_messages"),
        ([{"attributes": 1}], "attributes of a span"),
        ([], "no question"),
    ],
)
def test_bad_rows_are_named(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_questions(written(tmp_path / "q.jsonl", rows))


def test_bad_calls_are_one_line(tmp_path, files):
    rows = written(tmp_path / "q.jsonl", [{"question": QUESTION, "sources": {"a": " "}}])
    for arguments, kind, message in [
        ([], InputError, "no question"),
        (["q", "--data", rows], InputError, "leave the other arguments out"),
        (["--data", tmp_path / "none.jsonl"], DataError, "is not a file"),
        (["--data", files[1]], DataError, "ends in .jsonl or .parquet"),
        (["--data", rows], DataError, "line 1 of .*'a' is empty"),
        (["q", "--source", tmp_path / "none.txt"], DataError, "cannot read"),
        (["q"], InputError, "no source"),
    ]:
        with pytest.raises(kind, match=message):
            CliRunner().invoke(app, ["cite", *map(str, arguments)], catch_exceptions=False)


def test_the_toy_knows_its_words():
    assert copying_writer(["a b"]).tokenizer("b a")["input_ids"] == [2, 1]
