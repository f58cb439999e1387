"""Requests that nobody well-meaning would send, as the bytes of a connection, and what a server may answer."""

import json
import random
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from tests.contracts.test_nasty import NASTY
from tests.hostile_values import BYTES, CALLS, FIELDS, HEADS, METHODS, PATHS, SECRET, VALUES, VERBS

Json = object


@dataclass(frozen=True, slots=True)
class Hostile:
    """The bytes of a connection, and what kind of trouble they are."""

    kind: str
    content: bytes


def requests(model: str, count: int, seed: int = 0) -> Iterator[Hostile]:
    """A number of requests about a classifier, the same ones for a seed."""
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
    """A number of requests: for each path a body that is answered, with one or two of its values exchanged at any
    depth."""
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
    if (
        list(error) not in (["error"], ["error", "truncatable"])
        or not isinstance(error["error"], str)
        or "\n" in error["error"]
    ):
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
