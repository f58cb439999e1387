"""The jobs of a file read its rows once, in the order in which they are handed out."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import raison
from raison.data.streams import Item, Reading, stream
from raison.explaining.files.survey import Input, survey
from raison.explaining.files.texts import TextRows
from raison.explaining.files.work import FileWork
from raison.explaining.settings import Settings
from raison.jobs.engine import WHOLE, one_by_one
from raison.jobs.loadable import Loadable
from raison.methods import CATALOGUE
from raison.runs.files.folder import Folder

ROWS = 12


def test_every_row_is_read_once_where_jobs_are_taken_one_by_one(tmp_path: Path) -> None:
    data = tmp_path / "rows.txt"
    data.write_text("\n".join("good " * (1 + 5 * number % ROWS) for number in range(ROWS)) + "\n")
    read = []

    def counted(sources: Sequence[str], reading: Reading) -> Iterator[Item]:
        for item in stream(sources, reading):
            read.append(item.row)
            yield item

    rows = survey(Input((str(data),), Reading(), counted, together=1))
    assert len(rows.shards) == len(read) == ROWS
    read.clear()
    model = raison.load(lambda texts: np.full((len(texts), 2), 0.5), classes=("no", "yes"))
    how = TextRows(CATALOGUE.create("random"), Settings(of="probability"))
    work = FileWork(Loadable(model), rows, how, Folder(tmp_path / "out", "jsonl"))
    with work.opened(WHOLE) as jobs:
        for job in one_by_one([job for job in jobs() if not job.last]):
            job.run(lambda count, note="": None)
            assert job.is_done()
    assert read == list(range(ROWS))
