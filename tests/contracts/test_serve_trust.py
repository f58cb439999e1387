"""How far a map of the server's can be trusted: tests of its own text, and audits of its own model."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import raison
from raison.explaining.settings import Settings
from raison.studies.kinds.audit.spec import AuditPlan
from raison.trust.attacks import EmbeddingAttack
from raison.web.component.audits import Trusts
from raison.web.server.served import ServedModels
from raison.web.server.settings import VisibleFolders
from tests.functions import CLASSES, labels, weight
from tests.serving import BERT, WORDS, bert, serving, words
from tests.tiny import build_language_model

MODELS = {
    BERT: bert(),
    WORDS: words(),
    "labels": raison.load(labels, classes=CLASSES, multi_label=True),
    "writer": raison.load(*build_language_model("llama")),
}
ONE = {"model": WORDS, "text": "A good film"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving(ServedModels(MODELS)) as client:
        yield client


def test_a_map_is_checked_by_tests_of_its_own_text(client: TestClient) -> None:
    text = "It's a good film, not a bad one"
    found = client.post("/api/check", json={"model": WORDS, "text": text, "method": "occlusion"}).json()
    e = raison.explain(MODELS[WORDS], text, "occlusion", progress=False)
    order = [e.units[place] for place in e.order()[:3]]
    assert found["removed"] == [unit.text for unit in order]
    [removal] = MODELS[WORDS].removals[:1]
    assert removal in ("ellipsis", "mask", "delete")
    # A weightless unit in the place of another: the value is that of the other weights.
    left = [weight(text) - sum(weight(unit.text) for unit in order[:count]) for count in range(4)]
    sides = [1 / (1 + np.exp(-value if e.target == "positive" else value)) for value in left]
    assert found["remaining"] == pytest.approx(sides)
    assert found["shuffled"]["own"] == pytest.approx(
        raison.evaluate(MODELS[WORDS], e, ["comprehensiveness"], progress=False).metrics[0].summary.mean
    )
    assert found["shuffled"]["p"] <= 0.2
    assert found["shuffled"]["shuffled"] < found["shuffled"]["own"]
    assert found["harmless"] == pytest.approx(
        raison.evaluate(MODELS[WORDS], e, ["harmless_change"], progress=False).metrics[0].summary.mean
    )


def test_a_check_takes_the_explanation_that_was_just_answered() -> None:
    asked: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[one, 1 - one] for one in (1 / (1 + len(text)) for text in texts)]

    body = {"model": "m", "text": "a long film about little", "method": "lime(samples=60)"}
    spent, found = [], []
    for is_explained in (False, True):
        with serving(ServedModels({"m": raison.load(counted, classes=["short", "long"])})) as client:
            e = client.post("/api/explain", json=body).json() if is_explained else None
            asked.clear()
            found.append(client.post("/api/check", json=body).json())
            spent.append(len(asked))
            assert e is None or e["method"] == "lime"
    assert found[0] == found[1]
    assert spent[1] < spent[0] - 20, "each subset of the words is asked once for an explanation"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**ONE, "target": "each"}, 422),
        ({**ONE, "model": "writer"}, 422),
        ({**ONE, "model": "nobody"}, 404),
        ({**ONE, "method": "aml(checkpoint='/etc')"}, 422),
    ],
)
def test_what_cannot_be_checked_is_refused(client: TestClient, body: dict[str, object], status: int) -> None:
    found = client.post("/api/check", json=body)
    assert (found.status_code, list(found.json())) == (status, ["error"])


def test_trust_is_that_of_an_audit_of_this_very_model_only(tmp_path: Path) -> None:
    plan = AuditPlan(randomised=2, changed=2, attacked=2, attack=EmbeddingAttack(steps=2, draws=2))
    audited = raison.audit(
        MODELS[BERT], ["a dull plot", "a quiet end"], ["saliency"], out=tmp_path / "mine", plan=plan, progress=False
    )
    for name, model in (("own", MODELS[BERT]), ("other", MODELS[WORDS])):
        method, out = ("saliency" if name == "own" else "occlusion"), tmp_path / name
        raison.compare(model, ["a dull plot", "a quiet end"], method, "comprehensiveness", out=out, progress=False)
    # The model of the first run is served and audited; that of the second is neither.
    served = ServedModels({BERT: MODELS[BERT], "labels": MODELS["labels"]}, shown=VisibleFolders(runs=tmp_path))
    with serving(served) as client:
        for name, model in (("own", BERT), ("other", None)):
            row = {"run": name, "row": "saliency" if name == "own" else "occlusion", "seed": 0, "number": 0}
            found = client.get("/api/runs/trust", params=row).json()
            assert (found["model"], found["light"]) == (model, audited.methods[0].light if model else None)
        assert client.get("/api/runs/trust", params={**row, "number": 9}).status_code == 404
    trusts = Trusts({BERT: MODELS[BERT]}, tmp_path)
    e = raison.explain(MODELS[BERT], "a dull plot", "saliency", progress=False)
    assert trusts.of(BERT, e)["light"] == audited.methods[0].light
    of_tokens = raison.audit(
        MODELS[BERT], ["a dull plot", "a quiet end"], ["saliency"], out=tmp_path / "first", plan=plan, progress=False,
        settings=Settings(unit="token"),
    )  # fmt: skip
    tokens = raison.explain(MODELS[BERT], "a dull plot", "saliency", unit="token", progress=False)
    for audit, name, one in ((audited, "mine", e), (of_tokens, "first", tokens)):
        found = trusts.of(BERT, one)
        assert str(found["lead"]).startswith(f"The audit {name} of this model")
        assert found["light"] == audit.methods[0].light
    served = ServedModels({BERT: MODELS[BERT], WORDS: MODELS[WORDS]}, shown=VisibleFolders(runs=tmp_path))
    with serving(served) as client:
        for model, method in ((BERT, "saliency"), (BERT, "occlusion"), (WORDS, "occlusion")):
            e = client.post("/api/explain", json={"model": model, "text": "a dull plot", "method": method}).json()
            found = client.post("/api/view/trust", json={"model": model, "explanation": e}).json()
            facts = {fact["name"]: fact["said"] for fact in found["facts"]}
            assert facts["Cut off"] == "nothing"
            assert facts["Sampling error"] == "none: the method does not sample"
            if method == "occlusion":
                assert found["light"] is None
                continue
            [own] = audited.methods
            assert found["light"] == own.light
            assert found["findings"] == [
                {"name": f"{one.question}: {one.light}", "said": one.says} for one in own.evidence
            ]
