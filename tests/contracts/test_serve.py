"""The contract of the server's JSON: what docs/serve.md says, by the library's own answers."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from starlette.testclient import TestClient

import raison
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import dump
from raison.explaining.explain import Options
from raison.methods import CATALOGUE
from raison.report.pages.saving import save
from raison.web.component.exports import TYPES
from raison.web.component.views import seen
from raison.web.server.bodies import ExplainBody
from raison.web.server.served import ServedModels
from raison.web.server.settings import Limits
from tests.functions import CLASSES, TEXTS, labels, overlap, rating
from tests.serving import BERT, WORDS, bert, serving, without_time, words
from tests.tiny import build_language_model

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
MODELS = {
    BERT: bert(),
    WORDS: words(),
    "number": raison.load(rating, classes=["weight"]),
    "labels": raison.load(labels, classes=CLASSES, multi_label=True),
    "pairs": raison.load(overlap, classes=["overlap"], pairs=True),
    "writer": raison.load(*build_language_model("llama")),
}
ONE = {"model": WORDS, "text": "A good film"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving(ServedModels(MODELS)) as client:
        yield client


def test_the_body_has_every_keyword_of_explain() -> None:
    keywords = {*get_type_hints(Options), "method"} - {"progress", "text"}
    assert set(ExplainBody.model_fields) == {"model", "text", *keywords}


def test_the_defaults_are_those_of_explain(client: TestClient) -> None:
    found = client.post("/api/explain", json=ONE)
    assert found.status_code == 200
    assert found.headers["content-type"] == "application/json"
    expected = raison.explain(MODELS[WORDS], ONE["text"], progress=False)
    assert without_time(found.json()) == without_time(json.loads(expected.to_json()))
    assert Explanation.from_json(found.text).scores == expected.scores


@pytest.mark.parametrize(
    ("model", "text", "options"),
    [
        (BERT, "a dull plot", {"method": "deep_lift"}),
        (BERT, "a dull plot", {"method": "kernel_shap(samples=16)", "unit": "token", "seed": 3}),
        (BERT, ["a dull plot", "dull"], {"method": "occlusion", "units": "second"}),
        (BERT, "a dull plot", {"method": "saliency", "target": ["positive", "negative"], "of": "logit"}),
        (BERT, "a dull plot", {"method": "occlusion", "units": {"the end": [2, 6]}, "removal": "delete"}),
        (BERT, "a dull plot. The end.", {"method": "occlusion", "unit": "sentence", "precision": "bfloat16"}),
        (BERT, "a dull plot", {"method": "random(draws=3)", "select": "comprehensiveness"}),
        (WORDS, TEXTS[2], {"budget": 12}),
        (WORDS, TEXTS[2], {"method": "occlusion", "unit": "sentence", "language": "de", "target": 0}),
        ("number", TEXTS[0], {"method": "shapley_sampling(samples=20)"}),
        ("labels", TEXTS[0], {"method": "occlusion", "target": "each", "threshold": 0.2}),
        ("pairs", ["a good film", "bad"], {"method": "occlusion"}),
        ("pairs", ["good", ["a bad film", "quiet"]], {"method": "occlusion", "target": [1, 0]}),
        ("writer", "a dull", {"method": "occlusion", "max_new_tokens": 2, "earlier": True}),
        ("writer", "a dull", {"method": "occlusion", "output": " plot", "contrast": " end"}),
    ],
)
def test_every_keyword_does_what_it_does_in_python(
    client: TestClient, model: str, text: object, options: dict[str, object]
) -> None:
    found = client.post("/api/explain", json={"model": model, "text": text, **options})
    assert found.status_code == 200, found.text
    given, called = _python(text), {name: _python(value) for name, value in options.items()}
    expected = raison.explain(MODELS[model], given, **called, progress=False)
    if isinstance(expected, list):
        assert list(map(without_time, found.json())) == [without_time(json.loads(e.to_json())) for e in expected]
    else:
        assert without_time(found.json()) == without_time(json.loads(expected.to_json()))
    kind = GenerationExplanation if model == "writer" else Explanation
    first = found.json()[0] if isinstance(expected, list) else found.json()
    assert kind.from_dict(first).method == str(options.get("method", "")).partition("(")[0] or options.get("budget")


def _python(value: object) -> object:
    """Lists of JSON as the tuples that a call in Python takes; documents stay a list."""
    if isinstance(value, dict):
        return {name: tuple(span) for name, span in value.items()}
    return tuple(value) if isinstance(value, list) else value


def test_a_chat_is_a_list_of_messages(client: TestClient) -> None:
    chat = [{"role": "user", "content": "a dull plot"}]
    found = client.post("/api/explain", json={"model": "writer", "text": chat, "method": "occlusion"})
    # The tiny model's tokenizer has no template: the library says so, in its own words.
    assert found.status_code == 422
    with pytest.raises(raison.RaisonError) as refused:
        raison.explain(MODELS["writer"], chat, "occlusion", progress=False)
    assert found.json() == {"error": str(refused.value)}


@pytest.mark.parametrize(
    ("model", "text", "expected"),
    [
        (WORDS, "A good film", {"outputs": "classes", "prediction": "positive", "value": None}),
        ("number", "A good film", {"outputs": "number", "prediction": "weight", "value": 1.25}),
        ("labels", "A good film", {"outputs": "labels", "decided": ["negative", "positive"]}),
        ("pairs", ["good", "bad"], {"outputs": "number", "value": -1.5}),
    ],
)
def test_a_prediction_has_the_names_of_an_explanation(
    client: TestClient, model: str, text: object, expected: dict[str, object]
) -> None:
    found = client.post("/api/predict", json={"model": model, "text": text})
    assert found.status_code == 200, found.text
    assert {name: found.json()[name] for name in expected} == expected
    explained = client.post("/api/explain", json={"model": model, "text": text, "method": "occlusion"}).json()
    for name in ("classes", "probabilities", "text", "outputs"):
        assert found.json()[name] == explained[name]


def test_a_writer_writes(client: TestClient) -> None:
    found = client.post("/api/predict", json={"model": "writer", "text": "a dull", "max_new_tokens": 3}).json()
    e = raison.explain(MODELS["writer"], "a dull", "random", max_new_tokens=3, progress=False)
    assert (found["prompt"], found["output"], found["outputs"]) == ("a dull", e.output, "text")


def test_models_say_what_can_be_asked_of_them(client: TestClient) -> None:
    offered = client.get("/api/models").json()
    known = {model["name"]: model for model in offered["models"]}
    assert list(known) == list(MODELS)
    assert known[BERT]["quick"] == "deep_lift"
    assert known[WORDS]["quick"] is None
    assert known["writer"]["outputs"] == "text"
    assert known["pairs"]["strings"] == 2
    assert offered["limits"]["characters"] == Limits().characters
    for name, facts in known.items():
        assert {*facts["methods"], *facts["unable"]} == set(CATALOGUE.names)
        assert not {*facts["methods"]} & {*facts["unable"]}
        assert all(facts["unable"].values()), name
    why = client.post("/api/explain", json={**ONE, "method": "deep_lift"})
    assert why.status_code == 422
    assert known[WORDS]["unable"]["deep_lift"] in why.json()["error"]


def test_methods_are_the_catalogue(client: TestClient) -> None:
    rows = {row["name"]: row for row in client.get("/api/methods").json()["methods"]}
    assert list(rows) == list(CATALOGUE.names)
    assert rows["kernel_shap"]["settings"]["samples"] == raison.methods.KernelShap().samples
    assert rows["occlusion"]["forwards"] == CATALOGUE.create("occlusion").cost(20).forwards
    assert rows["random"]["about"].startswith("Independent standard normal scores")


def test_what_the_page_paints_is_the_components_view(client: TestClient) -> None:
    explanation = client.post("/api/explain", json=ONE).json()
    found = client.post("/api/view", json={"explanations": [explanation] * 2})
    assert found.status_code == 200
    assert found.json() == json.loads(dump(seen([Explanation.from_dict(explanation)] * 2)))
    for wrong in ([], [explanation] * 5, [{}], [explanation | {"scores": [1]}], [5], "a"):
        refused = client.post("/api/view", json={"explanations": wrong})
        assert (refused.status_code, list(refused.json())) == (422, ["error"])


@pytest.mark.parametrize("kind", TYPES)
def test_a_file_is_what_save_writes(client: TestClient, tmp_path: Path, kind: str) -> None:
    first, second = (
        Explanation.from_json(client.post("/api/explain", json={**ONE, "seed": seed}).text) for seed in range(2)
    )
    for results in ([first], [first, second]):
        asked = {"results": [e.to_dict() for e in results], "kind": kind}
        found = client.post("/api/view/file", json=asked)
        path = tmp_path / f"e.{kind}"
        if len(results) > 1 and kind not in ("html", "json"):
            assert (found.status_code, list(found.json())) == (422, ["error"])
            continue
        save(results[0] if len(results) == 1 else results, path)
        assert (found.json()["name"], found.json()["type"]) == (f"explanation.{kind}", TYPES[kind])
        assert b64decode(found.json()["content"]) == path.read_bytes()


@pytest.mark.parametrize("asked", [{"kind": "svg"}, {"kind": "exe"}, {"results": [{}]}, {"results": []}])
def test_files_that_cannot_be_made_are_refused_in_one_line(client: TestClient, asked: dict[str, object]) -> None:
    found = client.post("/api/view/file", json={"results": [{"tokens": 5}], "kind": "html", **asked})
    assert (found.status_code, list(found.json())) == (422, ["error"])
    assert "\n" not in found.json()["error"]


def test_equal_requests_are_answered_once(client: TestClient) -> None:
    asked = {**ONE, "method": "occlusion", "seed": 77}
    first, again = (client.post("/api/explain", json=asked) for _ in range(2))
    assert first.headers["server-timing"].startswith("wait;dur=")
    assert again.headers["server-timing"] == "kept"
    assert first.content == again.content
    other = client.post("/api/explain", json={**asked, "method": " occlusion( ) "})
    assert other.headers["server-timing"] == "kept"


@pytest.mark.parametrize(
    ("path", "body", "status", "line"),
    [
        ("/api/explain", {"text": "a"}, 422, "model is missing: give the name of a model of GET /api/models."),
        ("/api/explain", {**ONE, "model": "demo/sst2"}, 404, "unknown model 'demo/sst2'."),
        ("/api/explain", {**ONE, "methods": "auto"}, 422, "unknown field 'methods'. Did you mean 'method'?"),
        (
            "/api/explain",
            {**ONE, "method": "kernelshap"},
            422,
            "unknown method 'kernelshap'. Did you mean 'kernel_shap'?",
        ),
        ("/api/explain", {**ONE, "text": 5}, 422, "text cannot be 5: give a string"),
        ("/api/explain", {**ONE, "text": "  "}, 422, "the text is empty or blank"),
        ("/api/explain", {**ONE, "text": ["a", "b", "c", "d"]}, 422, "text cannot be ['a', 'b', 'c', 'd']: give"),
        ("/api/explain", {**ONE, "seed": -1}, 422, "seed cannot be -1: give a whole number"),
        ("/api/explain", {**ONE, "seed": "1"}, 422, "seed cannot be '1': give a whole number"),
        ("/api/explain", {**ONE, "unit": "words"}, 422, "unknown unit 'words'. Did you mean 'word'?"),
        ("/api/explain", {**ONE, "target": "great"}, 422, "unknown label 'great'."),
        ("/api/explain", {**ONE, "text": "x" * 20_001}, 422, "the text has 20,001 characters, and this server reads"),
        ("/api/explain", {**ONE, "max_new_tokens": 51}, 422, "max_new_tokens is 51, and this server allows 50."),
        (
            "/api/explain",
            {**ONE, "method": "kernel_shap(samples=1000000000)"},
            422,
            "samples is 1e+09, and this server allows 5,000.",
        ),
        (
            "/api/explain",
            {**ONE, "text": "dull plot " * 14, "method": "sequential_integrated_gradients(steps=400)", "model": BERT},
            422,
            "sequential_integrated_gradients(steps=400) needs up to",
        ),
        ("/api/explain", {**ONE, "method": "aml(checkpoint='/etc')"}, 422, "checkpoint names a file or a model"),
        ("/api/explain", {**ONE, "method": "reagent(filler='gpt2')"}, 422, "filler names a file or a model"),
        (
            "/api/explain",
            {**ONE, "method": "ensemble(methods=('saliency', 'aml(check' 'point=\"/etc\")'))"},
            422,
            "checkpoint names a file or a model",
        ),
        ("/api/explain", {**ONE, "select": "simulatability(student='x')"}, 422, "student names a file or a model"),
        ("/api/predict", {**ONE, "method": "auto"}, 422, "unknown field 'method'."),
    ],
)
def test_mistakes_are_one_line(client: TestClient, path: str, body: dict[str, object], status: int, line: str) -> None:
    found = client.post(path, json=body)
    assert (found.status_code, list(found.json())) == (status, ["error"])
    assert found.json()["error"].startswith(line)
    assert "\n" not in found.json()["error"]


@pytest.mark.parametrize("path", ["/api/explain", "/api/predict"])
def test_the_error_of_a_text_that_is_too_long_says_that_it_can_be_cut_off(client: TestClient, path: str) -> None:
    asked = {"model": BERT, "text": "long " * 200}
    found = client.post(path, json=asked)
    assert found.status_code == 422
    assert found.json() == {"error": found.json()["error"], "truncatable": True}
    assert client.post(path, json={**asked, "truncate": True}).json()["truncated"] > 0


@pytest.mark.parametrize("path", ["/healthz", "/", "/api/models"])
def test_head_is_answered_like_get(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.headers["content-length"]) == (200, get.headers["content-length"])


def test_what_is_no_json_is_said_so(client: TestClient) -> None:
    kind = {"content-type": "application/json"}
    for body in (b"", b"{", b"[" * 5000, b"\xff", b'{"model": NaN'):
        assert client.post("/api/explain", content=body, headers=kind).status_code in (400, 422)
    assert client.post("/api/explain", content=b"model=a").status_code == 415
    assert client.get("/api/explain").status_code == 405
    assert client.get("/api/nothing").json() == {"error": "Not Found."}


def test_openapi_describes_what_there_is(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) == {
        "/api/explain",
        "/api/predict",
        "/api/view",
        "/api/view/file",
        "/api/view/trust",
        "/api/check",
        "/api/view/output",
        "/api/view/span",
        "/api/view/token",
        "/api/view/citations",
        "/api/cite",
        "/api/models",
        "/api/methods",
        "/api/runs",
        "/api/runs/texts",
        "/api/runs/slices",
        "/api/runs/words",
        "/api/runs/explanation",
        "/api/runs/trust",
        "/healthz",
        "/metrics",
    }
    body = described["components"]["schemas"]["ExplainBody"]
    assert set(body["required"]) == {"model", "text"}
    assert body["additionalProperties"] is False
    assert all(field.get("description") or name == "model" for name, field in body["properties"].items())


def test_health_and_numbers_have_no_text(client: TestClient) -> None:
    client.post("/api/explain", json={**ONE, "text": "a very secret film"})
    assert client.get("/healthz").json() == {"status": "ok"}
    told = client.get("/metrics").text
    assert 'raison_requests_total{path="/api/explain",status="200"}' in told
    assert "secret" not in told


def test_a_batch_gives_what_each_text_gives_alone() -> None:
    """Requests that come together are one call; the scores are those of a call for each, within rounding."""
    texts = ["a dull plot", "dull", "the end is good", "a quiet end", "the the the plot is a dull end"]
    served = ServedModels({BERT: MODELS[BERT]})
    asked = [{"model": BERT, "text": text, "method": "deep_lift"} for text in texts]
    from raison.web.server.calls import ExplanationRequest

    read = [ExplanationRequest.read(ExplainBody(**body), served.limits) for body in asked]
    assert all(one.joins(read[0]) for one in read)
    answers = [json.loads(answer) for answer in read[0].run(MODELS[BERT], read)]
    for text, answer in zip(texts, answers, strict=True):
        expected = raison.explain(MODELS[BERT], text, "deep_lift", progress=False)
        np.testing.assert_allclose(answer["scores"], expected.scores, **CLOSE)
        assert answer["units"] == [unit.to_dict() for unit in expected.units]


def test_the_limit_of_passes_is_that_of_rankings_too() -> None:
    served = ServedModels({"pairs": MODELS["pairs"]}, limits=Limits(passes=100))
    long = " ".join(f"word{number}" for number in range(200))
    with serving(served) as client:
        for text in (["q", long], ["q", [long, "b"]], ["q", ["a", "b", long]], ["q", ["a"] * 99]):
            answer = client.post("/api/explain", json={"model": "pairs", "text": text, "method": "occlusion"})
            assert answer.status_code == 422, text
            assert "this server allows 100" in answer.json()["error"]
        short = {"model": "pairs", "text": ["q", ["a", "b"]], "method": "occlusion"}
        assert client.post("/api/explain", json=short).status_code == 200


def test_three_strings_are_a_query_with_two_documents() -> None:
    """As in Python, where one such text is given in a list; a classifier says that it does not rank."""
    triple = ["a dull plot", "the end is good", "a quiet end"]
    with serving(ServedModels({"pairs": MODELS["pairs"], BERT: MODELS[BERT]})) as client:
        body = {"model": "pairs", "text": triple, "method": "occlusion"}
        answer = client.post("/api/explain", json=body)
        assert answer.status_code == 200, answer.text
        [expected] = raison.explain(MODELS["pairs"], [tuple(triple)], "occlusion", progress=False)
        np.testing.assert_allclose(answer.json()["scores"], expected.scores, **CLOSE)
        assert client.post("/api/predict", json={"model": "pairs", "text": triple}).status_code == 200
        assert client.post("/api/check", json=body).status_code == 200
        spans = {**body, "units": [[0, 6, 0], [0, 7, 1]]}
        assert len(client.post("/api/explain", json=spans).json()["units"]) == 2
        for path in ("/api/explain", "/api/check", "/api/predict"):
            asked = {"model": BERT, "text": triple} | ({} if path == "/api/predict" else {"method": "occlusion"})
            refused = client.post(path, json=asked)
            assert refused.status_code == 422, refused.text
            assert "rank" in refused.json()["error"]


def test_requests_of_other_settings_do_not_join() -> None:
    from raison.web.server.calls import ExplanationRequest, PredictionRequest

    limits = Limits()
    one = ExplanationRequest.read(ExplainBody(**ONE), limits)
    for other in ({"seed": 1}, {"unit": "token"}, {"method": "occlusion"}, {"target": 1}, {"units": [[0, 1]]}):
        assert not one.joins(ExplanationRequest.read(ExplainBody(**ONE, **other), limits))
    prediction = PredictionRequest.read(ExplainBody(**ONE), limits)
    assert not one.joins(prediction)
    assert one.key != prediction.key
    assert one.joins(ExplanationRequest.read(ExplainBody(model=WORDS, text="another"), limits))
