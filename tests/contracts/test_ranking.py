"""Rankings: why one document comes before another, against differences of the plain model's own numbers."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.method import Property
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.judging.estimate import estimate
from raison.methods import CATALOGUE
from raison.methods.saliency import Saliency
from raison.models.adapters.classifier import Classifier
from raison.report.explanations.html import page
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from raison.trust.attack_descent import descend, disturb
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attack_start import AlikeAttacks, AttackedText, started, top_counts
from tests.contracts.test_methods import SHORTER, fingerprint
from tests.contracts.test_numbers import TRIED, refused
from tests.tiny import build, build_embedder

QUERY = "who told a story ?"
DOCUMENTS = ["a dull plot", "the old sailor told a story about the sea", "the end is good"]
TRIPLE = (QUERY, DOCUMENTS[1], DOCUMENTS[2])
SCORERS = ("bert", "deberta_v2", "roberta", "gpt2", "llama", "t5")


def shared(pairs: list[tuple[str, str]]) -> list[float]:
    return [len(set(a.split()) & set(b.split())) + 0.1 * len(b.split()) for a, b in pairs]


@cache
def scorer(family: str) -> LanguageModel:
    if family == "function":
        return raison.load(shared, classes=["shared"], pairs=True)
    if family == "embedder":
        return raison.load(*build_embedder("bert"), similarity="cosine")
    return raison.load(*build(family, ("relevance",)))


def score(model: LanguageModel, pair: tuple[str, str]) -> float:
    """The model's own number of a pair, by itself."""
    return raison.explain(model, pair, "random", progress=False).value_full


def without(texts: tuple[str, ...], segment: int, words: str) -> tuple[str, ...]:
    """The texts with the first of some words deleted in one of them, and the white space before it."""
    return tuple(
        " ".join(text.split(" ")).replace(f" {words}", "", 1) if number == segment else text
        for number, text in enumerate(texts)
    )


@pytest.mark.parametrize("family", [*SCORERS, "function", "embedder"])
def test_the_value_is_the_difference_of_two_numbers(family: str) -> None:
    model = scorer(family)
    e = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", target=(1, 2), progress=False)
    numbers = [score(model, (QUERY, document)) for document in DOCUMENTS]
    assert e.value_full == pytest.approx(numbers[1] - numbers[2], abs=1e-5)
    assert abs(numbers[1] - numbers[2]) > 1e-3, "a model that ignores its documents would pass"
    assert e.notes["ranking"] == pytest.approx(numbers, abs=1e-5)
    assert (e.text, e.target, e.outputs) == (TRIPLE, "document 2 before document 3", "number")
    assert [unit.segment for unit in e.units] == sorted(unit.segment for unit in e.units)
    assert {unit.segment for unit in e.units} == {0, 1, 2}
    assert Explanation.from_json(e.to_json()) == e
    turned = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", target=(2, 1), progress=False)
    assert turned.value_full == pytest.approx(-e.value_full, abs=1e-6)
    places = sorted(range(3), key=lambda number: -numbers[number])
    usual = raison.explain(model, (QUERY, DOCUMENTS), "random", progress=False)
    assert usual.target == f"document {places[0] + 1} before document {places[1] + 1}"


@pytest.mark.parametrize("family", ["bert", "gpt2", "embedder", "function"])
def test_a_word_of_the_query_is_removed_beside_both_documents(family: str) -> None:
    model = scorer(family)
    e = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", target=(1, 2), removal="delete", progress=False)
    for word, segment in ((" story", 0), (" sailor", 1), (" end", 2)):
        [number] = [n for n, unit in enumerate(e.units) if (unit.text, unit.segment) == (word.strip(), segment)]
        query, first, second = without(TRIPLE, segment, word.strip())
        changed = score(model, (query, first)) - score(model, (query, second))
        assert e.scores[number] == pytest.approx(e.value_full - changed, abs=1e-5)


