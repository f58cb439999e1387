"""Requests that nobody well-meaning would send, as the bytes of a connection, and what a server may answer."""

import json
import random
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from tests.contracts.test_nasty import NASTY

Json = object
SECRET = "the-secret-of-a-file-outside"
"""What stands in files that no request may reach."""
METHODS = (
    "occlusion",
    "deep_lift",
    "saliency",
    "random",
    "generic_attention",
    "kernel_shap(samples=8)",
    "lime(samples=8)",
)
CALLS = (
    "aml(checkpoint='/etc')",
    "ivra(checkpoint='../..')",
    "reagent(filler='/etc/passwd')",
    "ensemble(methods=('aml(checkpoint=\"/etc\")',))",
    "resampled(method=\"reagent(filler='x')\")",
    "__import__('os').system('true')",
    "occlusion(__class__=1)",
    "kernel_shap(samples=10**9)",
    "kernel_shap(samples=1000000000)",
    "kernel_shap(samples=-1)",
    "kernel_shap(samples='8')",
    "kernel_shap(samples=8.5)",
    "kernel_shap(samples=None)",
    "kernel_shap(samples=1e999)",
    "lime(samples=[])",
    "random(draws=99999999)",
    "rpi(baselines={})",
    "smooth_grad(samples=True)",
    "integrated_gradients(steps=0)",
    "occlusion(",
    "occlusion)",
    "(" * 400,
    "occlusion(" + "[" * 300,
    "x" * 499,
    "occlusion(x=" + "-" * 300 + "1)",
    "occlusion(\x00)",
    "occlusion(\ud800)",
    "../../etc/passwd",
    "demo/sst2",
    "auto(budget=-5)",
    "auto(budget=99999)",
    "",
    " ",
    "OCCLUSION",
    "occlusion()()",
    "lambda: 0",
    "shapley_exact",
    "random(draws=4999)",
    "ensemble(methods='top99')",
    "ensemble(methods=())",
    "gradient_shap(baselines=7)",
)
"""Names and calls of methods."""
VALUES: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\x00",
    "\ud800",
    "a" * 400,
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "${jndi:ldap://x}",
    "'; DROP TABLE",
    "<script>",
    "%s%n",
    [],
    [[]],
    [None],
    [1, 2],
    ["a", "b"],
    [[0, 5]],
    [[5, 0]],
    [[-1, 99]],
    ["a", 1],
    {},
    {"a": 1},
    {"a": [0, 1]},
    {"": [0, 1]},
    {"role": "user", "content": "a"},
    [{"role": "user", "content": "a"}],
    [{"role": 5}],
    ["query", ["document", "other"]],
    ["query", []],
    [["a"], "b"],
    [True, False],
    ["each"],
    "each",
    "first",
    "second",
)
"""Values for every field."""
FIELDS = (
    "model",
    "text",
    "method",
    "unit",
    "units",
    "language",
    "target",
    "of",
    "removal",
    "seed",
    "truncate",
    "precision",
    "select",
    "budget",
    "output",
    "max_new_tokens",
    "contrast",
    "earlier",
    "threshold",
    "progress",
    "__proto__",
    "file",
    "checkpoint",
)
PATHS = (
    "/../../etc/passwd",
    "/assets/../app.py",
    "/assets/..%2f..%2fapp.py",
    "/assets/%2e%2e/%2e%2e/settings.py",
    "/assets/",
    "/assets/page.js%00.html",
    "/%00",
    "/%ff",
    "/api/runs/texts",
    "/api/runs/texts?run=..&row=random",
    "/api/runs/texts?run=%2Fetc&row=random",
    "/api/runs/texts?run=secret&row=random",
    "/api/runs/texts?run=linked&row=random",
    "/api/runs/explanation?run=../secret&row=random&number=0",
    "/api/runs/texts?run=%00&row=%00&seed=-1",
    "/api/runs/texts?run=a&row=b&seed=99999999999999999999",
    "/api/runs/texts?run=a&row=b&word=(((((",
    "/api/runs/slices?run=..&row=random",
    "/api/runs/slices?run=linked&row=random",
    "/api/runs/words?run=%2Fetc&row=passwd",
    "/api/runs/words?run=linked&row=random&seed=0.5",
    "/api/runs/explanation?run=linked&row=random&number=1e400",
    "/api/runs/trust?run=linked&row=random&number=0",
    "/api/runs/trust?run=..%2Fsecret&row=%00&number=-1",
    "/api/runs/explanation?run=a&row=b&number=0&number=1&x=y",
    "/api/runs?" + "a=b&" * 500,
    "/docs",
    "/redoc",
    "/openapi.json/../..",
    "//etc/passwd",
    "/api//explain",
    "/API/EXPLAIN",
    "/metrics/..",
    "/api/models?x=<script>",
    "/.git/config",
    "/proc/self/environ",
    "http://evil.example/api/models",
    "*",
    "/" + "a" * 9000,
)
HEADS = (
    "Host: evil.example",
    "Host: localhost.evil.example",
    "Host:",
    "Host: localhost\r\nHost: evil.example",
    "Host: localhost@evil.example",
    "Host: localhost:99999",
    "Host: [::1",
    "Host: \xff",
    "Host: localhost\r\nOrigin: https://evil.example",
    "Host: localhost\r\nOrigin: null",
    "Host: localhost\r\nOrigin: http://[",
    "Host: localhost\r\nSec-Fetch-Site: cross-site",
    "Host: localhost\r\nX-Forwarded-For: " + "9.9.9.9," * 300,
    "Host: localhost\r\nX-Raison-Client: " + "c" * 5000,
    "Host: localhost\r\nAuthorization: Bearer \xff\xfe",
    "Host: localhost\r\nExpect: 100-continue",
    "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade",
    "Host: localhost\r\nContent-Encoding: gzip",
    "Host: localhost\r\nTransfer-Encoding: gzip, chunked",
    "Host: localhost\r\nX: " + "h" * 20_000,
    "Host: localhost\r\n" + "\r\n".join(f"H{n}: v" for n in range(150)),
)
VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "get", "G\x00T", "")
BYTES = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 64,
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\xff" * 4000,
    b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"",
    b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{}{}{",
    b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n{}",
    b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n{",
)
"""What is no request at all."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """The bytes of a connection, and what kind of trouble they are."""

    kind: str
    content: bytes


def requests(model: str, count: int, seed: int = 0) -> Iterator[Hostile]:
    """So many requests about a classifier, the same ones for a seed."""
    rng = random.Random(seed)
    makers: tuple[Callable[[random.Random, str], Hostile], ...] = (
        _text,
        _value,
        _call,
        _view,
        _broken,
        _path,
        _head,
        _bytes,
    )
    weights = (6, 5, 4, 3, 2, 2, 2, 1)
    for _ in range(count):
        yield rng.choices(makers, weights)[0](rng, model)


def about(whole: Mapping[str, dict[str, Json]], count: int, seed: int = 0) -> Iterator[Hostile]:
    """So many requests: for each path a body that is answered, with one or two of its values exchanged at any depth."""
    rng = random.Random(seed)
    paths = sorted(whole)
    for number in range(count):
        path = paths[number % len(paths)]
        body = json.loads(json.dumps(whole[path]))
        for _ in range(rng.choice((0, 1, 1, 2))):
            _exchange(body, rng)
        yield Hostile(f"about {path}", post(path, json.dumps(body).encode()))


def _exchange(body: Json, rng: random.Random) -> None:
    """Another value in the place of one of JSON's, or an entry more or less."""
    keys = list(body) if isinstance(body, dict) else list(range(len(body))) if isinstance(body, list) else []
    if not keys:
        return
    key = rng.choice(keys)
    inner = body[key]  # type: ignore[index]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
        _exchange(inner, rng)
    elif rng.random() < 0.15:
        del body[key]  # type: ignore[attr-defined]
    elif isinstance(body, dict) and rng.random() < 0.1:
        body["__proto__"] = deepcopy(rng.choice(VALUES))
    else:
        body[key] = deepcopy(rng.choice(VALUES))  # type: ignore[index]


def asked(port: int, content: bytes, patience: float = 60.0) -> bytes:
    """What comes back for some bytes."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), patience) as connection:
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR) if content in BYTES else None
            while part := connection.recv(1 << 16):
                found += part
        except (ConnectionResetError, BrokenPipeError):
            # The server did not read what was too much.
            pass
    return found


def wrong(answer: bytes) -> str:
    """What is wrong with an answer; nothing if it is one that may be given."""
    if not answer:
        return ""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.1 (\d{3})", head)
    if status is None:
        return "no answer of HTTP"
    if status[1].startswith(b"5"):
        return f"status {status[1].decode()}"
    length = re.search(rb"content-length: (\d+)", head.lower())
    if length is not None:
        # What follows answers what followed.
        body = body[: int(length[1])]
    for mark in (b"Traceback", b'File "', SECRET.encode(), b"root:x:"):
        if mark in body:
            return f"{mark!r} in the answer"
    if not status[1].startswith(b"4") or b"text/plain" in head or not body:
        # uvicorn's own words for what is no HTTP.
        return ""
    try:
        error = json.loads(body)
    except ValueError:
        return "an error that is no JSON"
    if list(error) != ["error"] or not isinstance(error["error"], str) or "\n" in error["error"]:
        return "an error that is not one line"
    return ""


def _text(rng: random.Random, model: str) -> Hostile:
    name = rng.choice(list(NASTY))
    body: dict[str, Json] = {"model": model, "text": NASTY[name], "method": rng.choice(METHODS), "truncate": True}
    body["unit"] = rng.choice(("token", "word", "sentence"))
    if rng.random() < 0.1:
        body["text"] = [NASTY[name], NASTY[rng.choice(list(NASTY))]]
    path = rng.choice(("/api/explain", "/api/explain", "/api/predict"))
    if path == "/api/predict":
        body = {"model": model, "text": body["text"], "truncate": True}
    return Hostile(f"text: {name}", post(path, json.dumps(body).encode()))


def _value(rng: random.Random, model: str) -> Hostile:
    body: dict[str, Json] = {"model": model, "text": "a dull plot", "method": rng.choice(METHODS)}
    fields = rng.sample(FIELDS, rng.choice((1, 1, 2)))
    for field in fields:
        body[field] = rng.choice(VALUES)
    return Hostile(f"value: {', '.join(fields)}", post("/api/explain", json.dumps(body).encode()))


def _call(rng: random.Random, model: str) -> Hostile:
    call = rng.choice(CALLS)
    body: dict[str, Json] = {"model": model, "text": "a dull plot", rng.choice(("method", "method", "select")): call}
    return Hostile(f"call: {call:.40}", post("/api/explain", json.dumps(body).encode()))


def _view(rng: random.Random, model: str) -> Hostile:
    """An explanation with some of its values exchanged, which is to be shown."""
    units: list[Json] = [
        {"start": 0, "end": 1, "text": "a", "segment": 0},
        {"start": 2, "end": 6, "text": "dull", "segment": 0},
    ]
    whole: dict[str, Json] = {
        "text": "a dull plot", "unit": "word", "units": units, "scores": [0.1, -0.2], "classes": ["no", "yes"],
        "probabilities": [0.4, 0.6], "target": "yes", "against": None, "of": "probability", "value_full": 0.6,
        "value_empty": 0.5, "method": "occlusion", "config": {}, "model": model, "removal": "mask", "seed": 0,
        "evaluations": 2, "gradients": 0, "seconds": 0.1,
    }  # fmt: skip
    for field in rng.sample(sorted(whole), rng.choice((0, 1, 1, 2))):
        whole[field] = rng.choice(VALUES)
    body = json.dumps({"explanations": [whole] * rng.choice((1, 2, 5))}).encode()
    return Hostile("view", post("/api/view", body))


def _broken(rng: random.Random, model: str) -> Hostile:
    whole = json.dumps({"model": model, "text": "a dull plot"}).encode()
    cut = rng.randrange(len(whole))
    bodies = (
        whole[:cut],
        whole[:cut] + bytes([rng.randrange(256)]) + whole[cut + 1 :],
        b"[" * rng.randrange(1, 60_000),
        b'{"a":' * 5000,
        b"9" * 6000,
        b"\xff\xfe" + whole,
        whole.decode().encode("utf-16"),
        whole + whole,
        b"null",
        b'"text"',
    )
    return Hostile("broken JSON", post("/api/explain", rng.choice(bodies)))


def _path(rng: random.Random, model: str) -> Hostile:
    path, verb = rng.choice(PATHS), rng.choice(VERBS)
    return Hostile(f"path: {path:.40}", _head_of(verb, path, "Host: localhost") + b"\r\n")


def _head(rng: random.Random, model: str) -> Hostile:
    head = rng.choice(HEADS)
    body = json.dumps({"model": model, "text": "a dull plot", "method": "random"}).encode()
    return Hostile(f"head: {head:.40}", post("/api/explain", body, head))


def _bytes(rng: random.Random, model: str) -> Hostile:
    return Hostile("no HTTP", rng.choice(BYTES))


def post(path: str, body: bytes, head: str = "Host: localhost") -> bytes:
    """The bytes of a request."""
    kind = f"{head}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
    return _head_of("POST", path, kind) + b"\r\n" + body


def _head_of(verb: str, path: str, lines: str) -> bytes:
    close = "" if "Connection" in lines else "\r\nConnection: close"
    return f"{verb} {path} HTTP/1.1\r\n{lines}{close}\r\n".encode("latin-1", "replace")
