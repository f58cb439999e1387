"""A real server at a real port: requests together, clients that leave, slow ones, and the command itself."""

import gc
import http.client
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import raison
from raison.cli import app, main
from raison.cli.served_models import served_models
from raison.studies.entries import StudyModel
from raison.web.server import guard, running
from raison.web.server.calls import ExplanationRequest
from raison.web.server.served import ServedModels
from raison.web.server.settings import Access, Limits
from tests.apart import started
from tests.functions import CLASSES, TEXTS, shares
from tests.patience import PATIENCE
from tests.serving import WORDS, without_time
from tests.tiny import TINY, build_language_model

KIND = {"Content-Type": "application/json"}


@dataclass
class Gate:
    """A function that answers while its gate is open, and writes down what it was asked."""

    open: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, texts: list[str]) -> Any:
        self.calls.append(list(texts))
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return shares(texts)


@contextmanager
def listening(served: ServedModels) -> Iterator[int]:
    """The port of a server that runs in another thread."""
    held = running.listening(Access(port=0))
    server = running.server_of(served)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield held.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive(), where_threads_are()


def where_threads_are() -> str:
    """The stack of every thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [(names.get(ident, str(ident)), frame) for ident, frame in sys._current_frames().items()]
    return "\n".join(f"{name}:\n{''.join(traceback.format_stack(frame))}" for name, frame in stacks)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def ask(port: int, client: str = "", path: str = "/api/explain", **body: object) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    content = json.dumps({"model": WORDS, "method": "occlusion", **body})
    connection.request("POST", path, content, {**KIND, "X-Raison-Client": client})
    found = connection.getresponse()
    answer = json.loads(found.read())
    connection.close()
    return found.status, answer, found.headers


@dataclass
class Asking:
    """A request in a thread of its own."""

    port: int
    body: dict[str, object]
    client: str = ""

    def __post_init__(self) -> None:
        self.found: tuple[int, Any, Any] | None = None
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        self.found = ask(self.port, self.client, **self.body)

    @property
    def answer(self) -> tuple[int, Any, Any]:
        self.thread.join(PATIENCE)
        assert self.found is not None
        return self.found


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    yield found
    found.open.set()


def gated(gate: Gate, limits: Limits | None = None) -> ServedModels:
    """A server whose gate is shut once the model is loaded; one text is a pass, so that work can end between two."""
    gate.open.set()
    loaded = raison.load(gate, classes=CLASSES, batch=1)
    raison.explain(loaded, "the first text, which is asked twice", "occlusion", progress=False)
    gate.open.clear()
    gate.begun.clear()
    gate.calls.clear()
    return ServedModels({WORDS: loaded}, limits=limits or Limits())


def waits(served: ServedModels, count: int) -> None:
    until(lambda: f'raison_waiting{{model="{WORDS}"}} {float(count)}' in served.counts.exposition())


def test_requests_that_come_together_are_one_call_and_each_gets_its_own_answer(gate: Gate) -> None:
    served = gated(gate)
    gate.open.set()
    expected = {text: raison.explain(served.models[WORDS], text, "occlusion", progress=False) for text in TEXTS}
    gate.open.clear()
    gate.begun.clear()
    with listening(served) as port:
        first = Asking(port, {"text": "first"}, "x")
        assert gate.begun.wait(PATIENCE)
        others = [Asking(port, {"text": TEXTS[n % 3]}, f"c{n}") for n in range(9)]
        blank = Asking(port, {"text": " "}, "blank")
        waits(served, 10)
        gate.open.set()
        assert first.answer[0] == 200
        for number, other in enumerate(others):
            status, answer, _ = other.answer
            alone = json.loads(expected[TEXTS[number % 3]].to_json())
            assert (status, without_time(answer)) == (200, without_time(alone))
        assert blank.answer[0] == 422
        until(lambda: 'raison_together_count{model="words"} 2.0' in served.counts.exposition())
    sizes = re.findall(r'raison_together_bucket\{le="(\d+)\.0",model="words"\} (\d)', served.counts.exposition())
    assert sizes == [("1", "1"), ("2", "1"), ("4", "1"), ("8", "1"), ("16", "2"), ("32", "2")]


def test_a_client_who_leaves_takes_the_request_back(gate: Gate) -> None:
    served = gated(gate)
    with listening(served) as port:
        first = Asking(port, {"text": "first"})
        assert gate.begun.wait(PATIENCE)
        leaving = http.client.HTTPConnection("127.0.0.1", port)
        leaving.request("POST", "/api/explain", json.dumps({"model": WORDS, "text": "unwanted"}), KIND)
        waits(served, 1)
        leaving.close()
        waits(served, 0)
        gate.open.set()
        assert first.answer[0] == 200
        assert ask(port, text="after")[0] == 200
    assert not any("unwanted" in text for call in gate.calls for text in call)


def test_work_for_nobody_ends_between_two_passes(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    served = gated(gate)
    with listening(served) as port:
        leaving = http.client.HTTPConnection("127.0.0.1", port)
        body = {"model": WORDS, "text": "a good film and not a bad one", "method": "occlusion"}
        leaving.request("POST", "/api/explain", json.dumps(body), KIND)
        assert gate.begun.wait(PATIENCE)
        leaving.close()
        until(lambda: 'raison_withdrawn_total{model="words"} 1.0' in served.counts.exposition())
        gate.open.set()
        assert ask(port, text="good")[0] == 200
    assert len([text for call in gate.calls for text in call if "film" in text]) <= 3
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_full_queue_says_when_to_come_again(gate: Gate) -> None:
    served = gated(gate, Limits(waiting=3, waiting_each=2))
    with listening(served) as port:
        first = Asking(port, {"text": "first"}, "a")
        assert gate.begun.wait(PATIENCE)
        held = [Asking(port, {"text": f"good {n}"}, "a") for n in range(2)]
        waits(served, 2)
        status, answer, headers = ask(port, "a", text="too many of one")
        assert (status, list(answer)) == (429, ["error"])
        assert int(headers["Retry-After"]) >= 1
        held.append(Asking(port, {"text": "of another"}, "b"))
        waits(served, 3)
        assert ask(port, "c", text="too many")[0] == 429
        gate.open.set()
        assert [one.answer[0] for one in (first, *held)] == [200] * 4
        assert ask(port, "a", text="good")[0] == 200


def test_work_has_an_end(gate: Gate) -> None:
    def slow(texts: list[str]) -> Any:
        time.sleep(0.3)
        return shares(texts)

    served = ServedModels({WORDS: raison.load(slow, classes=CLASSES, batch=1)}, limits=Limits(seconds=1))
    with listening(served) as port:
        began = time.monotonic()
        status, answer, _ = ask(port, text="a film that is long enough to take more than that")
        assert (status, answer["error"].partition(" that")[0]) == (422, "this takes more than the 1 seconds")
        assert time.monotonic() - began < PATIENCE


def test_a_mistake_of_the_server_shows_nothing_and_spoils_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = ExplanationRequest.run

    def run(self: ExplanationRequest, model: Any, asked: Any) -> list[bytes]:
        if any("poison" in one.body.text for one in asked):
            raise ZeroDivisionError("poison and a secret text")
        return original(self, model, asked)

    monkeypatch.setattr(ExplanationRequest, "run", run)
    served = gated(gate)
    with listening(served) as port, caplog.at_level(logging.INFO, "raison.serve"):
        first = Asking(port, {"text": "first"})
        assert gate.begun.wait(PATIENCE)
        spoilt, other = (Asking(port, {"text": text}, text) for text in ("poison", "good"))
        waits(served, 2)
        gate.open.set()
        assert (first.answer[0], other.answer[0]) == (200, 200)
        status, answer, _ = spoilt.answer
        assert (status, answer) == (500, {"error": guard.MISTAKEN})
        assert ask(port, text="good")[0] == 200
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "ZeroDivisionError at" in logged
    assert "POST /api/explain 200" in logged
    assert "secret" not in logged
    assert "poison" not in logged


def raw(port: int, content: bytes, rest: float = 0.0) -> bytes:
    """What comes back for some bytes, the last of them after a rest."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(content)
        if rest:
            time.sleep(rest)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except ConnectionResetError:
            pass
    return found