@pytest.mark.parametrize("family", [*SCORERS, "embedder"])
def test_embeddings_and_batches_change_nothing(family: str) -> None:
    model = scorer(family).ranker
    assert isinstance(model, Classifier)
    texts = [TRIPLE, (QUERY, DOCUMENTS[0], DOCUMENTS[1]), ("what ?", "dull", "a modest story")]
    encoding = model.encode(texts)
    with torch.no_grad():
        own = model.ask(Passes).logits(encoding)
        given = model.ask(Passes).logits(encoding, model.ask(WordEmbeddings).embed(encoding))
        alone = torch.cat([model.ask(Passes).logits(model.encode([text])) for text in texts])
    torch.testing.assert_close(given, own, atol=1e-5, rtol=0)
    torch.testing.assert_close(alone, own, atol=1e-5, rtol=0)
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    for removal in model.removals:
        torch.testing.assert_close(torch.cat(model.masked_logits(encoding, keeps, removal)), own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", CATALOGUE.names)
@pytest.mark.parametrize("family", ["bert", "embedder", "function"])
def test_every_method_explains_it_or_says_why_not(family: str, name: str) -> None:
    model, method = scorer(family), CATALOGUE.create(SHORTER.get(name, name))
    before = fingerprint(model) if isinstance(model, Classifier) else None
    text = ("who ?", ["dull", "a story"])
    if refused(model.ranker, method):
        with pytest.raises(RaisonError):
            raison.explain(model, text, method, progress=False)
    else:
        e = raison.explain(model, text, method, progress=False)
        assert np.isfinite(e.scores).all()
        if Property.COMPLETE in method.properties:
            assert e.completeness_gap == pytest.approx(e.notes.get("completeness_gap", 0.0), abs=1e-3)
    assert before is None or fingerprint(model) == before


def test_gradients_of_the_query_are_those_of_both_passes() -> None:
    model = scorer("bert")
    e = raison.explain(model, (QUERY, DOCUMENTS), "input_x_gradient", target=(1, 2), progress=False)
    first, second = (
        raison.explain(model, (QUERY, document), "input_x_gradient", progress=False) for document in DOCUMENTS[1:]
    )
    words = len(QUERY.split())
    query = np.array(first.scores[:words]) - np.array(second.scores[:words])
    expected = [*query, *first.scores[words:], *(-np.array(second.scores[words:]))]
    np.testing.assert_allclose(e.scores, expected, atol=1e-6)


def test_metrics_comparisons_and_lists() -> None:
    model = scorer("bert")
    rankings = [(QUERY, DOCUMENTS), ("what ?", DOCUMENTS[:2])]
    found = raison.explain(model, rankings, "occlusion", target=(0, 1), progress=False)
    assert [e.target for e in found] == ["document 1 before document 2"] * 2
    metrics = ["comprehensiveness", "sufficiency", "leave_one_out_correlation"]
    alone = raison.evaluate(model, found, metrics, progress=False)
    turned = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", target=(1, 0), progress=False)
    whole = f"comprehensiveness(share=1.0, removal='{turned.removal}')"
    [judged] = raison.evaluate(model, turned, [whole], progress=False).metrics[0].values
    assert judged == pytest.approx(turned.value_full - turned.value_empty, abs=1e-5)
    table = raison.compare(model, [e.text for e in found], ["occlusion"], metrics, progress=False)
    for metric in metrics:
        assert table["occlusion"][metric].values == pytest.approx(alone[metric].values, abs=1e-6)
    side = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", target=(1, 2), units="second", progress=False)
    assert {unit.segment for unit in side.units} == {1}
    spans = {"query": (0, 3), "document": (0, 2, 1)}
    one = raison.explain(model, (QUERY, DOCUMENTS), "occlusion", units=spans, progress=False)
    assert [unit.name for unit in one.units] == ["query", "document"]
    [listed] = raison.explain(model, [(QUERY, DOCUMENTS)], "occlusion", units=[spans], progress=False)
    assert (listed.units, listed.scores) == (one.units, one.scores)


@pytest.mark.parametrize("family", ["bert", "embedder", "function"])
def test_of_several_documents_the_leading_two_are_compared(family: str, tmp_path: Path) -> None:
    model = scorer(family)
    rankings = [(QUERY, DOCUMENTS), ("what is dull ?", DOCUMENTS[:2])]
    leading = []
    for query, documents in rankings:
        first, second, *_ = sorted(documents, key=lambda document: -score(model, (query, document)))
        leading.append((query, first, second))
    metrics = ["comprehensiveness", "sufficiency"]
    found = raison.compare(model, rankings, "occlusion", metrics, out=tmp_path / "run", progress=False)
    expected = raison.compare(model, leading, "occlusion", metrics, progress=False)
    for metric in metrics:
        assert found["occlusion"][metric].values == expected["occlusion"][metric].values
    again = raison.compare(model, rankings, "occlusion", metrics, out=tmp_path / "run", progress=False)
    assert again.to_json() == found.to_json()
    audited = raison.audit(model, rankings, "occlusion", out=tmp_path / "audit", plan=TRIED, progress=False)
    aopc = "aopc_comprehensiveness"
    alone = raison.compare(model, leading, "occlusion", aopc, progress=False)["occlusion"]
    row = next(row for row in audited.table.rows if row.method == "occlusion")
    assert row[aopc].values == pytest.approx(alone[aopc].values, abs=1e-5)
    whole = estimate(model, rankings, "occlusion", metrics)
    assert whole.total_forwards == estimate(model, leading, "occlusion", metrics).total_forwards


@pytest.mark.parametrize("family", ["bert", "embedder", "function"])
def test_an_audit_of_rankings(family: str, tmp_path: Path) -> None:
    texts = [TRIPLE, (QUERY, DOCUMENTS[0], DOCUMENTS[1]), ("what is dull ?", DOCUMENTS[0], DOCUMENTS[2])]
    methods = ["occlusion"] if family == "function" else ["occlusion", "saliency"]
    found = raison.audit(scorer(family), texts, methods, out=tmp_path / "out", plan=TRIED, progress=False)
    assert found.progress[0] == found.progress[1]
    alone = raison.compare(scorer(family), texts, "occlusion", "aopc_comprehensiveness", progress=False)
    for method in ("occlusion", "random"):
        row = next(row for row in found.table.rows if row.method == method)
        assert row["aopc_comprehensiveness"].values == pytest.approx(
            alone[method]["aopc_comprehensiveness"].values, abs=1e-5
        )
    if family != "function":
        assert "changes the score (document 1 before document 2) by" in found["saliency"]["attacks"].says


def test_an_attack_changes_the_query_beside_both_documents_alike() -> None:
    model = scorer("bert").ranker
    batch = prepare(model, [TRIPLE, ("what ?", "dull", "a modest story")], Settings())
    plan = EmbeddingAttack(epsilon=1.0, relative=True, steps=3, optimiser="sign", draws=3)
    rows = tuple(AttackedText(text, plan) for text in range(2))
    _, start = started(AlikeAttacks(batch, Saliency(), rows), top_counts(batch, [plan]), 0.1)
    rngs = [np.random.default_rng(0) for _ in rows]
    for change in (descend(start, plan).change, disturb(start, plan, torch.full((2,), 0.1), rngs).change):
        for row in range(2):
            ids, units = batch.encoding.input_ids[row], batch.encoding.unit_ids[row]
            words = [unit for unit, part in enumerate(batch.encoding.units[row]) if part.segment == 0]
            for unit in words:
                places = (units == unit).nonzero()[:, 0].tolist()
                first, second = places[: len(places) // 2], places[len(places) // 2 :]
                assert ids[first].tolist() == ids[second].tolist()
                torch.testing.assert_close(change[row, first], change[row, second], atol=0, rtol=0)
    assert float(descend(start, plan).change.abs().max()) > 0


def test_views_name_the_documents() -> None:
    e = raison.explain(scorer("bert"), (QUERY, DOCUMENTS), "occlusion", target=(1, 2), progress=False)
    shown, markup = plain(explanation_text(e)), page(e)
    assert shown.startswith("Ranking    document 2 before document 3 by ")
    for text in (shown.lower(), markup.lower()):
        for heading in ("query", "document 2", "document 3"):
            assert heading in text
    assert "%" not in shown


@pytest.mark.parametrize(
    "text",
    [
        (QUERY, ["one"]),
        (QUERY, []),
        (QUERY, ["one", 2]),
        (QUERY, ["one", " "]),
        (QUERY, ("one", "two")),
        [(QUERY, ["a", "b"]), "c"],
    ],
)
def test_what_is_no_ranking_is_refused(text: object) -> None:
    with pytest.raises(InputError):
        raison.explain(scorer("bert"), text, "occlusion", progress=False)


@pytest.mark.parametrize("taken", [iter, pd.Series, lambda rankings: (one for one in rankings)])
def test_rankings_may_be_a_column_or_come_one_by_one(taken: Callable[[object], object]) -> None:
    rankings = [(QUERY, DOCUMENTS), ("what is dull ?", DOCUMENTS[:2])]
    expected = raison.explain(scorer("bert"), rankings, "random", progress=False)
    found = raison.explain(scorer("bert"), taken(rankings), "random", progress=False)
    assert [(e.target, e.scores) for e in found] == [(e.target, e.scores) for e in expected]
    compared = [
        raison.compare(scorer("bert"), texts, "random", "comprehensiveness", progress=False)["random"]
        for texts in (rankings, taken(rankings))
    ]
    assert compared[0]["comprehensiveness"].values == compared[1]["comprehensiveness"].values


def test_texts_that_come_one_by_one_are_no_rankings() -> None:
    texts = [(QUERY, document) for document in DOCUMENTS]
    expected = raison.explain(scorer("bert"), texts, "random", progress=False)
    found = raison.explain(scorer("bert"), iter(texts), "random", progress=False)
    assert [(e.target, e.scores) for e in found] == [(e.target, e.scores) for e in expected]


def test_documents_may_be_numbered_by_numpy() -> None:
    first, second = np.argsort([0.3, 0.1, 0.2])[:2]
    found = raison.explain(scorer("bert"), (QUERY, DOCUMENTS), "random", target=(first, second), progress=False)
    assert found.target == "document 2 before document 3"


@pytest.mark.parametrize("target", [(0, 0), (0, 3), (True, False), 1, "document 1", (0, 1, 2), (-1, 0)])
def test_another_target_is_refused(target: object) -> None:
    with pytest.raises(InputError, match="two different documents"):
        raison.explain(scorer("bert"), (QUERY, DOCUMENTS), "occlusion", target=target, progress=False)


def test_models_of_classes_rank_nothing() -> None:
    for model in (raison.load(*build("bert")), raison.load(lambda texts: [1.0] * len(texts), classes=["a"])):
        with pytest.raises(UnsupportedError, match="does not rank documents"):
            raison.explain(model, (QUERY, DOCUMENTS), "occlusion", progress=False)


def test_the_command_line_ranks(tmp_path: object) -> None:
    model = scorer("bert")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    documents = [part for document in DOCUMENTS for part in ("--document", document)]
    arguments = ["explain", QUERY, *documents, "--model", str(tmp_path), "--method", "occlusion", "--target", "1,2"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "document 2 before document 3 by" in done.output


def test_rankings_of_a_file_are_compared(tmp_path: Path) -> None:
    """And parts of its texts, where the file names them."""
    model, tokenizer = build("bert", ("rating",))
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"query": QUERY, "document": DOCUMENTS[a], "other_document": DOCUMENTS[b]} for a, b in ((1, 2), (0, 1))]
    file = tmp_path / "rankings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = ["compare", "--model", str(tmp_path / "model"), "--data", str(file), "--methods", "occlusion", "--json"]
    found = json.loads(CliRunner().invoke(app, [*asked, "--metrics", "comprehensiveness"]).stdout)
    loaded = raison.load(tmp_path / "model")
    triples = [(QUERY, DOCUMENTS[1], DOCUMENTS[2]), (QUERY, DOCUMENTS[0], DOCUMENTS[1])]
    expected = raison.compare(loaded, triples, "occlusion", "comprehensiveness", progress=False)
    assert [row["metrics"] for row in found["rows"]] == [
        row["metrics"] for row in json.loads(expected.to_json())["rows"]
    ]
    parts = [row | {"units": {"query": [0, 3], "document": [2, 6, 1]}} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in parts), encoding="utf-8")
    ranked = raison.data.load(file).parted
    assert raison.explain(loaded, ranked[0], "occlusion").units[1].name == "document"
    told = CliRunner().invoke(app, [*asked, "--metrics", "comprehensiveness", "--unit", "part"])
    assert told.exit_code == 0, told.output
    classifier, _ = build("bert")
    classifier.save_pretrained(tmp_path / "classifier")
    tokenizer.save_pretrained(tmp_path / "classifier")
    refusal = CliRunner().invoke(app, [*asked[:2], str(tmp_path / "classifier"), *asked[3:]])
    assert isinstance(refusal.exception, UnsupportedError)
    assert "does not rank documents" in str(refusal.exception)
