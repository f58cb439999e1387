"""The engine of Ray: the same rows and records, also where an actor dies; one line without Ray, or where one fails."""

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError, InputError
from raison.jobs.engine import Shard, Sharing
from raison.jobs.shared_folder import FOLDER
from tests.folder_content import content
from tests.tiny import TINY

TEXTS = [f"a quiet film {number} with a dull end" for number in range(400)]
pytestmark = pytest.mark.filterwarnings("ignore")
"""What Ray warns of is Ray's own."""
TWO = Sharing(workers=2, engine="ray")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    network, tokenizer = TINY["bert"]()
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return tmp_path


def explained(place: Path, out: str, sharing: Sharing, model: str = "model") -> None:
    raison.explain_file(
        raison.load(place / "model"),
        place / "texts.txt",
        place / out,
        "random",
        sharing=sharing,
        load=partial(raison.load, place / model),
        progress=False,
    )


def test_without_ray_there_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv(FOLDER, str(place / "gone"))
    before = dict(os.environ)
    with pytest.raises(DataError, match=r"pip install 'raison\[ray\]'"):
        explained(place, "out", TWO)
    assert dict(os.environ) == before


def test_what_does_not_go_together() -> None:
    with pytest.raises(InputError, match="apply to Ray"):
        Sharing(workers=2, address="auto")
    with pytest.raises(InputError, match="divides the work itself"):
        Sharing(Shard(1, 2), engine="ray")


def actors() -> list[int]:
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if b"ray::MapW" in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_actors_do_what_one_process_does_though_one_is_killed(place: Path) -> None:
    pytest.importorskip("ray")
    explained(place, "whole", Sharing())
    before, killed = set(actors()), []

    def kill_one() -> None:
        until = time.monotonic() + 300
        while not killed and time.monotonic() < until:
            own = [pid for pid in actors() if pid not in before]
            if own and list((place / "out").glob("work/*")):
                os.kill(own[0], signal.SIGKILL)
                killed.append(own[0])
            time.sleep(0.005)

    helper = threading.Thread(target=kill_one)
    helper.start()
    explained(place, "out", TWO)
    helper.join()
    assert killed
    assert content(place / "out") == content(place / "whole")


def test_a_comparison_by_actors_is_that_of_one_process(place: Path) -> None:
    pytest.importorskip("ray")
    loading = partial(raison.load, place / "model")
    asked, before = (TEXTS[:40], ["occlusion"], ["sufficiency"]), dict(os.environ)
    alone = raison.compare(loading(), *asked, progress=False)
    shared = raison.compare(loading(), *asked, out=place / "run", progress=False, sharing=TWO, load=loading)
    values = [[[scores.values for scores in row.metrics] for row in one.rows] for one in (alone, shared)]
    assert values[0] == values[1]
    assert dict(os.environ) == before


def test_what_fails_in_an_actor_is_one_line(place: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(DataError, match="nothing_here.*Finished work is kept") as caught:
        explained(place, "out", TWO, model="nothing_here")
    assert "\n" not in str(caught.value)
