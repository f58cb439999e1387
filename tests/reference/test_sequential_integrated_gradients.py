"""Sequential integrated gradients against one pass at a time, and against what removing each unit alone costs."""

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost
from raison.integration import repeated_texts
from raison.methods.integrated_gradients import IntegratedGradients
from raison.methods.sequential_integrated_gradients import SequentialIntegratedGradients
from tests.tiny import TINY
from tests.toys import (
    TEXTS,
    TOYS,
    Copy,
    Ignored,
    Linear,
    Product,
    generators,
    in_place,
    make_problem,
    removed_embeddings,
)


def literal(value, ends, start, unit_ids, steps):
    """The formula token by token: one point of one unit's path at a time, (tokens, hidden) in, a number out."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    scores = torch.zeros(len(ends), dtype=torch.float64)
    for token in range(len(ends)):
        if unit_ids[token] < 0:
            continue
        for node, weight in zip(nodes, weights, strict=True):
            point = ends.clone()
            for other in range(len(ends)):
                if unit_ids[other] == unit_ids[token]:
                    point[other] = start[other] + (node + 1) / 2 * (ends[other] - start[other])
            point.requires_grad_()
            (gradient,) = torch.autograd.grad(value(point), point)
            scores[token] += weight / 2 * ((ends[token] - start[token]) * gradient[token]).sum().double()
    return scores


def toy_value(model):
    """The positive class's probability as a function of one text's embeddings."""
    return lambda point: (2 * model.gain(point[None], torch.ones(1, len(point), dtype=torch.bool))).sigmoid()[0]


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_the_formula_pass_by_pass(toy, unit):
    model = toy()
    problem = make_problem(model, TEXTS, unit, of="probability")
    scores = SequentialIntegratedGradients(steps=5).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        ends, start = (
            model.ask(WordEmbeddings).embed(single)[0],
            removed_embeddings(model, single, "mask")[0],
        )
        expected = literal(toy_value(model), ends, start, single.unit_ids[0], 5)
        torch.testing.assert_close(scores[text, :length], expected, rtol=0, atol=1e-12)
        assert torch.all(scores[text, length:] == 0)
        assert torch.all(scores[text, :length][~single.scored[0]] == 0)


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("toy", TOYS)
def test_from_a_given_start(toy, unit):
    model = toy()
    problem = make_problem(model, TEXTS, unit, of="probability")
    ends = model.ask(WordEmbeddings).embed(problem.encoding)
    noise = torch.from_numpy(np.random.default_rng(5).normal(size=tuple(ends.shape)))
    start = torch.where(problem.encoding.scored[..., None], noise, ends)
    scores = SequentialIntegratedGradients(steps=4).attribute_from(problem, start)
    for text, length in enumerate(problem.encoding.lengths):
        expected = literal(
            toy_value(model), ends[text, :length], start[text, :length], problem.encoding.unit_ids[text], 4
        )
        torch.testing.assert_close(scores[text, :length], expected, rtol=0, atol=1e-12)
    assert problem.ledger.notes == [{}] * len(TEXTS)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_equals_the_formula_on_a_transformer(family):
    model = raison.load(*TINY[family]())
    text = "a dull plot , but fine"
    found = raison.explain(model, text, SequentialIntegratedGradients(steps=3), of="logit", target=1)
    encoding = model.encode([text], "word")
    start = removed_embeddings(model, encoding, in_place(model))[0]
    expected = literal(
        lambda point: model.ask(Passes).logits(encoding, point[None])[0, 1],
        model.ask(WordEmbeddings).embed(encoding)[0],
        start,
        encoding.unit_ids[0],
        3,
    )
    expected = encoding.sum_to_units(expected[None])[0]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-4, atol=1e-6)
    assert np.abs(found.scores).max() > 1e-3


@pytest.mark.parametrize("name", ["mask", "pad"])
@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
@pytest.mark.parametrize("toy", [Linear, Product, Ignored, Copy])
def test_a_units_tokens_sum_to_what_its_removal_costs(toy, unit, name):
    # Polynomials of degree 11 at most along a unit's path: six nodes are exact.
    problem = make_problem(toy(), TEXTS, unit, removal=name)
    scores = SequentialIntegratedGradients(steps=6).attribute(problem, generators(len(TEXTS)))
    sums = problem.encoding.sum_to_units(scores)
    for text, count in enumerate(problem.encoding.unit_counts):
        keeps = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
        values = toy().masked_logits(problem.encoding.select([text]), [keeps], name)[0][:, 1]
        torch.testing.assert_close(sums[text, :count], values[0] - values[1:], rtol=1e-9, atol=1e-9)


def test_one_unit_is_integrated_gradients():
    # With a single unit, all others staying means nothing.
    problems = [make_problem(Product(), ["terrible", "wonderful"], of="probability") for _ in range(2)]
    methods = [SequentialIntegratedGradients(steps=7), IntegratedGradients(steps=7)]
    first, second = (
        method.attribute(problem, generators(2)) for method, problem in zip(methods, problems, strict=True)
    )
    torch.testing.assert_close(first, second, rtol=0, atol=1e-14)
    assert first.abs().max() > 0.01


def test_a_word_moves_as_a_whole():
    scores = {
        unit: SequentialIntegratedGradients().attribute(make_problem(Product(), ["terrible film"], unit), generators(1))
        for unit in ("token", "word")
    }
    # "terr" and "ible" meet on their way only where they move together; "film" is one token.
    assert abs(float(scores["token"][0, 1] - scores["word"][0, 1])) > 0.01
    assert scores["token"][0, 3] == scores["word"][0, 3]


@pytest.mark.parametrize("numbers", [1, 30, 70])
def test_portions_change_nothing(monkeypatch, numbers):
    whole = make_problem(Product(), TEXTS, of="probability")
    expected = SequentialIntegratedGradients(steps=3).attribute(whole, generators(len(TEXTS)))
    monkeypatch.setattr(repeated_texts, "NUMBERS", numbers)
    parted = make_problem(Product(), TEXTS, of="probability")
    scores = SequentialIntegratedGradients(steps=3).attribute(parted, generators(len(TEXTS)))
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-15)
    assert parted.ledger == whole.ledger


def test_counts_its_passes():
    problem = make_problem(Linear(), TEXTS)
    method = SequentialIntegratedGradients(steps=7)
    method.attribute(problem, generators(len(TEXTS)))
    counts = [7 * count for count in problem.encoding.unit_counts]
    assert problem.ledger.evaluations == problem.ledger.gradients == counts
    assert [method.cost(n) for n in problem.encoding.unit_counts] == [Cost(count, count) for count in counts]


@pytest.mark.parametrize(("name", "vector"), [("mask", (0.0, 0.3)), ("pad", (9.0, 9.0)), ("zero", (0.0, 0.0))])
def test_baselines(name, vector):
    problem = make_problem(Linear(), ["good um bad"])
    scores = SequentialIntegratedGradients(steps=1, baseline=name).attribute(problem, generators(1))
    term = vector[0] + 0.5 * vector[1]
    assert scores[0].tolist() == pytest.approx([0, 1.1 - term, 0.35 - term, -1.15 - term, 0])
    assert problem.ledger.notes[0] == {"baseline": name}


def test_deletion_falls_back_to_the_first_token_in_place():
    deleted, masked = (make_problem(Product(), TEXTS, removal=removal) for removal in ("delete", "mask"))
    results = [
        SequentialIntegratedGradients().attribute(problem, generators(len(TEXTS))) for problem in (deleted, masked)
    ]
    assert torch.equal(*results)


def test_refuses_what_cannot_be():
    for steps in (0, -1, True):
        with pytest.raises(InputError, match="steps of sequential_integrated_gradients"):
            SequentialIntegratedGradients(steps=steps)
    with pytest.raises(UnsupportedError, match="sequential_integrated_gradients has no baseline 'unk'.*no unk token"):
        SequentialIntegratedGradients(baseline="unk").attribute(make_problem(Linear(), ["good"]), generators(1))


def test_refuses_what_types_forbid():
    with pytest.raises(UnknownNameError, match="baseline of sequential_integrated_gradients.*Did you mean 'mask'"):
        SequentialIntegratedGradients(baseline="masc")


@pytest.mark.parametrize("unit", ["token", "word"])
def test_without_steps_it_is_the_difference_that_the_integral_approaches(unit: str) -> None:
    model = raison.load(*TINY["bert"]())
    texts = ["the film is not a quiet pleasure", "dull , but good"]
    exact = raison.explain(model, texts, "sequential_integrated_gradients(steps=None)", unit=unit)
    fine = raison.explain(model, texts, "sequential_integrated_gradients(steps=60)", unit=unit)
    occluded = raison.explain(model, texts, "occlusion", unit=unit, removal="mask")
    for one, near, alone in zip(exact, fine, occluded, strict=True):
        assert one.scores == pytest.approx(alone.scores, abs=1e-6)
        assert one.scores == pytest.approx(near.scores, abs=1e-3)
        assert one.evaluations == len(one.units) + 1
        assert one.gradients == 0
