"""What needs all shares is done once, whichever process finishes last."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Thread
from time import sleep

from raison.jobs.engine import Job, Shard, Sharing
from raison.jobs.folder import CLASSIFIER, working_in, write_marker
from raison.jobs.runner import perform
from raison.progress import ProgressCallback
from tests.patience import PATIENCE


@dataclass(frozen=True)
class Shared:
    """Two jobs that end at the same moment, and a last one that takes a while and writes down each time it is done."""

    folder: Path
    together: Barrier = field(default_factory=lambda: Barrier(2))

    @contextmanager
    def opened(self, shard: Shard) -> Iterator[Callable[[], Sequence[Job]]]:
        with working_in(self.folder, CLASSIFIER, shard.file):
            yield self.jobs

    def jobs(self) -> list[Job]:
        first, second, all_of_it = (self.folder / name for name in ("first", "second", "all"))

        def part(path: Path, told: ProgressCallback) -> None:
            path.write_text("done")
            self.together.wait(PATIENCE)
            told(1)

        def last(told: ProgressCallback) -> None:
            sleep(0.02)
            with all_of_it.open("a") as file:
                file.write("done\n")
            told(1)

        return [
            Job("1", "", lambda told: part(first, told), first.exists),
            Job("2", "", lambda told: part(second, told), second.exists),
            Job("all", "", last, all_of_it.exists, last=True),
        ]


def test_what_needs_all_shares_is_done_once(tmp_path: Path) -> None:
    for round_ in range(10):
        work = Shared(tmp_path / str(round_))
        work.folder.mkdir()
        write_marker(work.folder, CLASSIFIER, {"kind": CLASSIFIER.name})
        threads = [Thread(target=perform, args=(work, Sharing(shard=Shard(number, 2)), False)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (work.folder / "all").read_text() == "done\n"
