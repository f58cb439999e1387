"""A small server with OpenAI's interface and a model of a few words, which misbehaves where a test wants it to."""

import json
import math
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from raison.models.served import transport
from tests.patience import PATIENCE

WEIGHTS = {"great": 2.0, "warm": 1.0, "dull": -1.5, "not": -0.5}
NAMED = 0.6
"""The probability of both label words together."""
OTHERS = {" fine": 0.25, " bad": 0.1}
CLOSE = "!"
"""The rest of the probability."""


def probability(text: str) -> float:
    """Of the word " great" among the two label words, behind a prompt: what the tests compare with."""
    asked = text.rsplit("Review:", 1)[-1]
    return 1 / (1 + math.exp(-sum(WEIGHTS.get(word, 0.0) for word in re.findall(r"[a-z]+", asked))))


def distribution(prompt: str) -> dict[str, float]:
    """Log-probabilities of the next token, likeliest first."""
    positive = probability(prompt)
    shares = {" great": NAMED * positive, " terrible": NAMED * (1 - positive), **OTHERS}
    shares[CLOSE] = 1 - sum(shares.values())
    return dict(sorted(((token, math.log(share)) for token, share in shares.items()), key=lambda item: -item[1]))


def pieces(text: str) -> list[str]:
    """The server's tokens: words with the space before them, and single characters."""
    return re.findall(r" ?[A-Za-z]+|\s|[^\sA-Za-z]", text)


