"""A line that cannot be read takes no other with it."""

import csv
import struct
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.data import Row, load_file
from raison.data.lines import read_records
from raison.data.streams import Reading, stream


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(changed: dict[int, str], end: str = "\n") -> str:
    """A header and twenty rows in lines 2 to 21; `changed` are other lines by their numbers."""
    lines = ["text,label", *(f"text {number},{number % 2}" for number in range(2, 22))]
    return end.join(changed.get(number, line) for number, line in enumerate(lines, start=1)) + end


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_that_is_never_closed_breaks_one_line(tmp_path: Path, end: str) -> None:
    path = write(tmp_path, table({10: '"text 10,0'}, end))
    with pytest.raises(DataError, match=r"line 10: not valid CSV .*: a quote opens in line 10 .*--skip-bad") as refusal:
        load_file(path)
    assert "(close it, or double it), so that the lines after it were read one by one" in str(refusal.value)
    data = load_file(path, skip_bad=True)
    assert [row.number for row in data.rows] == [*range(2, 10), *range(11, 22)]
    assert data.rows[-1] == Row("text 21", 1, 21)
    assert [line.number for line in data.broken] == [10]


def test_a_quote_that_the_next_one_closes_breaks_one_line(tmp_path: Path) -> None:
    # The quote of line 15 ends the cell that begins in line 10, and is also the beginning of its own.
    path = write(tmp_path, table({10: '"text 10,0', 15: '"a cell\nof ""two"" lines",1'}))
    data = load_file(path, skip_bad=True)
    assert [line.number for line in data.broken] == [10]
    assert [row.number for row in data.rows] == [*range(2, 10), *range(11, 16), *range(17, 23)]
    assert data.rows[12] == Row('a cell\nof "two" lines', 1, 15)


def test_quotes_that_are_open_at_several_lines_are_each_named(tmp_path: Path) -> None:
    path = write(tmp_path, table({4: '"text 4,0', 10: '"text 10,0', 21: 'text 21,"1'}))
    data = load_file(path, skip_bad=True)
    assert [line.number for line in data.broken] == [4, 10, 21]
    assert [f"in line {line.number} " in line.reason for line in data.broken] == [True, True, True]
    assert "lines after it" not in data.broken[2].reason
    assert len(data.rows) == 17


def test_quotes_without_an_end_take_no_more_than_linear_time(tmp_path: Path) -> None:
    # Each line ends the cell of the line before and opens another one, and the last of them is never closed.
    path = write(tmp_path, 'a,"b\n' + 'x","y\n' * 30_000)
    records = list(read_records(path, "utf-8"))
    assert [record.number for record in records] == [*range(1, 30_002)]
    assert all(record.broken for record in records)


def test_a_cell_may_be_as_long_as_a_book(tmp_path: Path) -> None:
    """The csv module's limit of 131,072 characters, which is one of the process, is as before."""
    before = csv.field_size_limit()
    book, lines = "word " * 40_000, "a line\n" * 30_000
    path = write(tmp_path, f'text,label\n{book.strip()},1\n"{lines.strip()}",0\n')
    assert [row.text for row in load_file(path).rows] == [book.strip(), lines.strip()]
    assert csv.field_size_limit() == before


def test_a_row_is_rejected_for_a_quote_and_the_others_are_explained(tmp_path: Path) -> None:
    path = write(tmp_path, table({10: '"text 10,0'}))
    items = list(stream([str(path)], Reading()))
    assert [item.row for item in items] == [*range(20)]
    assert [item.id for item in items if not isinstance(item.entry, Row)] == ["a.csv:10"]


