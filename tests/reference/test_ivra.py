"""IvRA's module against equations 1 to 5 of its paper, written out: loops over layers, heads and tokens, in float64."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsupportedError
from raison.methods.ivra import Ivra
from raison.models.adapters.classifier import Classifier
from raison.models.derived.attention_explainer import FORMS, Design, HeadShape, Multiples, new_explainer, places_of
from raison.models.derived.trained_attention import find
from raison.numerics.attention.interpretable import NORMS, Coefficients
from tests.attention_explainers import (
    PAIRS,
    map_of,
    random_explainer,
    span_adapter,
    untrained_attention,
)
from tests.conftest import ALL
from tests.tiny import ANSWERING, ENCODER_DECODERS, LANGUAGE_MODELS, TAPPED, TINY

TEXTS = (
    "a dull plot, but the ending is good",
    "a quiet film",
    "nobody believed the old sailor, and the music was terrible!",
)
FAMILIES = ("bert", *LANGUAGE_MODELS)
# The head of an encoder-decoder reads the decoder: the encoder's attention is not offered.
READABLE = [name for name in TAPPED if name not in ENCODER_DECODERS]
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
DESIGNS = tuple(Design(form, norm, over=over) for form, norm, over in product(FORMS, NORMS, ("units", "tokens")))
Vector = Sequence[float]


def normalised(scores: Vector, norm: str) -> list[float]:
    """NORM of a list of numbers, sparsemax by sorting (Martins and Astudillo 2016, algorithm 1)."""
    if norm == "softmax":
        greatest = max(scores)
        weights = [math.exp(score - greatest) for score in scores]
        return [weight / math.fsum(weights) for weight in weights]
    ordered, cumulated, threshold = sorted(scores, reverse=True), 0.0, 0.0
    for rank, score in enumerate(ordered, 1):
        cumulated += score
        if 1 + rank * score > cumulated:
            threshold = (cumulated - 1) / rank
    return [max(0.0, score - threshold) for score in scores]


def dot(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def grouped(scores: list[list[float]], norm: str) -> list[float]:
    """NORM over all groups and tokens together, summed over the groups."""
    flat = normalised([score for row in scores for score in row], norm)
    width = len(scores[0])
    return [math.fsum(flat[group * width + token] for group in range(len(scores))) for token in range(width)]


def literal(model: Classifier, text: str, coefficients: Coefficients, norm: str, over: str) -> list[float]:
    """r of one text alone, one number per token."""
    encoding = model.encode([text], "token")
    with torch.no_grad(), model.ask(ReadableAttention).tap(record=("query", "key")) as tap:
        model.ask(Passes).logits(encoding)
    tokens = encoding.lengths[0]
    explained = [over == "tokens" or bool(encoding.scored[0, token]) for token in range(tokens)]
    omega_q, omega_k, lambdas, etas = (
        value.double().tolist()
        for value in (coefficients.query, coefficients.key, coefficients.heads, coefficients.layers)
    )
    layers = []
    for layer in range(len(tap.query)):
        queries, keys = tap.query[layer][0].double().tolist(), tap.key[layer][0].double().tolist()
        heads = []
        for head in range(len(queries)):
            weighed_q = [[w * q for w, q in zip(omega_q[layer][head], row, strict=True)] for row in queries[head]]
            weighed_k = [[w * k for w, k in zip(omega_k[layer][head], row, strict=True)] for row in keys[head]]
            # Equations 1 and 2.
            q = [normalised(row, norm) for row in weighed_q]
            k = [normalised(row, norm) for row in weighed_k]
            # Equation 4, the product of each pair of tokens.
            psi = [math.fsum(dot(q[n], k[m]) for n in range(tokens)) / tokens for m in range(tokens)]
            heads.append([lambdas[layer][head] * psi[m] for m in range(tokens) if explained[m]])
        # Equation 3.
        shares = grouped(heads, norm)
        layers.append([etas[layer] * share for share in shares])
    # Equation 5.
    found = iter(grouped(layers, norm))
    return [next(found) if explained[token] else 0.0 for token in range(tokens)]


@pytest.mark.parametrize(
    ("name", "over"), [*((name, "units") for name in FAMILIES), ("bert", "tokens"), ("llama", "tokens")]
)
@pytest.mark.parametrize("norm", NORMS)
def test_equals_the_paper_s_equations(name: str, norm: str, over: str) -> None:
    model, design = raison.load(*TINY[name]()), Design("ivra", norm, over=over)
    encoding = model.encode(TEXTS, "token")
    explainer = random_explainer(model, encoding, design)
    found = map_of(model, encoding, explainer, design)
    for row, (text, length) in enumerate(zip(TEXTS, encoding.lengths, strict=True)):
        expected = literal(model, text, explainer.coefficients, norm, over)
        torch.testing.assert_close(found[row, :length].double(), torch.tensor(expected).double(), **CLOSE)
        assert not found[row, length:].any()


@pytest.mark.parametrize(("name", "norm"), [("bert", "softmax"), ("gpt2", "sparsemax"), ("llama", "softmax")])
def test_the_method_gives_the_shares_of_the_units(name: str, norm: str, tmp_path: Path) -> None:
    model = raison.load(*TINY[name]())
    untrained_attention(model, tmp_path, Design("ivra", norm))
    method = Ivra(checkpoint=str(tmp_path))
    coefficients = find(model, str(tmp_path), "ivra").explainer.coefficients
    for explanation in raison.explain(model, list(TEXTS), method, unit="token"):
        expected = literal(model, explanation.text, coefficients, norm, "units")
        encoding = model.encode([explanation.text], "token")
        sums = encoding.sum_to_units(torch.tensor([expected]))[0]
        assert explanation.scores == pytest.approx(sums.tolist(), rel=1e-4, abs=1e-6)
        assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)
        assert (explanation.evaluations, explanation.gradients) == (1, 0)
        assert explanation.notes["trained_for"] == "comprehensiveness"


@pytest.mark.parametrize("name", READABLE)
def test_the_map_is_on_the_simplex(name: str) -> None:
    model = raison.load(*TINY[name]())
    encoding = model.encode(TEXTS, "token")
    for design in DESIGNS:
        explainer = random_explainer(model, encoding, design)
        explained = places_of(encoding, design.over, torch.device("cpu")).explained
        found = map_of(model, encoding, explainer, design)
        assert (found >= 0).all(), design
        assert found.sum(1).tolist() == pytest.approx([1] * len(TEXTS), abs=1e-5), design
        assert not found[~explained].any(), design
        assert torch.equal(explained, encoding.attention_mask if design.over == "tokens" else encoding.scored)
        if design.norm == "softmax":
            assert (found[explained] > 0).all(), design


@pytest.mark.parametrize("name", TAPPED)
def test_through_the_method_the_shares_sum_to_one(name: str, tmp_path: Path) -> None:
    model = raison.load(*TINY[name]())
    designs = [*product(FORMS, NORMS)]
    for form, norm in designs if ALL or name == "bert" else [designs[TAPPED.index(name) % len(designs)]]:
        folder = tmp_path / form / norm
        method = f"{form}(checkpoint={str(folder)!r})"
        if not model.offers(ReadableAttention):
            with pytest.raises(UnsupportedError, match="These methods work"):
                raison.explain(model, TEXTS[0], method)
            continue
        untrained_attention(model, folder, Design(form, norm))
        for explanation in raison.explain(model, list(TEXTS), method, unit="word"):
            assert min(explanation.scores) >= 0
            assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ANSWERING)
def test_of_a_model_that_finds_answers_too(name: str, tmp_path: Path) -> None:
    model = span_adapter(tmp_path, name)
    encoding = model.encode(PAIRS, "token")
    for form, norm in product(FORMS, NORMS):
        design = Design(form, norm)
        found = map_of(model, encoding, random_explainer(model, encoding, design), design)
        assert found.sum(1).tolist() == pytest.approx([1] * len(PAIRS), abs=1e-5)
        assert not found[~encoding.scored].any()


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_answers_are_explained_by_the_method(name: str, tmp_path: Path) -> None:
    model = span_adapter(tmp_path, name)
    for form, norm in product(FORMS, NORMS):
        folder = tmp_path / form / norm
        untrained_attention(model, folder, Design(form, norm))
        for explanation in raison.explain(model, list(PAIRS), f"{form}(checkpoint={str(folder)!r})"):
            assert sum(explanation.scores) == pytest.approx(1, abs=1e-5)
            assert {unit.segment for unit in explanation.units} == {0, 1}


@pytest.mark.parametrize("name", ["bert", "gpt2", "modernbert", "mistral"])
def test_batch_and_padding_change_nothing(name: str) -> None:
    model = raison.load(*TINY[name]())
    encoding = model.encode(TEXTS, "token")
    wider = replace(
        encoding,
        **{
            field: torch.nn.functional.pad(getattr(encoding, field), (0, 5), value=value)
            for field, value in (("input_ids", 0), ("attention_mask", False), ("type_ids", 0), ("unit_ids", -1))
        },
        offsets=torch.nn.functional.pad(encoding.offsets, (0, 0, 0, 5)),
    )
    for design in DESIGNS:
        explainer = random_explainer(model, encoding, design)
        together, padded = (map_of(model, batch, explainer, design) for batch in (encoding, wider))
        assert not padded[:, -5:].any()
        torch.testing.assert_close(padded[:, :-5], together, **CLOSE)
        for row, length in enumerate(encoding.lengths):
            alone = map_of(model, encoding.select([row]), explainer, design)
            torch.testing.assert_close(alone[0], together[row, :length], **CLOSE)


def test_selection_decides_what_is_trained_and_not_what_is_computed() -> None:
    shape = HeadShape(2, 3, 4)
    names = {"feature": {"query", "key"}, "head": {"heads"}, "layer": {"layers"}}
    for selection in ((), ("feature",), ("head",), ("layer",), ("head", "layer"), ("feature", "head", "layer")):
        explainer = new_explainer(shape, Design(selection=selection))
        trained = {name for name, parameter in explainer.named_parameters() if parameter.requires_grad}
        assert trained == set().union(*(names[one] for one in selection))
        assert all(
            torch.equal(value, new_explainer(shape, Design()).state_dict()[name])
            for name, value in explainer.state_dict().items()
        )


def test_where_coefficients_start() -> None:
    def starts(design: Design) -> list[set[float]]:
        found = new_explainer(HeadShape(2, 3, 4), design).coefficients
        return [set(value.flatten().tolist()) for value in (found.query, found.key, found.heads, found.layers)]

    start = new_explainer(HeadShape(2, 3, 4), Design()).multiples()
    assert start == Multiples([[1.0] * 3] * 2, [1.0] * 2, [[1.0] * 3] * 2)
    # omega 1, lambda as many as there are features, eta 32.
    assert starts(Design()) == [{1.0}, {1.0}, {4.0}, {32.0}]
    assert starts(Design(initial=(0.5, 2.0))) == [{1.0}, {1.0}, {0.5}, {2.0}]
