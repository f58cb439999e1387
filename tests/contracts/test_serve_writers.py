"""The contract of the server's JSON for models that write: what is painted of their answers, and citations."""

import inspect
import json
import math
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import raison
from raison.core.results.citations import Citations
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import dump
from raison.web.component.views import agreement, from_to, seen
from raison.web.server.bodies import CiteBody
from raison.web.server.citing import CitationsRequest
from raison.web.server.served import ServedModels
from raison.web.server.settings import Limits
from tests.serving import WORDS, serving, without_time, words
from tests.tiny import build_language_model

MODELS = {WORDS: words(), "writer": raison.load(*build_language_model("llama"))}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving(ServedModels(MODELS)) as client:
        yield client


def test_what_a_model_wrote_is_painted_token_by_token(client: TestClient) -> None:
    asked = {"model": "writer", "text": "a dull plot", "method": "occlusion", "max_new_tokens": 3}
    explanation = client.post("/api/explain", json=asked).json()
    e = GenerationExplanation.from_dict(explanation)
    body = {"explanation": explanation}
    view = client.post("/api/view/output", json=body).json()
    assert [*view["states"]] == ["all", "0", "1", "2"]
    texts = [e.output[token["start"] : token["end"]] for token in view["tokens"]]
    assert texts == [token.text for token in e.tokens]
    for number in range(len(e.tokens)):
        alone = client.post("/api/view/span", json={**body, "first": number, "last": number}).json()
        named = {name: view["states"][str(number)][name] for name in ("low", "high", "shades", "values")}
        assert named == {name: alone[name] for name in named}
        token = client.post("/api/view/token", json={**body, "token": number})
        assert token.json() == json.loads(dump(seen([e.token(number)])))
    assert view["remarks"] == []
    for options in ({"text": "a dull sea"}, {"text": "a dull sea", "output": e.output, "max_new_tokens": None}):
        other = client.post("/api/explain", json={**asked, **options}).json()
        compared = client.post("/api/view/output", json={**body, "beside": other}).json()
        assert {**compared, "remarks": []} == view
        first = GenerationExplanation.from_dict(other)
        before, after = (math.exp(one.log_probability) for one in (first, e))
        changed = [from_to("probability of the answer", before, after)] if "output" in options else []
        own = "Each map has a scale of its own, and so has each token"
        assert compared["remarks"] == [*changed, agreement(first.whole(), e.whole()), own]
    every = client.post("/api/view/span", json={**body, "first": 0, "last": len(e.tokens) - 1}).json()
    assert every["values"] == view["states"]["all"]["values"]
    for path, wrong in (
        ("span", {"first": 1, "last": 0}),
        ("span", {"first": 0, "last": 9}),
        ("token", {"token": 9}),
        ("token", {"token": -1}),
        ("output", {"explanation": explanation | {"tokens": [5]}}),
        ("output", {"explanation": explanation | {"tokens": []}}),
        ("output", {"beside": {"tokens": []}}),
        ("span", {}),
    ):
        refused = client.post(f"/api/view/{path}", json={**body, **wrong})
        assert (refused.status_code, list(refused.json())) == (422, ["error"]), refused.text


def test_an_answer_takes_no_more_passes_than_a_prediction_may_with_a_backward_pass_per_token(
    client: TestClient,
) -> None:
    asked = {"model": "writer", "text": "dull plot " * 14, "method": "sequential_integrated_gradients(steps=400)"}
    refused = client.post("/api/explain", json=asked)
    assert refused.status_code == 422
    assert refused.json()["error"] == (
        "sequential_integrated_gradients(steps=400) needs up to 235,200 passes for 20 output tokens after a prompt of "
        "28 words, and this server allows 5,000: "
        "take another method, fewer samples, a shorter output or unit='sentence'."
    )


def test_a_pair_is_no_prompt(client: TestClient) -> None:
    for path in ("/api/explain", "/api/predict"):
        refused = client.post(path, json={"model": "writer", "text": ["a dull plot", "a story"]})
        assert refused.status_code == 422
        assert refused.json()["error"].startswith("text cannot be ('a dull plot', 'a story'): give a prompt")