def test_slow_and_large_requests_are_refused(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(running, "HEAD_SECONDS", 0.3)
    served = gated(gate)
    gate.open.set()
    head = b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with listening(served) as port:
        assert raw(port, head + b"Content-Length: 50\r\n\r\n{").startswith(b"HTTP/1.1 408")
        assert raw(port, head + b"Content-Length: 300000\r\n\r\n{").startswith(b"HTTP/1.1 413")
        assert raw(port, head + b"Content-Length: -1\r\n\r\n{").startswith(b"HTTP/1.1 4")
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        assert raw(port, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5).startswith(b"HTTP/1.1 413")
        # The line arrives although not all of the body was wanted.
        for path, most, said in (
            (b"explain", guard.BODY, guard.TOO_LONG),
            (b"view/output", guard.VIEW, guard.TOO_MANY),
        ):
            two = head.replace(b"explain", path) + b"Content-Length: %d\r\n\r\n" % (most + 1) + b" " * (most + 1)
            for _ in range(5):
                assert json.loads(raw(port, two).partition(b"\r\n\r\n")[2]) == {"error": said}
            assert f"{most:,} bytes" in said
        assert raw(port, b"") == b""
        assert raw(port, b"GET / HTT") == b""
        assert raw(port, b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 4")
        assert raw(port, b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03").startswith(b"HTTP/1.1 400")
        assert ask(port, text="good")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 lets other machines in: give --token"),
        (["--host", "0.0.0.0", "--token", "short"], "a token needs at least 16 characters"),
        (["--token", "with a space in it"], "a token must consist of printable ASCII characters"),
        (["--runs", "nowhere"], "--runs nowhere is not a folder."),
        (["--port", "70000"], "65535"),
        (["-m", "another", "--prompt", "sentiment"], "--prompt applies to a single language model, and there are 2"),
        (["--models", "nowhere.toml"], "cannot read nowhere.toml: No such file"),
    ],
)
def test_what_cannot_be_served_is_refused_before_a_model_is_loaded(arguments: list[str], line: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--model", "nowhere/at-all", *arguments])
    assert done.exit_code != 0
    assert line in f"{done.exception} {done.output}"


PROMPT = 'shot = "{text} is{label}"\n[labels]\nbad = " dull"\ngood = " good"\n'
ENTRY = '[models.m]\nname = "x"\n'


def test_a_file_of_models_says_what_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(f'{ENTRY}prompt = "sentiment"\n[models.writer]\nname = "x"\ndevice = "cpu"\n')
    found = served_models(["demo/sst2"], None, file, "cuda")
    assert {name: (one.name, one.prompt, one.device) for name, one in found.items()} == {
        "demo/sst2": ("demo/sst2", None, "cuda"),
        "m": ("x", "sentiment", "cuda"),
        "writer": ("x", None, "cpu"),
    }
    assert served_models(["x"], "sentiment", None, None) == {"x": StudyModel("x", prompt="sentiment")}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("models = ", "is not TOML: "),
        ('title = "a study"\n' + ENTRY, "is not a file of models"),
        (ENTRY + 'promt = "sst2"\n', "[models.m]: unknown key 'promt'. Did you mean 'prompt'?"),
        (ENTRY + 'prompt = "sst3"\n', "[models.m]: unknown prompt 'sst3'. Did you mean 'sst2'?"),
        (ENTRY + "calibrate = true\n", "[models.m]: explained and calibrate belong to a prompt"),
        (ENTRY + 'removal = "unk"\n', "[models.m]: removal is set by each request"),
        ('[models."demo/sst2"]\nname = "x"\n', "two models are named 'demo/sst2'"),
    ],
)
def test_a_file_with_mistakes_is_refused(tmp_path: Path, content: str, line: str) -> None:
    file = tmp_path / "models.toml"
    file.write_text(content)
    with pytest.raises(raison.RaisonError) as refused:
        served_models(["demo/sst2"], None, file, None)
    assert line in str(refused.value)


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    for part in TINY["bert"]():
        part.save_pretrained(tmp_path / "tiny")
    for part in build_language_model("llama"):
        part.save_pretrained(tmp_path / "decoder")
    (tmp_path / "prompt.toml").write_text(PROMPT)
    (tmp_path / "models.toml").write_text('[models.prompted]\nname = "decoder"\nprompt = "prompt.toml"\n')
    said = tmp_path / "said.txt"
    process = started(partial(serve, tmp_path, ["-m", "tiny", "--models", "models.toml", "--port", "0"]), said)
    try:
        end = time.monotonic() + 60
        while process.is_alive() and "\n" not in (said.read_text() if said.exists() else ""):
            assert time.monotonic() < end
            time.sleep(0.05)
        served = r"raison: serving tiny, prompted at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C stops it\)\n"
        found = re.fullmatch(served, said.read_text())
        assert found, said.read_text()
        status, answer, _ = ask(int(found[1]), model="tiny", text="a dull plot", seed=1)
        assert status == 200
        expected = raison.explain(raison.load(str(tmp_path / "tiny")), "a dull plot", "occlusion", progress=False)
        np.testing.assert_allclose(answer["scores"], expected.scores, rtol=1e-5, atol=1e-6)
        status, answer, _ = ask(int(found[1]), model="prompted", text="a dull plot")
        assert status == 200
        by_prompt = raison.load(str(tmp_path / "decoder"), prompt=tmp_path / "prompt.toml")
        expected = raison.explain(by_prompt, "a dull plot", "occlusion", progress=False)
        assert answer["classes"] == ["bad", "good"]
        np.testing.assert_allclose(answer["scores"], expected.scores, rtol=1e-5, atol=1e-6)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
        process.join(PATIENCE)
        assert process.exitcode == 0
        told = said.read_text()
        assert "Traceback" not in told
        assert "dull" not in told
    finally:
        process.kill()
        process.join()


def serve(folder: Path, options: list[str]) -> None:
    """The command line in this process."""
    os.chdir(folder)
    sys.argv = ["raison", "serve", *options]
    main()
