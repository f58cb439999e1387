"""GradientSHAP against the formula at its own points, and in the limit against what it estimates."""

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost
from raison.methods.gradient_shap import GradientShap
from raison.methods.integrated_gradients import IntegratedGradients
from tests.tiny import TINY
from tests.toys import TEXTS, TOYS, Ignored, Linear, Max, Product, generators, make_problem

VECTORS = {"mask": (0.0, 0.3), "pad": (9.0, 9.0), "zero": (0.0, 0.0)}


def watched(model):
    """The points that the model's gradients are taken at, and their texts, in order."""
    words = model.ask(WordEmbeddings)
    seen, own = [], words.path_gradients

    def watching(encoding, path, positions, weights, target):
        for row, length in enumerate(encoding.lengths):
            assert len(positions) == 1
            seen.append((encoding.texts[row], path(row, positions)[0, :length].double()))
        return own(encoding, path, positions, weights, target)

    words.path_gradients = watching
    return seen


def placed(point, end, scored, names):
    """The baseline on whose way to the text a point lies, and how far on."""
    found = []
    for name in names:
        start = torch.tensor(VECTORS[name], dtype=torch.float64).expand(len(end), 2)
        way = (end - start)[scored]
        share = float(((point - start)[scored] * way).sum() / way.square().sum())
        if torch.allclose((point - start)[scored], share * way, atol=1e-9):
            found.append((name, share))
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("names", [("mask",), ("mask", "zero"), ("zero", "pad", "mask")])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_the_formula_point_by_point(toy, names):
    model = toy()
    seen = watched(model)
    problem = make_problem(model, TEXTS, of="probability")
    scores = GradientShap(samples=7, baselines=names).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        end, scored = (
            model.ask(WordEmbeddings).embed(problem.encoding)[text, :length],
            problem.encoding.scored[text, :length],
        )
        points = [point for owner, point in seen if owner == TEXTS[text]]
        assert len(points) == 7
        total, used, shares = torch.zeros(length, dtype=torch.float64), [], []
        for point in points:
            name, share = placed(point, end, scored, names)
            used.append(name)
            shares.append(share)
            start = torch.where(scored[:, None], torch.tensor(VECTORS[name], dtype=torch.float64), end)
            point = point.clone().requires_grad_()
            value = (2 * model.gain(point[None], torch.ones(1, length, dtype=torch.bool))).sigmoid()
            total += ((end - start) * torch.autograd.grad(value.sum(), point)[0]).sum(1)
        torch.testing.assert_close(scores[text, :length], total / 7, rtol=0, atol=1e-10)
        assert torch.all(scores[text, length:] == 0)
        assert torch.all(scores[text, :length][~scored] == 0)
        # One position from each seventh of the way, and all baselines equally often.
        assert sorted(int(share * 7) for share in shares) == list(range(7))
        counts = [used.count(name) for name in names]
        assert max(counts) - min(counts) <= 1
    assert problem.ledger.notes == [{"baselines": list(names)}] * len(TEXTS)


@pytest.mark.parametrize("toy", [Linear, Product, Ignored, Max])
def test_approaches_integrated_gradients_and_the_change_of_the_value(toy):
    problem = make_problem(toy(), TEXTS, of="probability")
    exact = IntegratedGradients(steps=100).attribute(make_problem(toy(), TEXTS, of="probability"), generators(4))
    ends = problem.values([torch.tensor([[True], [False]]).expand(2, n) for n in problem.encoding.unit_counts])
    change = torch.stack([values[0] - values[1] for values in ends])
    errors = []
    for samples in (10, 300):
        scores = GradientShap(samples=samples).attribute(problem, generators(len(TEXTS)))
        torch.testing.assert_close(scores, exact, rtol=0, atol=1.0 / samples**0.5)
        errors.append(float((scores.sum(1) - change).abs().max()))
    assert errors[1] < 2e-3
    # A straight line in the logit, a curve in the probability: few samples leave an error.
    assert errors[0] > errors[1]


