"""What long work says of itself: bars on a terminal after a second, lines elsewhere, nothing where it is silenced."""

import threading
import time

import pytest
from rich.progress import Task, TaskID, TextColumn

import raison
from raison import progress
from raison.progress import progress_bar, steps_of
from tests.tiny import TINY


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_so_many_seconds_where_there_is_no_terminal(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("training", 100, True, done=20) as told:
        for _ in range(80):
            clock[0] += 1
            told(1, "loss 0.5, rate 0.001")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 80 // progress.EVERY
    assert lines[0] == "raison: training 35/100 (loss 0.5, rate 0.001), 0:00:15 so far, 0:01:05 left"


def test_steps_inside_are_said_where_the_work_is(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    for show, said in (
        (True, "compare 0/50, 0:00:20 so far; perturbed texts 4/8, 0:00:20 so far, 0:00:20 left"),
        (False, ""),
    ):
        with progress_bar("compare", 50, show), steps_of("perturbed texts", 8) as told:
            clock[0] += 20
            told(4)
        assert capsys.readouterr().err.removeprefix("raison: ").strip() == said
    with steps_of("perturbed texts", 8) as told:
        clock[0] += 20
        told(4)
    assert capsys.readouterr().err == ""


def test_a_function_of_the_callers_hears_of_whole_things_alone() -> None:
    heard: list[int] = []
    with progress_bar("compare", 50, heard.append) as told, steps_of("perturbed texts", 8) as inner:
        inner(8)
        told(3, "a note")
    assert heard == [3]


class _Terminal:
    def __init__(self) -> None:
        self.drawn = ""

    def write(self, text: str) -> int:
        self.drawn += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_one_text_has_a_bar_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    model = raison.load(*TINY["bert"]())
    for delay, drawn in ((0.0, True), (60.0, False)):
        terminal = _Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setattr(progress, "DELAY", delay)
        raison.explain(model, "the film is not a quiet pleasure", "kernel_shap(samples=64)")
        assert ("passes" in terminal.drawn) == drawn
        raison.explain(model, "the film is not a quiet pleasure", "kernel_shap(samples=64)", progress=False)
    assert terminal.drawn == ""


def test_threads_share_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", _Terminal())
    monkeypatch.setattr(progress, "DELAY", 0.0)
    done = []

    def work() -> None:
        with progress_bar("compare", 4, True) as told:
            for _ in range(4):
                told(1)
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4


def test_titles_are_no_markup() -> None:
    columns = [column for column in progress._bars().columns if isinstance(column, TextColumn)]
    task = Task(TaskID(0), "model [/b] x", 1, 0, _get_time=time.monotonic, fields={"note": "[/i]"})
    assert [column.render(task).plain for column in columns] == ["model [/b] x", "[/i]"]
