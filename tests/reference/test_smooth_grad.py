"""SmoothGrad against the mean over its own points, taken one at a time, and against what its noise should be."""

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost
from raison.methods.input_x_gradient import InputXGradient
from raison.methods.saliency import Saliency
from raison.methods.smooth_grad import SmoothGrad
from tests.tiny import TINY
from tests.toys import TEXTS, TOYS, Ignored, Linear, Product, generators, make_problem


def watched(model):
    """The model's path_gradients, and the points of each text that it is asked for."""
    words = model.ask(WordEmbeddings)
    seen, own = {}, words.path_gradients

    def watching(encoding, path, positions, weights, target):
        for text, length in enumerate(encoding.lengths):
            seen[text] = path(text, positions)[:, :length].double()
        return own(encoding, path, positions, weights, target)

    words.path_gradients = watching
    return seen


@pytest.mark.parametrize("score", ["gradient", "input_x_gradient"])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_the_mean_over_its_points_one_by_one(toy, score):
    model = toy()
    seen = watched(model)
    problem = make_problem(model, TEXTS, of="probability")
    scores = SmoothGrad(samples=6, score=score).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        total = torch.zeros(length, 2, dtype=torch.float64)
        for point in seen[text]:
            point = point.clone().requires_grad_()
            value = (2 * model.gain(point[None], torch.ones(1, length, dtype=torch.bool))).sigmoid()
            total += torch.autograd.grad(value.sum(), point)[0]
        own = model.ask(WordEmbeddings).embed(problem.encoding.select([text]))[0]
        mean = total / 6
        expected = mean.square().sum(1).sqrt() if score == "gradient" else (own * mean).sum(1)
        torch.testing.assert_close(scores[text, :length], expected, rtol=0, atol=1e-10)
        assert torch.all(scores[text, length:] == 0)


@pytest.mark.parametrize("scale", ["deviation", "range"])
def test_noise_is_normal_of_the_stated_size_and_of_units_alone(scale):
    model = Linear()
    seen = watched(model)
    problem = make_problem(model, TEXTS)
    SmoothGrad(samples=1000, noise=0.3, scale=scale).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        own, scored = (
            model.ask(WordEmbeddings).embed(problem.encoding)[text, :length],
            problem.encoding.scored[text, :length],
        )
        noise = (seen[text] - own).numpy()
        assert (noise[:, ~scored] == 0).all()
        features = own[scored].numpy().ravel()
        size = np.sqrt(((features - features.mean()) ** 2).mean()) if scale == "deviation" else np.ptp(features)
        noise = noise[:, scored].reshape(1000, -1) / (0.3 * size)
        # Five standard errors of a mean, a deviation, and a correlation of normal numbers.
        assert np.abs(noise.mean(0)).max() < 5 / np.sqrt(1000)
        assert np.abs(noise.std(0) - 1).max() < 5 / np.sqrt(2000)
        off = np.corrcoef(noise.T) - np.eye(noise.shape[1])
        assert np.abs(off).max() < 5 / np.sqrt(1000)


def test_mean_of_a_quadratic_function_is_the_gradient_at_the_text():
    # The gradient 1 + s is linear in the embeddings: noise of mean zero leaves its expectation.
    problem = make_problem(Ignored(), TEXTS)
    method = SmoothGrad(samples=1000, noise=0.5, scale="range")
    scores = method.attribute(problem, generators(len(TEXTS)))
    embeds = problem.model.ask(WordEmbeddings).embed(problem.encoding)
    for text, length in enumerate(problem.encoding.lengths):
        own, scored = embeds[text, :length], problem.encoding.scored[text, :length]
        slope = 1 + own[:, 0].sum()
        error = 0.5 * float(np.ptp(own[scored].numpy())) * np.sqrt(int(scored.sum()) / 1000)
        assert float(scores[text, 0]) == pytest.approx(abs(float(slope)), abs=5 * error)
        assert float(scores[text, 0]) != abs(float(slope))


def test_curvature_is_averaged():
    # A sigmoid of a product: the mean slope is not the slope at the mean.
    sharp, smooth = (
        SmoothGrad(samples=300, noise=noise, scale="range").attribute(
            make_problem(Product(), ["wonderful film not bad"], of="probability"), generators(1)
        )
        for noise in (0.0, 0.5)
    )
    assert not torch.allclose(sharp, smooth, rtol=0.05)


@pytest.mark.parametrize("toy", TOYS)
def test_without_noise_it_is_the_plain_gradient(toy):
    for score, plain in (("gradient", Saliency()), ("input_x_gradient", InputXGradient())):
        problems = [make_problem(toy(), TEXTS, of="probability") for _ in range(2)]
        found = SmoothGrad(samples=3, noise=0.0, score=score).attribute(problems[0], generators(len(TEXTS)))
        expected = plain.attribute(problems[1], generators(len(TEXTS)))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_draws_do_not_depend_on_the_batch(unit):
    together = make_problem(Product(), TEXTS, unit, of="probability")
    scores = SmoothGrad(samples=5).attribute(together, generators(len(TEXTS)))
    for text, length in enumerate(together.encoding.lengths):
        alone = make_problem(Product(), [TEXTS[text]], unit, of="probability")
        found = SmoothGrad(samples=5).attribute(alone, generators(len(TEXTS))[text : text + 1])
        torch.testing.assert_close(found[0], scores[text, :length], rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_on_a_transformer(family):
    model = raison.load(*TINY[family]())
    quiet, noisy = (
        np.array(raison.explain(model, "a dull plot , but fine", SmoothGrad(samples=40, noise=noise)).scores)
        for noise in (1e-4, 0.5)
    )
    plain = np.array(raison.explain(model, "a dull plot , but fine", "saliency").scores)
    np.testing.assert_allclose(quiet, plain, rtol=0.01)
    assert np.abs(noisy / plain - 1).max() > 0.02


def test_counts_its_passes():
    problem = make_problem(Linear(), TEXTS)
    SmoothGrad(samples=7).attribute(problem, generators(len(TEXTS)))
    assert problem.ledger.evaluations == problem.ledger.gradients == [7] * len(TEXTS)
    assert SmoothGrad(samples=7).cost(3) == Cost(7, 7)


def test_refuses_what_cannot_be():
    for samples in (0, True):
        with pytest.raises(InputError, match="samples of smooth_grad"):
            SmoothGrad(samples=samples)
    for noise in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="noise of smooth_grad"):
            SmoothGrad(noise=noise)
    for name, wrong in (("scale", "ranges"), ("score", "gradients")):
        with pytest.raises(UnknownNameError, match=f"{name} of smooth_grad.*Did you mean '{wrong[:-1]}'"):
            SmoothGrad(**{name: wrong})