def test_several_baselines_approach_the_mean_of_their_integrals():
    problem = make_problem(Product(), TEXTS, of="probability")
    scores = GradientShap(samples=300, baselines="mask+zero").attribute(problem, generators(len(TEXTS)))
    single = [
        IntegratedGradients(steps=200, baseline=name).attribute(
            make_problem(Product(), TEXTS, of="probability"), generators(len(TEXTS))
        )
        for name in ("mask", "zero")
    ]
    torch.testing.assert_close(scores, (single[0] + single[1]) / 2, rtol=0, atol=0.03)


def test_linear_model_is_exact_and_noise_averages_out():
    problem = make_problem(Linear(), ["good um bad"])
    exact = GradientShap(samples=2).attribute(problem, generators(1))
    assert exact[0].tolist() == pytest.approx([0, 0.95, 0.2, -1.3, 0])
    noisy = GradientShap(samples=800, noise=0.5).attribute(problem, generators(1))
    deviation = float(problem.model.ask(WordEmbeddings).embed(problem.encoding)[0, 1:4].std(correction=0))
    error = 0.5 * deviation * np.hypot(1, 0.5) / np.sqrt(800)
    difference = (noisy - exact)[0]
    assert float(difference.abs().max()) < 5 * error
    assert difference[0] == difference[-1] == 0 != difference[1]


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_draws_do_not_depend_on_the_batch(unit):
    method = GradientShap(samples=5, noise=0.1, baselines=("mask", "zero"))
    together = make_problem(Product(), TEXTS, unit, of="probability")
    scores = method.attribute(together, generators(len(TEXTS)))
    for text, length in enumerate(together.encoding.lengths):
        alone = make_problem(Product(), [TEXTS[text]], unit, of="probability")
        found = method.attribute(alone, generators(len(TEXTS))[text : text + 1])
        torch.testing.assert_close(found[0], scores[text, :length], rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_approaches_integrated_gradients_on_a_transformer(family):
    model = raison.load(*TINY[family]())
    text = "a dull plot , but fine"
    found = raison.explain(model, text, GradientShap(samples=150), of="logit", target=1)
    exact = raison.explain(model, text, IntegratedGradients(steps=100), of="logit", target=1)
    scale = np.abs(exact.scores).max()
    np.testing.assert_allclose(found.scores, exact.scores, rtol=0, atol=0.05 * scale)


def test_counts_its_passes():
    problem = make_problem(Linear(), TEXTS)
    GradientShap(samples=7, baselines="mask+zero").attribute(problem, generators(len(TEXTS)))
    assert problem.ledger.evaluations == problem.ledger.gradients == [7] * len(TEXTS)
    assert GradientShap(samples=7).cost(3) == Cost(7, 7)


def test_lists_and_joined_names_are_the_same_setting():
    settings = ["mask+zero", ("mask", "zero"), ["mask", "zero"]]
    problems = [make_problem(Product(), TEXTS) for _ in settings]
    found = [
        GradientShap(samples=4, baselines=baselines).attribute(problem, generators(len(TEXTS)))
        for baselines, problem in zip(settings, problems, strict=True)
    ]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_refuses_what_cannot_be():
    with pytest.raises(InputError, match="samples of gradient_shap"):
        GradientShap(samples=0)
    with pytest.raises(InputError, match="noise of gradient_shap"):
        GradientShap(noise=-1.0)
    with pytest.raises(InputError, match="baselines of gradient_shap cannot be .*: give a baseline's name"):
        GradientShap(baselines=())
    with pytest.raises(UnknownNameError, match="baseline of gradient_shap.*Did you mean 'mask'"):
        GradientShap(baselines="zero+masc")
    with pytest.raises(UnsupportedError, match="no unk token"):
        GradientShap(baselines="unk").attribute(make_problem(Linear(), ["good"]), generators(1))
