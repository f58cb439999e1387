"""Data files of every layout that is in use, and every way in which one can be broken."""

from pathlib import Path

import pytest

from raison.core.errors import DataError, InputError
from raison.core.inputs.rationale import Span
from raison.data import Dataset, Row, Wanted, load, load_file

MANY = [("the film was a joy to see", "1"), ('a dull , " quoted tale', "0")] * 4


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_headerless_tsv_is_read_without_quoting(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "".join(f"{text}\t{label}\n" for text, label in MANY))
    data = load_file(path)
    assert data.rows[1] == Row('a dull , " quoted tale', 0, 2)
    assert len(data) == 8
    assert data.name == f"{tmp_path.name}/a.tsv"
    assert len(data.sha256) == 64


def test_headerless_file_with_the_label_first(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "".join(f"{label}\t{text}\n" for text, label in MANY))
    assert load_file(path).rows[0] == Row("the film was a joy to see", 1, 1)


def test_short_texts_and_short_labels_are_told_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path, "a.tsv", "good\tpos\nbad\tneg\nfine\tpos\npoor\tneg\ngood\tpos\nbad\tneg\nfine\tpos\npoor\tneg\n"
    )
    assert load_file(path).rows[0] == Row("good", "pos", 1)


def test_csv_with_quotes_commas_and_a_line_break(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'sentence,label\n"one, ""two""\nthree",yes\nfour,no\n')
    assert load_file(path).rows == (Row('one, "two"\nthree', "yes", 2), Row("four", "no", 4))


def test_headerless_csv_with_class_title_and_body(tmp_path: Path) -> None:
    lines = [f'"{1 + n % 4}","Title {n} of the news","The body {n} of the news."\n' for n in range(12)]
    path = write(tmp_path, "a.csv", "".join(lines))
    assert load_file(path).rows[0] == Row("Title 0 of the news The body 0 of the news.", 1, 1)
    assert load_file(path, text="1", label=0).rows[1] == Row("Title 1 of the news", 2, 2)


def test_headerless_tsv_with_three_columns_needs_names(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "0\ta man sleeps\ta man rests\n1\ta dog runs\ta cat runs\n" * 3)
    with pytest.raises(DataError, match="counted from 0"):
        load_file(path)
    assert load_file(path, pair=(1, 2), label=0).rows[0] == Row(("a man sleeps", "a man rests"), 0, 1)


@pytest.mark.parametrize(("first", "second"), [("premise", "hypothesis"), ("sentence1", "sentence2")])
def test_pairs_are_found_by_name(tmp_path: Path, first: str, second: str) -> None:
    path = write(tmp_path, "a.tsv", f"id\tlabel\t{first}\t{second}\n7\tyes\ta\tb\n")
    assert load_file(path).rows == (Row(("a", "b"), "yes", 2),)


def test_columns_can_be_named_and_joined(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "headline\tbody\ttopic\nRain\tIt rains.\tweather\n")
    assert load_file(path, text="headline+body", label="topic").rows == (Row("Rain It rains.", "weather", 2),)
    assert load_file(path, pair=("headline", "body")).rows == (Row(("Rain", "It rains."), None, 2),)


def test_txt_is_split_at_the_last_semicolon(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "text;label_name\nso sad; so grey;sadness\nhappy;joy\nhappy now;joy\n")
    assert load_file(path).rows[0] == Row("so sad; so grey", "sadness", 2)


def test_txt_without_labels_is_one_text_a_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "The rain; it fell on us all day long.\n\nThe sun shone.\n")
    assert load_file(path).rows == (
        Row("The rain; it fell on us all day long.", None, 1),
        Row("The sun shone.", None, 3),
    )


def test_jsonl(tmp_path: Path) -> None:
    path = write(
        tmp_path, "a.jsonl", '{"id": 1, "text": "one", "label": 0}\n\n{"text": "two", "label": 1.0, "id": 2}\n'
    )
    assert load_file(path).rows == (Row("one", 0, 1), Row("two", 1, 3))


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["one", "two"], "label": ["a", "b"]}), path)
    assert load_file(path).rows == (Row("one", "a", 1), Row("two", "b", 2))


def test_broken_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="cannot read"):
        load_file(write(tmp_path, "a.parquet", b"nothing of the kind"))


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "text\tlabel\r\none\tno\r\n".encode("utf-8-sig"))
    assert load_file(path).rows == (Row("one", "no", 2),)


def test_line_separators_inside_a_text_do_not_split_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "text\tlabel\none\x85 two\u2028three\tno\n")
    assert load_file(path).rows[0].text == "one\x85 two\u2028three"


def test_limit_stops_reading(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "text\tlabel\none\tx\ntwo\ty\nbroken\n")
    assert len(load_file(path, limit=2)) == 2


def test_labels_that_are_not_all_numbers_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "text\tlabel\none\t1\ntwo\tunsure\n")
    assert [row.label for row in load_file(path).rows] == ["1", "unsure"]


