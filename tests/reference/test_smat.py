"""SMaT's explainer written out: scores before their softmax, one row and one head at a time, in float64."""

import math
from pathlib import Path

import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.models.adapters.classifier import Classifier
from raison.models.derived.attention_explainer import Design, HeadShape, new_explainer
from raison.models.derived.trained_attention import find
from raison.numerics.attention.interpretable import NORMS
from tests.attention_explainers import map_of, random_explainer, untrained_attention
from tests.reference.test_ivra import CLOSE, FAMILIES, TEXTS, normalised
from tests.tiny import LANGUAGE_MODELS, TINY

WINDOW = 4
"""Tokens that a token of the tiny Mistral sees, itself included."""


def seen(name: str, query: int, key: int) -> bool:
    """Whether a token of a text without padding attends to another, by the family's documentation."""
    if name not in LANGUAGE_MODELS:
        return True
    return key <= query and (name != "mistral" or query - key < WINDOW)


def literal(model: Classifier, name: str, text: str, mix: list[float], design: Design) -> list[float]:
    encoding = model.encode([text], "token")
    with torch.no_grad(), model.ask(ReadableAttention).tap(record=("query", "key")) as tap:
        model.ask(Passes).logits(encoding)
    tokens = encoding.lengths[0]
    shares = normalised(mix, "sparsemax")
    mixed = [0.0] * tokens
    number = 0
    for layer in range(len(tap.query)):
        queries, keys = tap.query[layer][0].double().tolist(), tap.key[layer][0].double().tolist()
        for query, key in zip(queries, keys, strict=True):
            for m in range(tokens):
                rows = [n for n in range(tokens) if seen(name, n, m)]
                products = [math.fsum(a * b for a, b in zip(query[n], key[m], strict=True)) for n in rows]
                mixed[m] += shares[number] * math.fsum(products) / math.sqrt(len(key[m])) / len(rows)
            number += 1
    explained = [design.over == "tokens" or bool(one) for one in encoding.scored[0].tolist()]
    found = iter(normalised([score for score, there in zip(mixed, explained, strict=True) if there], design.norm))
    return [next(found) if there else 0.0 for there in explained]


@pytest.mark.parametrize(
    ("name", "norm", "over"),
    [
        *((name, norm, "units") for name in FAMILIES for norm in NORMS),
        ("bert", "softmax", "tokens"),
        ("mistral", "sparsemax", "tokens"),
    ],
)
def test_equals_the_formula(name: str, norm: str, over: str) -> None:
    model, design = raison.load(*TINY[name]()), Design("smat", norm, over=over)
    encoding = model.encode(TEXTS, "token")
    explainer = random_explainer(model, encoding, design)
    mix = explainer.state_dict()["heads"].double().tolist()
    found = map_of(model, encoding, explainer, design)
    for row, (text, length) in enumerate(zip(TEXTS, encoding.lengths, strict=True)):
        expected = literal(model, name, text, mix, design)
        torch.testing.assert_close(found[row, :length].double(), torch.tensor(expected).double(), **CLOSE)
        assert not found[row, length:].any()


@pytest.mark.parametrize("name", ["bert", "mistral"])
def test_the_method_gives_the_shares_of_the_units(name: str, tmp_path: Path) -> None:
    model, design = raison.load(*TINY[name]()), Design("smat")
    untrained_attention(model, tmp_path, design)
    mix = find(model, str(tmp_path), "smat").explainer.state_dict()["heads"].double().tolist()
    for explanation in raison.explain(model, list(TEXTS), f"smat(checkpoint={str(tmp_path)!r})", unit="token"):
        expected = torch.tensor([literal(model, name, explanation.text, mix, design)])
        sums = model.encode([explanation.text], "token").sum_to_units(expected)[0]
        assert explanation.scores == pytest.approx(sums.tolist(), rel=1e-4, abs=1e-6)
        assert (explanation.evaluations, explanation.gradients) == (1, 0)


def test_heads_start_with_equal_shares() -> None:
    state = new_explainer(HeadShape(2, 3, 4), Design("smat")).state_dict()
    assert set(state) == {"heads"}
    assert state["heads"].tolist() == pytest.approx([1 / 6] * 6)


def test_multiples_are_shares_beside_equal_ones() -> None:
    mixture = new_explainer(HeadShape(2, 3, 4), Design("smat"))
    assert mixture.multiples().heads == [[1.0] * 3] * 2
    with torch.no_grad():
        mixture.heads.copy_(torch.tensor([0.0, 0.9, 0.5, -3.0, 0.0, 0.1]))
    # Sparsemax of these: 0.7 for the second, 0.3 for the third, nothing for the others.
    assert mixture.multiples().heads == [[0.0, 4.2, 1.8], [0.0, 0.0, 0.0]]
