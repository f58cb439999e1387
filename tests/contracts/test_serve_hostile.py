"""Hostile requests, a few hundred of them: each has its answer, and none of them reaches what it may not."""

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from starlette.testclient import TestClient

import raison
from raison.core.errors import InputError
from raison.core.settings.fields import fields_of, mistakes_in
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.web.server import guard, running
from raison.web.server.calls import check_call
from raison.web.server.served import ServedModels
from raison.web.server.settings import Limits, VisibleFolders
from tests.hostile import about, asked, post, requests, wrong
from tests.hostile_values import SECRET
from tests.integration.test_serve_live import listening
from tests.serving import BERT, bert, serving
from tests.tiny import build_language_model

COUNT = 250
NAMES = {
    "aml": {"checkpoint", "metric"},
    "amortized_shap": {"checkpoint"},
    "at2": {"checkpoint"},
    "ivra": {"checkpoint"},
    "smat": {"checkpoint"},
    "reagent": {"filler"},
    "ensemble": {"methods"},
    "gradient_shap": {"baselines"},
    "resampled": {"method"},
    "rpi": {"layers"},
    "rpi_g": {"layers"},
    "simulatability": {"student"},
}
"""Every setting of a method, and of a metric that reads files, that is a free string: each was looked at."""


def test_every_hostile_request_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(running, "HEAD_SECONDS", 1.0)
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    for folder in (runs, secret):
        folder.mkdir()
    (secret / "run.json").write_text(f'{{"model": "{SECRET}"}}')
    (runs / "linked").symlink_to(secret, target_is_directory=True)
    served = ServedModels({BERT: bert()}, limits=Limits(characters=6000, seconds=20), shown=VisibleFolders(runs=runs))
    troubles: list[str] = []
    statuses: Counter[str] = Counter()
    with listening(served) as port:
        for hostile in requests(BERT, COUNT):
            answer = asked(port, hostile.content)
            statuses[answer[9:12].decode()] += 1
            if trouble := wrong(answer):
                troubles.append(f"{trouble}: {hostile.kind}: {hostile.content[-300:]!r}")
        good = asked(port, post("/api/explain", b'{"model": "tiny", "text": "a dull plot", "method": "occlusion"}'))
        assert good.startswith(b"HTTP/1.1 200")
        assert served.healthy
    assert not troubles, "\n".join(troubles)
    # Neither all refused nor all accepted: the requests are what they are meant to be.
    assert statuses["200"] > COUNT / 10
    assert statuses["422"] > COUNT / 10
    assert {"400", "403", "404", "405"} <= set(statuses)


def test_every_path_that_takes_a_body_answers_hostile_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 1.0)
    models = {BERT: bert(), "writer": raison.load(*build_language_model("llama"))}
    served = ServedModels(models, limits=Limits(characters=6000, seconds=20, new_tokens=8))
    with serving(served) as client:
        whole = _bodies(client)
        offered = client.get("/openapi.json").json()["paths"]
        taken = {path for path, verbs in offered.items() if "post" in verbs}
        assert {*whole} == taken
        for path, body in whole.items():
            assert client.post(path, json=body).status_code == 200, path
    troubles, statuses = [], Counter[str]()
    with listening(ServedModels(models, limits=served.limits)) as port:
        for hostile in about(whole, COUNT):
            answer = asked(port, hostile.content)
            statuses[answer[9:12].decode()] += 1
            if trouble := wrong(answer):
                troubles.append(f"{trouble}: {hostile.kind}: {hostile.content[-600:]!r}")
    assert not troubles, "\n".join(troubles)
    assert statuses["200"] > COUNT / 10
    assert statuses["422"] > COUNT / 10


def _bodies(client: TestClient) -> dict[str, dict[str, object]]:
    """For each path a body that it answers."""
    text = {"model": BERT, "text": "a dull plot", "method": "occlusion"}
    written = {"model": "writer", "text": "a dull plot", "method": "occlusion", "max_new_tokens": 2}
    question = {"model": "writer", "question": "who?", "sources": {"b": "the sailor.", "a": "a dull plot."}}
    question |= {"answer": "the sailor.", "method": "occlusion", "draws": 1}
    explanation, output, citations = (
        client.post(path, json=body).json()
        for path, body in (("/api/explain", text), ("/api/explain", written), ("/api/cite", question))
    )
    return {
        "/api/explain": written,
        "/api/predict": {"model": "writer", "text": "a dull plot", "max_new_tokens": 2},
        "/api/cite": question,
        "/api/check": text,
        "/api/view": {"explanations": [explanation]},
        "/api/view/file": {"results": [explanation], "kind": "svg"},
        "/api/view/trust": {"model": BERT, "explanation": explanation},
        "/api/view/output": {"explanation": output, "beside": output},
        "/api/view/span": {"explanation": output, "first": 0, "last": 1},
        "/api/view/token": {"explanation": output, "token": 0},
        "/api/view/citations": {"citations": citations},
    }


def test_a_mistake_is_told_in_the_words_of_its_own_path() -> None:
    with serving(ServedModels({BERT: bert()})) as client:
        for path, body, line in (
            ("/api/view/span", {"explanation": {}, "first": -1, "last": 0}, "first cannot be -1: give the number of"),
            ("/api/view/file", {"results": [], "kid": "svg"}, "kind is missing: give one of "),
            ("/api/view/file", {"results": [], "kind": "svg", "kid": 1}, "unknown field 'kid'. Did you mean 'kind'?"),
            ("/api/cite", {"model": BERT, "question": "who?", "draws": -1}, "draws cannot be -1: give a whole number"),
        ):
            found = client.post(path, json=body)
            assert (found.status_code, found.json()["error"][: len(line)]) == (422, line)
        found = client.get("/api/runs/words?run=a&row=b&sed=1").json()["error"]
        assert found.startswith("unknown field 'sed'. Did you mean 'seed'?")


@pytest.mark.parametrize("catalogue", [METHODS, METRICS])
def test_every_setting_that_is_a_free_string_was_looked_at(catalogue: object) -> None:
    """A new one may name a file or a model: then its Setting says that it is outside."""
    for name in catalogue.names:
        hints = get_type_hints(catalogue.get(name))
        free = {one.name for one in fields(catalogue.get(name)) if _holds_string(hints[one.name])}
        outside = {field.name for field in fields_of(catalogue.get(name)).values() if field.setting.outside}
        if catalogue is METHODS or outside:
            assert free == NAMES.get(name, set()), name


def _holds_string(hint: object) -> bool:
    return hint is str or any(map(_holds_string, get_args(hint)))


@pytest.mark.parametrize("catalogue", [METHODS, METRICS])
def test_defaults_may_be_asked_for(catalogue: object) -> None:
    for name in catalogue.names:
        instance = catalogue.create(name)
        check_call(instance, Limits())
        values = {one.name: getattr(instance, one.name) for one in fields(instance)}
        assert not mistakes_in(type(instance), values), name


@pytest.mark.parametrize(
    "call", ["kernel_shap(samples='8')", "kernel_shap(samples=8.5)", "random(draws=5001)", "aml(checkpoint='x')"]
)
def test_settings_that_do_not_fit_are_refused(call: str) -> None:
    try:
        made = METHODS.create(call)
    except InputError:
        return
    with pytest.raises(InputError):
        check_call(made, Limits())