@dataclass
class Fake:
    """What the server can do, and what it does wrong.

    `faults` are used up, one for each completion: "429", "500", "401", "cut", "late", "junk", "error", "list", "nan",
    "huge", "elsewhere", "drip".
    """

    top: int = 50
    shape: str = "content"
    features: set[str] = field(default_factory=lambda: {"completions", "chat", "tokenize", "grammar", "bias"})
    faults: list[str] = field(default_factory=list)
    changing: float = 0.0
    melting: str | None = None
    """Behind a prompt with this word, the last two tokens are one; "" is in every prompt."""
    faults_at: dict[str, str] = field(default_factory=dict)
    """Faults of every completion whose prompt has the word; they are not used up."""
    impossible: set[str] = field(default_factory=set)
    """Tokens that cannot follow, as servers write it."""
    retry_after: str = "0"
    greed: int = 1
    """Each token of a prompt counts as this many."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busiest: int = 0
    pause: float = 0.0
    base: str = ""
    dripped: bool = False
    """Whether somebody waited for the end of an answer that drips."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: a late answer comes then."""
    _vocabulary: dict[str, int] = field(default_factory=dict)
    _working: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def id_of(self, piece: str) -> int:
        return self._vocabulary.setdefault(piece, len(self._vocabulary))

    def text_of(self, number: int) -> str:
        return next(piece for piece, known in self._vocabulary.items() if known == number)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/tokenize" and "tokenize" in self.features:
            return 200, {"tokens": [{"id": self.id_of(one), "piece": one} for one in pieces(body["content"])]}
        if path == "/apply-template" and "template" in self.features:
            told = "".join(f"<{message['role']}>{message['content']}" for message in body["messages"])
            return 200, {"prompt": f"{told}<assistant>"}
        if path == "/props" and "slots" in self.features:
            return 200, {"total_slots": 4}
        if path == "/v1/models":
            return 200, {"data": [{"id": "words"}, {"id": "others"}]}
        if path == "/v1/completions" and "completions" in self.features:
            return self._completed(body, body["prompt"])
        if path == "/v1/chat/completions" and "chat" in self.features:
            status, found = self._completed(body, body["messages"][-1]["content"])
            for choice in found.get("choices", ()):
                choice["message"] = {"role": "assistant", "content": choice.pop("text")}
            return status, found
        return 404, {"error": {"message": "File Not Found"}}

    def _completed(self, body: dict[str, Any], prompt: str) -> tuple[int, Any]:
        wanted = body.get("top_logprobs") or body.get("logprobs") or 0
        if wanted > self.top and "strict" in self.features:
            return 400, {"error": {"message": f"logprobs is at most {self.top}"}}
        following = {
            token: -9999.0 if token in self.impossible else value for token, value in distribution(prompt).items()
        }
        if self.changing:
            move = self.changing * (1 if len(self.requests) % 2 else -1)
            following = {token: value + move * (token == " great") for token, value in following.items()}
            total = math.log(sum(map(math.exp, following.values())))
            following = {token: value - total for token, value in following.items()}
        usage = {"prompt_tokens": self.greed * len(pieces(prompt)), "completion_tokens": body.get("max_tokens", 1)}
        if body.get("temperature"):
            return 200, {"choices": self._sampled(body, prompt), "usage": usage}
        written = [self._chosen(body, following)]
        if "grammar" in body and "grammar" in self.features:
            written = [self.text_of(int(number)) for number in re.findall(r"\[(\d+)\]", body["grammar"])]
        text, logprobs = "".join(written), None
        if self.top and wanted:
            logprobs = self._logprobs(written, following, min(wanted, self.top), body)
        if body.get("echo") and "echo" in self.features:
            text, logprobs = self._echoed(prompt, written[0])
        choice = {"text": text, "logprobs": logprobs}
        if "prompt_logprobs" in body and "prompt_logprobs" in self.features:
            choice["prompt_logprobs"] = self._prompt_logprobs(prompt)
        return 200, {"choices": [choice], "usage": usage}

    def _chosen(self, body: dict[str, Any], following: dict[str, float]) -> str:
        bias = body.get("logit_bias")
        if bias and ("bias" in self.features or "biased" in self.features):
            return self.text_of(int(next(iter(bias))))
        return next(iter(following))

    def _sampled(self, body: dict[str, Any], prompt: str) -> list[dict[str, Any]]:
        """As many answers of each kind as the probabilities say, or one by its seed."""
        following, count = distribution(prompt), body.get("n", 1) if "n" in self.features else 1
        texts = [token for token, value in following.items() for _ in range(round(20 * math.exp(value)))]
        first = body.get("seed", 0)
        return [{"text": texts[(first + place) % len(texts)]} for place in range(count)]

    def _logprobs(self, written: list[str], following: dict[str, float], top: int, body: dict[str, Any]) -> Any:
        # A token that the model never writes follows with a very small probability.
        biased = "biased" in self.features and "logit_bias" in body
        values = [0.0 if biased else following.get(token, -9.0) for token in written]
        best = list(following.items())[:top]
        if self.shape == "parallel":
            return {"tokens": written, "token_logprobs": values, "top_logprobs": [dict(best)] * len(written)}
        told = [{"token": token, "logprob": value, "id": self.id_of(token)} for token, value in best]
        return {
            "content": [
                {"token": token, "logprob": value, "id": self.id_of(token), "top_logprobs": told}
                for token, value in zip(written, values, strict=True)
            ]
        }

    def _echoed(self, prompt: str, written: str) -> tuple[str, Any]:
        """The prompt's tokens with their log-probabilities, and the one that was written."""
        tokens, values = self._read(prompt)
        return prompt + written, {"tokens": [*tokens, written], "token_logprobs": [*values, -1.0], "top_logprobs": None}

    def _prompt_logprobs(self, prompt: str) -> list[Any]:
        """As vLLM tells them: an object for each token, with its number for the name."""
        pairs = zip(*self._read(prompt), strict=True)
        return [
            None if value is None else {str(self.id_of(token)): {"logprob": value, "rank": 1, "decoded_token": token}}
            for token, value in pairs
        ]

    def _read(self, prompt: str) -> tuple[list[str], list[float | None]]:
        tokens = pieces(prompt)
        if self.melting is not None and self.melting in prompt and len(tokens) > 1:
            tokens[-2:] = ["".join(tokens[-2:])]
        values: list[float | None] = [None]
        for place in range(1, len(tokens)):
            values.append(distribution("".join(tokens[:place])).get(tokens[place], -9.0))
        return tokens, values

    @contextmanager
    def working(self) -> Iterator[None]:
        with self._lock:
            self._working += 1
            self.busiest = max(self.busiest, self._working)
        try:
            time.sleep(self.pause)
            yield
        finally:
            with self._lock:
                self._working -= 1


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"
    # Headers and content are sent apart: with Nagle's algorithm the content waits 40 ms for their acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._reply(*self.server.fake.answer(self.path, {}))

    def do_POST(self) -> None:
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.headers.append(dict(self.headers))
        if "completions" not in self.path:
            self._reply(*fake.answer(self.path, body))
            return
        fake.requests.append(body)
        with fake.working():
            lasting = [fault for word, fault in fake.faults_at.items() if word in json.dumps(body)]
            fault = next(iter(lasting or fake.faults[:1]), "")
            del fake.faults[: 0 if lasting else 1]
            self._reply(*self._wrong(fault, fake.answer(self.path, body)))

    def _wrong(self, fault: str, right: tuple[int, Any]) -> tuple[int, Any]:
        if fault.isdigit():
            return int(fault), {"error": {"message": f"wrong, {self.headers.get('Authorization', '')}"}}
        if fault == "late":
            self.server.fake.over.wait(PATIENCE)
            self.close_connection = True
        wrong = {
            "junk": "no json {",
            "error": {"error": {"message": "overloaded"}},
            "list": [1],
            "huge": "x" * (1 << 21),
        }
        found = wrong.get(fault, right[1])
        if fault == "nan":
            found = json.loads(json.dumps(found).replace('"logprob": -', '"logprob": 3'))
        return {"elsewhere": 302, "cut": -1, "drip": -2}.get(fault, right[0]), found

    def _reply(self, status: int, found: Any) -> None:
        content = (found if isinstance(found, str) else json.dumps(found)).encode()
        try:
            self.send_response(200 if status < 0 else status)
            self.send_header("Content-Length", str(len(content)))
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/v1/completions")
            if status == 429:
                self.send_header("Retry-After", self.server.fake.retry_after)
            self.end_headers()
            if status == -2:
                self._drip(len(content))
                return
            self.wfile.write(content[: len(content) // 2] if status < 0 else content)
            if status == -1:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The client went away, as one that does not wait or does not read that much.
            self.close_connection = True

    def _drip(self, length: int) -> None:
        """Spaces, one at a time, until all are sent or the test is over."""
        for _ in range(length):
            if self.server.fake.over.wait(0.05):
                self.close_connection = True
                return
            self.wfile.write(b" ")
        self.server.fake.dripped = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fake: Fake, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.fake = fake


@contextmanager
def running(fake: Fake, port: int = 0) -> Iterator[Fake]:
    """The server on a port of this machine, by default a free one; `fake.base` is its address."""
    server = _Server(fake, port)
    fake.base = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A store of the test's own, no key, and short pauses, where a module or a conftest imports it."""
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    for name in ("RAISON_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.01)
