"""The delimiter of a file is found, or the file is refused: a label never becomes a part of its text."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.data import Row, Wanted, load, load_file

REVIEWS = ("A joy, from start to end", "Dull; and far too long", "Fine", 'They call it "art", I call it noise') * 2
STARS = (5, 1, 3, 1) * 2


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def table(delimiter: str, header: str = "review,stars", end: str = "\n") -> str:
    rows = [f"{quoted(text)}{delimiter}{stars}" for text, stars in zip(REVIEWS, STARS, strict=True)]
    return end.join([*([header.replace(",", delimiter)] if header else []), *rows]) + end


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", ["review,stars", "Bewertung,Sterne", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_every_delimiter_is_found(tmp_path: Path, delimiter: str, header: str, end: str, encoding: str) -> None:
    data = load_file(write(tmp_path, table(delimiter, header, end).encode(encoding)))
    assert data.texts == REVIEWS
    assert tuple(row.label for row in data.rows) == STARS
    text, label = header.split(",") if header else ("", "")
    assert f"text: '{text}'; label: '{label}'" in data.taken or (not header and "text: column 0" in data.taken)
    assert {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}[delimiter] in data.taken


FOUND = {
    "unquoted semicolons in no text": ("review;stars\nA joy, a treat;5\nDull, long, loud;1\n", "A joy, a treat", 5),
    "decimal commas": ("text;score\nA joy to see;0,5\nDull and long;0,1\n", "A joy to see", None),
    "decimal commas without a header": ("A joy to see;0,5\nDull and long;0,1\n", "A joy to see", "0,5"),
    "a break in a text": ('review;stars\n"A joy;\nagain, and again";5\nDull;1\n', "A joy;\nagain, and again", 5),
    "tabs": ("review\tstars\nA joy, a treat\t5\nDull; long\t1\n", "A joy, a treat", 5),
    "one text a line": ("Good film, really\nBad film, sadly\n", "Good film, really", None),
    "one text a line, of any length": ("A joy\nDull, long, loud; bad\nSo, so\n", "A joy", None),
    "one column with a header": ("text\nGood film, really\nBad, sadly, and long\n", "Good film, really", None),
    "one column, quoted": ('text\n"Good film, really"\n"Bad"\n', "Good film, really", None),
    "a short broken line": ("text,label\nfine,1\n", "fine", 1),
    "a known name decides": ("text|label\na,b|1\nc,d|0\n", "a,b", 1),
}


@pytest.mark.parametrize("case", FOUND)
def test_columns_are_told(tmp_path: Path, case: str) -> None:
    content, text, label = FOUND[case]
    rows = load_file(write(tmp_path, content)).rows
    assert (rows[0].text, rows[0].label) == (text, label)


REFUSED = {
    "a label behind a text with commas": "A joy, a treat,1\nDull,0\nLong, loud, bad,0\n",
    "one column by its header, two by its rows": "text\nA joy to see,1\nDull and long,0\n",
    "two delimiters that both fit": "a;b,yes\nc;d,no\ne;f,yes\n",
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_what_cannot_be_split_for_certain_is_refused(tmp_path: Path, case: str, name: str) -> None:
    path = write(tmp_path, REFUSED[case], name)
    with pytest.raises(DataError, match=r"cannot be split into columns unambiguously: .*--delimiter ','") as refusal:
        load_file(path)
    assert "\n" not in str(refusal.value)
    # `raison explain` has no such option.
    assert "--skip-bad" not in str(refusal.value)
    # "none" is the way out for texts alone.
    assert load_file(path, delimiter="none").rows[-1].text == REFUSED[case].splitlines()[-1]


def test_a_line_that_cannot_be_decoded_has_the_blame_for_the_doubt(tmp_path: Path) -> None:
    path = write(tmp_path, "Urteil;Sterne\nein schöner Film;gut\nso fad;schlecht\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"with ';', line 2 cannot be read: the byte 0xf6 is not utf-8 .*latin-1"):
        load_file(path)


def test_a_delimiter_that_is_given_is_used(tmp_path: Path) -> None:
    path = write(tmp_path, "A joy, a treat,1\nDull,0\nBad,0\n")
    data = load_file(path, delimiter=",", skip_bad=True)
    assert data.rows == (Row("Dull", 0, 2), Row("Bad", 0, 3))
    assert [line.number for line in data.broken] == [1]
    assert load(path, Wanted(delimiter=","), skip_bad=True) == data
    path = write(tmp_path, "text\tlabel\nfine\t1\n", "b.tsv")
    assert load_file(path, delimiter="tab").rows == (Row("fine", 1, 2),)
    with pytest.raises(DataError, match="not one character"):
        load_file(path, delimiter="::")
    with pytest.raises(DataError, match=r"for \.csv and \.tsv files"):
        load_file(write(tmp_path, '{"text": "a"}\n', "c.jsonl"), delimiter=",")


def test_a_tsv_file_without_tabs_is_no_file_of_texts(tmp_path: Path) -> None:
    path = write(tmp_path, "review;stars\nA joy, a treat;5\nDull, long;1\n", "a.tsv")
    assert load_file(path).rows[0] == Row("A joy, a treat", 5, 2)
    # Texts alone stay as they are: a .tsv file has no quotes.
    assert load_file(write(tmp_path, 'A "joy", a treat\nDull\n', "b.tsv")).texts == ('A "joy", a treat', "Dull")


def test_what_was_taken_is_said_of_every_kind(tmp_path: Path) -> None:
    path = write(tmp_path, '{"text": "one", "label": 0}\n', "a.jsonl")
    assert load_file(path).taken == "text: 'text'; label: 'label'"
    path = write(tmp_path, "premise\thypothesis\ttopic\na\tb\tc\n", "a.tsv")
    assert load_file(path).taken == "text: 'premise' and 'hypothesis'; label: none; columns separated by a tab"
    said = "text: each whole line; label: none; no header, first row: 'A joy'"
    assert load_file(write(tmp_path, "A joy\nDull, long\n")).taken == said


def test_the_command_line_says_what_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from raison.cli.readable_texts import read

    path = write(tmp_path, table(";"))
    assert len(read(str(path), Wanted())) == 8
    said = f"raison: {path}: text: 'review'; label: 'stars'; columns separated by ';'\n"
    assert capsys.readouterr().err == said