FOREIGN = "Größe,Review Text,Urteil\n1,a fine film,gut\n2,a dull film,schlecht\n"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("before", ["", "\n"])
@pytest.mark.parametrize("delimiter", [None, "given"])
def test_a_first_line_of_another_encoding_stops_the_file(
    tmp_path: Path, ending: str, before: str, delimiter: str | None
) -> None:
    mark = "\t" if ending == "tsv" else ","
    path = write(tmp_path, (before + FOREIGN.replace(",", mark)).encode("latin-1"), f"a.{ending}")
    given = None if delimiter is None else mark
    said = (
        rf"a\.{ending}: line {len(before) + 1}, which may name the columns, cannot be read: the byte 0xf6 is not utf-8"
    )
    with pytest.raises(DataError, match=said) as refusal:
        load_file(path, text="Review Text", delimiter=given, skip_bad=True)
    assert "encoding='latin-1' (--encoding latin-1)" in str(refusal.value)
    with pytest.raises(DataError, match=said):
        next(stream([str(path)], Reading(text_column="Review Text", delimiter=given)))
    assert load_file(path, text="Review Text", delimiter=given, encoding="latin-1").texts[0] == "a fine film"


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf_8", "U8"])
def test_a_byte_order_mark_is_left_out_however_the_encoding_is_spelled(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "marked.csv"
    path.write_text("text,label\nso good,1\n", encoding="utf-8-sig")
    first = next(read_records(path, encoding))
    assert first.cells == ["text", "label"]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32-le"])
def test_half_a_character_of_a_wide_encoding_breaks_one_line(tmp_path: Path, ending: str, encoding: str) -> None:
    lines = {"jsonl": [f'{{"text": "{text}"}}' for text in TEXTS], "csv": ["text", *TEXTS]}[ending]
    path = write(tmp_path, ("\n".join(lines) + "\n").encode(encoding, "surrogatepass"), f"a.{ending}")
    with pytest.raises(DataError, match=rf"line {lines.index(lines[-2]) + 1}: it is not {encoding}: it has half a"):
        load_file(path, encoding=encoding)
    data = load_file(path, encoding=encoding, skip_bad=True)
    assert data.texts == ("a fine film", "a dull film")
    # A file whose last bytes are missing.
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="bytes are missing"):
        load_file(path, encoding=encoding)


TEXTS = ("a fine film", "cut \ud83d", "a dull film")


def test_an_escape_may_be_half_a_character(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "\\udcaf good"}\n{"text": "\\ude00 good"}\n', "a.jsonl")
    assert load_file(path).texts == ("\udcaf good", "\ude00 good")


def test_bytes_are_found_at_any_depth(tmp_path: Path) -> None:
    """In the sources of a question, for example."""
    path = write(tmp_path, b'{"text": "good", "sources": {"a": ["The caf\xe9"]}}\n', "a.jsonl")
    with pytest.raises(DataError, match="line 1: the byte 0xe9 is not utf-8"):
        load_file(path)


@pytest.mark.parametrize("column", ["when", "note"])
def test_a_value_that_python_cannot_hold_breaks_one_row_of_a_parquet_file(tmp_path: Path, column: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    odd = {
        "when": pyarrow.array([0, 4_000_000, 0], pyarrow.int32()).cast(pyarrow.date32()),
        "note": pyarrow.Array.from_buffers(
            pyarrow.string(), 3, [None, pyarrow.py_buffer(struct.pack("4i", 0, 1, 2, 3)), pyarrow.py_buffer(b"a\xffb")]
        ),
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["one", "two", "three"], column: odd[column]}), path)
    with pytest.raises(DataError, match=rf"a.parquet, line 2: column '{column}' cannot be read \(.*--skip-bad"):
        load_file(path)
    data = load_file(path, skip_bad=True)
    assert data.texts == ("one", "three")
    assert [line.number for line in data.broken] == [2]


def test_an_object_of_many_keys_takes_no_more_than_linear_time(tmp_path: Path) -> None:
    keys = ", ".join(f'"{number}": 0' for number in range(100_000))
    path = write(tmp_path, f'{{{keys}, "99999": 1}}\n{{"text": "good"}}\n', "a.jsonl")
    broken, good = read_records(path, "utf-8")
    assert (broken.broken, good.cells) == (
        "not usable JSON: an object has the key '99999' twice",
        {"text": "good"},
    )
