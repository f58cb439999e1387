"""Data files of every layout that is in use, and every way in which one can be broken."""

from pathlib import Path

import pytest

from raison.core.errors import DataError, InputError
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
    ("a.tsv", "text\tlabel\nfine\t1\nnone\t\nalso fine\t0\n", 3, "no label"),
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
    with pytest.raises(DataError, match="no rows that can be used"):
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


def test_labels_become_class_numbers() -> None:
    named = Dataset("d", (Row("a", "Yes", 1), Row("b", "no", 2)))
    assert named.class_indices(("no", "yes")) == (1, 0)
    from_one = Dataset("d", (Row("a", 1, 1), Row("b", 3, 2)))
    assert from_one.class_indices(("x", "y", "z")) == (0, 2)
    from_zero = Dataset("d", (Row("a", 1, 1), Row("b", 2, 2)))
    assert from_zero.class_indices(("x", "y", "z")) == (1, 2)
    for row in (Row("a", 7, 4), Row("a", "maybe", 4), Row("a", None, 4)):
        with pytest.raises(InputError, match="row 4"):
            Dataset("d", (row,)).class_indices(("no", "yes"))