SOURCES = {"b": "the old sailor told a story. it was quiet.", "a": "a dull plot at all."}
QUESTION = {"model": "writer", "question": "who told a story?", "sources": SOURCES}
GIVEN = {**QUESTION, "answer": "the sailor told it. a quiet story."}


def test_the_body_of_cite_has_every_keyword_of_cite() -> None:
    keywords = {*inspect.signature(raison.cite).parameters} - {"writer", "judge"}
    assert set(CiteBody.model_fields) == {"model", *keywords}
    defaults = {name: one.default for name, one in inspect.signature(raison.cite).parameters.items()}
    assert all(CiteBody.model_fields[name].default == defaults[name] for name in keywords - {"question"})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"within": "source", "method": "shapley_exact", "draws": 0, "template": "plain"},
        {"statements": [[0, 19]], "removal": "unk", "seed": 3, "template": "{sources} ask: {question}"},
        {"answer": None, "max_new_tokens": 4, "draws": 0},
    ],
)
def test_citations_are_the_librarys(client: TestClient, options: dict[str, object]) -> None:
    body = {**GIVEN, **options}
    found = client.post("/api/cite", json=body)
    assert found.status_code == 200, found.text
    called = {name: value for name, value in body.items() if name not in ("model", "question", "sources")}
    if "statements" in called:
        called["statements"] = [(0, 19)]
    expected = raison.cite(MODELS["writer"], QUESTION["question"], SOURCES, **called)
    assert without_time(found.json()) == without_time(json.loads(expected.to_json()))
    assert Citations.from_dict(found.json()).ids == ("b", "a")
    view = client.post("/api/view/citations", json={"citations": found.json()}).json()
    assert [statement["text"] for statement in view["statements"]] == [one.text for one in expected.statements]
    assert ["".join(piece["text"] for piece in one["pieces"]) for one in view["sources"]] == [
        one.text for one in expected.sources
    ]


def test_an_answer_of_the_models_own_is_as_long_as_the_server_allows() -> None:
    served = ServedModels(MODELS, limits=Limits(new_tokens=20))
    asked = CitationsRequest.read(CiteBody(**QUESTION), served.limits)
    assert asked.citing.max_new_tokens == 20
    assert CitationsRequest.read(CiteBody(**GIVEN), served.limits).citing.max_new_tokens is None
    assert asked.key != CitationsRequest.read(CiteBody(**GIVEN), served.limits).key


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({**GIVEN, "template": "/etc/hostname.toml"}, "unknown template '/etc/hostname.toml'."),
        ({**GIVEN, "template": "plan"}, "unknown template 'plan'. Did you mean 'plain'?"),
        ({**GIVEN, "within": "word"}, "within cannot be 'word': give sentence or source."),
        ({**GIVEN, "statements": [[1]]}, "statements cannot be [1]: give spans"),
        ({**GIVEN, "sources": {}}, "no source given: pass at least one."),
        ({**GIVEN, "sources": {"a": "  "}}, "the source 'a' is empty or blank"),
        ({**GIVEN, "sources": None}, "no source given: pass sources="),
        ({**GIVEN, "sources": {"a": "x" * 20_001}}, "question, sources and answer have 20,"),
        ({**GIVEN, "max_new_tokens": 5}, "max_new_tokens is for the model's own answer"),
        ({**QUESTION, "max_new_tokens": 51}, "max_new_tokens is 51, and this server allows 50."),
        ({**GIVEN, "method": "aml(checkpoint='/etc')"}, "checkpoint names a file or a model"),
        ({**QUESTION, "sources": {str(n): "a dull plot." for n in range(99)}, "draws": 90}, "this needs up to 9,"),
        ({**GIVEN, "draw": 1}, "unknown field 'draw'. Did you mean 'draws'?"),
        ({**GIVEN, "model": WORDS}, "cite explains the output of a generative language model"),
    ],
)
def test_mistakes_of_questions_are_one_line(client: TestClient, body: dict[str, object], line: str) -> None:
    found = client.post("/api/cite", json=body)
    assert (found.status_code, list(found.json())) == (422, ["error"])
    assert found.json()["error"].startswith(line)