BROKEN = [
    ("a.tsv", "text\tlabel\nfine\t1\nno label\nalso fine\t0\n", 3, "1 cells instead of 2"),
    ("a.tsv", "text\tlabel\nfine\t1\n  \t1\nalso fine\t0\n", 3, "blank"),
    ("a.tsv", b"text\tlabel\nfine\t1\ncaf\xe9\t1\nalso fine\t0\n", 3, "0xe9 is not utf-8"),
    ("a.csv", 'text,label\nfine,1\n"cut" off,1\nalso fine,0\n', 3, "not valid CSV"),
    ("a.jsonl", '{"text": "fine", "label": 1}\n{"text": "cut\n{"text": "also fine", "label": 0}\n', 2, "not JSON"),
    ("a.jsonl", '{"text": "fine", "label": 1}\n[1]\n{"text": "also fine", "label": 0}\n', 2, "not a JSON object"),
    ("a.jsonl", '{"text": "fine", "label": 1}\n{"label": 1}\n{"text": "also fine", "label": 0}\n', 2, "no text"),
]


@pytest.mark.parametrize(("name", "content", "number", "reason"), BROKEN)
def test_a_broken_line_is_named_and_can_be_skipped(
    tmp_path: Path, name: str, content: str | bytes, number: int, reason: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(DataError, match=rf"{name}, line {number}: .*{reason}.*--skip-bad"):
        load_file(path)
    data = load_file(path, skip_bad=True)
    assert [row.text for row in data.rows] == ["fine", "also fine"]
    assert [row.label for row in data.rows] == [1, 0]
    assert [line.number for line in data.broken] == [number]
    assert reason in data.broken[0].reason


def test_latin_1_only_when_asked(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", b"text\tlabel\ncaf\xe9\tyes\n")
    assert load_file(path, encoding="latin-1").rows[0].text == "caf\xe9"
    with pytest.raises(DataError, match="latin-1"):
        load_file(path)
    with pytest.raises(DataError, match="unknown encoding"):
        load_file(path, encoding="no-such-code")


def test_a_missing_column_names_those_that_exist(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "sentence\tlabel\none\tno\n")
    with pytest.raises(DataError, match=r"Did you mean 'sentence'.*label, sentence"):
        load_file(path, text="sentense")
    path = write(tmp_path, "b.jsonl", '{"body": "one", "label": 1}\n')
    with pytest.raises(DataError, match="the columns are body, label"):
        load_file(path)
    path = write(tmp_path, "c.tsv", "".join(f"{text}\t{label}\n" for text, label in MANY))
    with pytest.raises(DataError, match="numbered from 0"):
        load_file(path, text="words")


def test_missing_empty_and_unknown_files(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "")
    with pytest.raises(DataError, match=r"Did you mean '.*train\.tsv'"):
        load_file(tmp_path / "trian.tsv")
    with pytest.raises(DataError, match="no rows"):
        load_file(tmp_path / "train.tsv")
    with pytest.raises(DataError, match="no usable rows"):
        load_file(write(tmp_path, "b.tsv", "text\tlabel\n"))
    with pytest.raises(DataError, match="known endings"):
        load_file(write(tmp_path, "a.docx", "x"))


def test_load_takes_a_file_or_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.tsv", "headline\ttopic\nRain\tweather\n")
    assert load(str(path), Wanted(text="headline", label="topic")).rows == (Row("Rain", "weather", 2),)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install 'raison\[data\]'"):
        load("someone/some-data")


def test_hub_rows_have_names_for_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    made = datasets.Dataset.from_dict({"sentence": ["one", "two", "three"], "label": [1, 0, 1]}, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda path, name, split: made)
    data = load("someone/some-data", split="validation", limit=2)
    assert data == Dataset("someone/some-data", (Row("one", 1, 0), Row("two", 0, 1)), labels=("no", "yes"))


RATIONALES = [
    ("[[0, 3], [9, 12]]", ((Span(0, 3), Span(9, 12)),)),
    ("[[0, 3, 0]]", ((Span(0, 3),),)),
    ("[[[0, 3]], [], [[4, 8]]]", ((Span(0, 3),), (), (Span(4, 8),))),
    ("[]", ((),)),
    ("[[]]", ((),)),
    ("null", ()),
]


@pytest.mark.parametrize(("written", "expected"), RATIONALES)
def test_rationales_of_one_and_of_several_annotators(
    tmp_path: Path, written: str, expected: tuple[tuple[Span, ...], ...]
) -> None:
    # The second row makes the column one of spans even where the first has none.
    path = write(
        tmp_path,
        "a.jsonl",
        f'{{"text": "the film was fun", "label": 1, "marks": {written}}}\n'
        '{"text": "fun", "label": 1, "marks": [[0, 3]]}\n',
    )
    data = load_file(path, rationale="marks")
    assert data.rationales == (expected, ((Span(0, 3),),))
    assert data.has_rationales == (expected != ())
    assert load(path, Wanted(rationale="marks")) == data
    assert load_file(path).rationales == ((), ())
    found = write(tmp_path, "b.jsonl", path.read_text().replace("marks", "rationale"))
    assert load_file(found).rationales == data.rationales


def test_rationales_of_pairs_say_which_text(tmp_path: Path) -> None:
    line = '{"premise": "a man sleeps", "hypothesis": "he rests", "rationales": [[6, 12], [3, 8, 1]]}\n'
    row = load_file(write(tmp_path, "a.jsonl", line)).rows[0]
    assert row.rationales == ((Span(6, 12, 0), Span(3, 8, 1)),)
    assert [row.text[span.segment][span.start : span.end] for span in row.rationales[0]] == ["sleeps", "rests"]


def test_rationales_from_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["one", "two"], "rationale": [[[0, 2]], [[1, 3]]]}), path)
    assert load_file(path).rationales == (((Span(0, 2),),), ((Span(1, 3),),))


