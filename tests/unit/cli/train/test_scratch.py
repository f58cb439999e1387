"""The data of `raison train scratch`."""

from pathlib import Path

import pytest

from raison.cli.train.scratch import HeldOutData
from raison.core.errors import DataError
from raison.data import Wanted


def test_broken_lines_are_skipped_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "films.tsv"
    path.write_text("text\tlabel\ngood film\tgood\n\tbad\nbad film\tbad\n")
    with pytest.raises(DataError, match="line 3: .*--skip-bad"):
        HeldOutData(str(path), str(path)).read(Wanted())
    train, dev = HeldOutData(str(path), str(path), skip_bad=True).read(Wanted())
    assert train.texts == dev.texts == ("good film", "bad film")
