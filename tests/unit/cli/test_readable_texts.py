"""The texts of a command."""

from pathlib import Path

import pytest

from raison.cli.readable_texts import read
from raison.core.errors import DataError
from raison.data import Wanted


def test_files_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\nune fête,1\nbad,0\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"give encoding='latin-1' \(--encoding latin-1\), or save it as UTF-8"):
        read(str(path), Wanted())
    assert read(str(path), Wanted(), encoding="latin-1").texts == ("une fête", "bad")