BAD_SPANS = [
    ("[[0, 99]]", "outside its text of 16 characters"),
    ("[[-1, 3]]", "outside"),
    ("[[3, 3]]", "empty"),
    ("[[5, 3]]", "empty"),
    ("[[0, 3, 1]]", "text number 1"),
    ('[["0", "3"]]', "is not \\[start, end\\]"),
    ("[[0, 3.5]]", "is not \\[start, end\\]"),
    ("[[false, true]]", "is not \\[start, end\\]"),
    ("[[0]]", "is not \\[start, end\\]"),
    ("[0, 3]", "is not \\[start, end\\]"),
    ("[[0, 3], []]", "is not \\[start, end\\]"),
    ("7", "not a list of spans"),
]


@pytest.mark.parametrize(("written", "reason"), BAD_SPANS)
def test_a_bad_span_makes_a_broken_line(tmp_path: Path, written: str, reason: str) -> None:
    good = '{"text": "the film was fun", "spans": [[0, 3]]}\n'
    path = write(tmp_path, "a.jsonl", good + good.replace("[[0, 3]]", written) + good)
    with pytest.raises(DataError, match=rf"a.jsonl, line 2: .*{reason}.*--skip-bad"):
        load_file(path, rationale="spans")
    data = load_file(path, rationale="spans", skip_bad=True)
    assert [row.number for row in data.rows] == [1, 3]
    assert [line.number for line in data.broken] == [2]


def test_a_column_of_free_text_is_no_rationale(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "fun", "label": 1, "rationale": "because"}\n')
    assert load_file(path).rows == (Row("fun", 1, 1),)
    with pytest.raises(DataError, match="not a list of spans"):
        load_file(path, rationale="rationale")


def test_rationales_need_columns_of_lists(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.jsonl and \.parquet only"):
        load_file(write(tmp_path, "a.tsv", "text\tlabel\trationale\nfun\t1\tx\n"), rationale="rationale")
    path = write(tmp_path, "a.jsonl", '{"text": "fun", "spans": [[0, 3]]}\n')
    with pytest.raises(DataError, match="Did you mean 'spans'"):
        load_file(path, rationale="span")


def test_require_rationales_names_the_row_and_the_way_out() -> None:
    marked = Row("fun", 1, 1, ((Span(0, 3),),))
    Dataset("d", (marked,)).require_rationales()
    with pytest.raises(DataError, match=r"d, row 2: no rationale.*known_features"):
        Dataset("d", (marked, Row("fun", 1, 2))).require_rationales()
    # Somebody was asked and marked nothing.
    assert Dataset("d", (Row("fun", 1, 1, ((),)),)).has_rationales
    assert not Dataset("d", ()).has_rationales


def test_rationales_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [0, 1], "spans": [[[0, 1]], [[1, 3]]]})
    monkeypatch.setattr(datasets, "load_dataset", lambda path, name, split: made)
    data = load("someone/some-data", Wanted(rationale="spans"))
    assert data.rationales == (((Span(0, 1),),), ((Span(1, 3),),))


@pytest.mark.parametrize("wanted", [Wanted(), Wanted(label="labels"), Wanted(label=1)])
def test_names_of_labels_from_the_hub(wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "labels": datasets.ClassLabel(names=["neg", "pos"])}
    )
    made = datasets.Dataset.from_dict({"text": ["one", "two"], "labels": [0, 1]}, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda path, name, split: made)
    data = load("someone/some-data", wanted)
    assert data.class_indices(("pos", "neg")) == (1, 0)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_takes_at_least_one_row(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("a dull plot\n")
    with pytest.raises(InputError, match=f"limit cannot be {limit}: it is the number of rows to take, at least 1"):
        load_file(path, limit=limit)
    path.write_text("")
    with pytest.raises(DataError) as caught:
        load_file(path)
    assert "broken" not in str(caught.value)


def test_a_missing_cell_is_told_by_the_name_of_its_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\na dull plot,negative\na good end,\n")
    data = load_file(path)
    assert [row.label for row in data.rows] == ["negative", None]
    with pytest.raises(InputError, match=r"row 3: no label, and every row needs one here. --skip-bad"):
        data.class_indices(("negative", "positive"))
    assert load_file(path, skip_bad=True).broken[0].reason == "no label in column 'label'"


def test_numbers_stay_numbers_beside_a_missing_label(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\na dull plot,0\na good end,\nanother,1\n")
    assert [row.label for row in load_file(path).rows] == [0, None, 1]
