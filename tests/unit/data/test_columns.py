"""Columns are found by name or number, and what was taken for a row is said."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.data import Row, Wanted, load_file
from raison.data.columns import is_header
from raison.data.streams import Reading, columns_taken, stream


def write(folder: Path, content: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(content)
    return path


PANDAS = ",text,label\n0,a fine film,good\n1,a dull film,bad\n"
UNNAMED = {
    "pandas' index": ("a.csv", PANDAS),
    "pandas' index, semicolons": ("a.csv", PANDAS.replace(",", ";")),
    "pandas' index, tabs": ("a.tsv", PANDAS.replace(",", "\t")),
    "a delimiter at the end": ("a.csv", "text,label,\na fine film,good,\na dull film,bad,\n"),
    "a tab at the end": ("a.tsv", "text\tlabel\t\na fine film\tgood\t\na dull film\tbad\t\n"),
    "several": ("a.csv", ",text,,label\n0,a fine film,x,good\n1,a dull film,y,bad\n"),
}


@pytest.mark.parametrize("case", UNNAMED)
@pytest.mark.parametrize("named", [{}, {"text": "text", "label": "label"}])
def test_a_header_may_have_columns_without_a_name(tmp_path: Path, case: str, named: dict[str, str]) -> None:
    name, content = UNNAMED[case]
    data = load_file(write(tmp_path, content, name), **named)  # type: ignore[arg-type]
    assert data.rows == (Row("a fine film", "good", 2), Row("a dull film", "bad", 3))
    assert data.taken.startswith("text: 'text'; label: 'label'; columns separated by")


def test_a_requested_name_makes_a_header_beside_columns_without_one(tmp_path: Path) -> None:
    path = write(tmp_path, ";Kritik;Sterne\n0;a fine film;gut\n1;a dull film;schlecht\n")
    assert load_file(path, text="Kritik", label="Sterne").rows[0] == Row("a fine film", "gut", 2)


def test_a_column_without_a_name_is_called_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path, "label,text,,0,\ngood,a,b,c,d\nbad,e,f,g,h\n")
    data = load_file(path, text=4)
    assert (data.texts, data.rows[0].label) == (("d", "h"), "good")
    assert "text: '4 (unnamed)'; label: 'label'" in data.taken
    assert load_file(path, text="0").texts == ("c", "g")
    assert [item.id for item in stream([str(path)], Reading(id_column=2))] == ["b", "f"]
    with pytest.raises(DataError, match=r"unknown column 'texts'. Did you mean 'text'\? Known: 0, 2 \(unnamed\)"):
        load_file(path, text="texts")
    for empty in ("", "text+"):
        with pytest.raises(DataError, match="unknown column ''"):
            load_file(path, text=empty)
    with pytest.raises(DataError, match="unknown column ''"):
        load_file(write(tmp_path, "good,\nbad,\n"), text="", delimiter=",")


@pytest.mark.parametrize(
    ("header", "asked", "twice"),
    [
        ("text,label,text", None, "text"),
        (",text,label,,label", None, "label"),
        ("a,a,Kritik", "Kritik", "a"),
        ("Kritik,b,Kritik", "Kritik", "Kritik"),
    ],
)
def test_two_columns_of_one_name_are_refused(tmp_path: Path, header: str, asked: str | None, twice: str) -> None:
    path = write(tmp_path, f"{header}\n" + ",".join("x" * len(header.split(","))) + "\n")
    with pytest.raises(DataError, match=rf"a\.csv: two columns of the first line are called '{twice}'"):
        load_file(path, text=asked)


FOREIGN = "Bewertung;Sterne\na fine film;gut\na dull film;schlecht\n"


def test_an_unknown_name_is_compared_with_the_first_line(tmp_path: Path) -> None:
    path = write(tmp_path, FOREIGN)
    said = r"unknown column 'bewertng'. Did you mean 'Bewertung'\? Known: 0, 1\. .*first line \(Bewertung \| Sterne\)"
    with pytest.raises(DataError, match=said):
        load_file(path, text="bewertng")
    with pytest.raises(DataError, match=said):
        columns_taken(str(path), Reading(text_column="bewertng"))
    with pytest.raises(DataError, match=said):
        next(stream([str(path)], Reading(text_column=0, id_column="bewertng")))
    with pytest.raises(DataError, match=r"unknown column '2'. Known: 0, 1\. The file has no header"):
        load_file(path, text=2)
    long = write(tmp_path, '"' + "so\n" * 400 + '";gut\n"bad";schlecht\n')
    with pytest.raises(DataError) as refusal:
        load_file(long, text="Text", delimiter=";")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300 + len(str(long))


def test_a_file_without_a_header_shows_its_first_row(tmp_path: Path) -> None:
    path = str(write(tmp_path, FOREIGN))
    said = "text: column 0; label: column 1; no header, first row: 'Bewertung | Sterne'"
    assert columns_taken(path, Reading(text_column=0, label_column=1)) == said
    assert load_file(path, text=0, label=1).taken == f"{said}; columns separated by ';'"
    # Its name makes the first line a header.
    assert columns_taken(path, Reading(text_column="Bewertung")) == "text: 'Bewertung'; label: none"
    # So do the numbers below it.
    numbers = write(tmp_path, "Bewertung;Sterne\nfine;5\ndull;1\n", "b.csv")
    assert load_file(numbers, text=0, label=1).taken.startswith("text: 'Bewertung'; label: 'Sterne'; columns")


def test_columns_of_rows_that_lack_them_are_those_of_the_others(tmp_path: Path) -> None:
    lines = ['{"text": "a fine film"}', '{"text": "a dull film", "id": "b", "output": "bad", "note": "x"}']
    path = write(tmp_path, "\n".join(lines), "a.jsonl")
    found = list(stream([str(path)], Reading(output_column="note")))
    assert [one.id for one in found] == ["a.jsonl:1", "b"]


def test_marks_that_begin_late_are_not_left_out(tmp_path: Path) -> None:
    none = ['{"text": "a fine film", "label": "good", "rationale": null}'] * 80
    path = write(tmp_path, "\n".join([*none, none[0].replace("null", "[[2, 6]]")]), "a.jsonl")
    assert [len(row.rationales) for row in load_file(path).rows[-2:]] == [0, 1]
    with pytest.raises(DataError, match="is not a list of spans"):
        load_file(write(tmp_path, "\n".join([*none, none[0].replace("null", '"because"')]), "a.jsonl"))
    free = [none[0].replace("null", '"because"')] * 2
    assert load_file(write(tmp_path, "\n".join(free), "a.jsonl")).rows[0].rationales == ()


def test_answers_that_begin_late_are_not_left_out(tmp_path: Path) -> None:
    pair = '{"question": "who?", "context": "Ann came.", "answers": %s}'
    none = [pair % "null"] * 80
    late = pair % '{"text": ["Ann"], "answer_start": [0]}'
    data = load_file(write(tmp_path, "\n".join([*none, late]), "a.jsonl"))
    assert [len(row.answers) for row in data.rows[-2:]] == [0, 1]


def test_a_first_line_of_many_columns_takes_no_more_than_linear_time() -> None:
    names = [f"column {number}" for number in range(100_000)]
    assert is_header(["text", *names], Wanted())
    with pytest.raises(DataError, match="two columns of the first line are called 'column 99999'"):
        is_header(["text", "label", *names, "column 99999"], Wanted())
