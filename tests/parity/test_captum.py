"""captum computes the same integrated gradients from the same nodes; its KernelSHAP only where the game is additive."""

import numpy as np
import pytest
import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.methods.input_x_gradient import InputXGradient
from raison.methods.integrated_gradients import IntegratedGradients
from raison.methods.kernel_shap import KernelShap
from raison.methods.occlusion import Occlusion
from raison.methods.sequential_integrated_gradients import SequentialIntegratedGradients
from tests.toys import TEXTS, TOYS, game_problem, generators, make_problem, removed_embeddings

attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.peer


def probability(model):
    """The positive class's probability as a function of embeddings of texts without padding."""

    def forward(embeds):
        own = torch.ones(embeds.shape[:2], dtype=torch.bool)
        return (2 * model.gain(embeds, own)).sigmoid()

    return forward


def as_function(values, units):
    """A game as a function of rows of zeros and ones."""
    powers = torch.from_numpy(2 ** np.arange(units))

    def forward(rows):
        return torch.from_numpy(values)[(rows.long() * powers).sum(1)]

    return forward


@pytest.mark.parametrize("steps", [5, 50])
@pytest.mark.parametrize("toy", TOYS)
def test_integrated_gradients(toy, steps):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = IntegratedGradients(steps=steps).attribute(problem, generators(len(TEXTS)))
    explainer = attr.IntegratedGradients(probability(model))
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        ends, starts = (
            model.ask(WordEmbeddings).embed(single),
            removed_embeddings(model, single, "mask"),
        )
        found, delta = explainer.attribute(
            ends, starts, n_steps=steps, method="gausslegendre", return_convergence_delta=True
        )
        # captum rounds the weights of the nodes to single precision.
        torch.testing.assert_close(scores[text, :length], found[0].sum(-1), rtol=1e-6, atol=1e-7)
        assert problem.ledger.notes[text]["completeness_gap"] == pytest.approx(float(delta), abs=1e-6)


@pytest.mark.parametrize("toy", TOYS)
def test_integrated_gradients_from_a_given_start(toy):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    ends = model.ask(WordEmbeddings).embed(problem.encoding)
    noise = torch.from_numpy(np.random.default_rng(1).normal(size=tuple(ends.shape)))
    starts = torch.where(problem.encoding.scored[..., None], noise, ends)
    scores = IntegratedGradients(steps=10).attribute_from(problem, starts)
    explainer = attr.IntegratedGradients(probability(model))
    for text, length in enumerate(problem.encoding.lengths):
        own = slice(text, text + 1), slice(length)
        found = explainer.attribute(ends[own], starts[own], n_steps=10, method="gausslegendre")
        torch.testing.assert_close(scores[text, :length], found[0].sum(-1), rtol=1e-6, atol=1e-7)


def keeping(forward, ends, moves):
    """A function of the embeddings of the tokens that move; the others keep theirs."""

    def partial(rows):
        embeds = ends.repeat(len(rows), 1, 1)
        embeds[:, moves] = rows
        return forward(embeds)

    return partial


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("toy", TOYS)
def test_sequential_integrated_gradients_unit_by_unit(toy, unit):
    model = toy()
    problem = make_problem(model, TEXTS, unit, of="probability")
    scores = SequentialIntegratedGradients(steps=8).attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        single = problem.encoding.select([text])
        ends, starts = (
            model.ask(WordEmbeddings).embed(single),
            removed_embeddings(model, single, "mask"),
        )
        for number in range(count):
            moves = single.unit_ids[0] == number
            explainer = attr.IntegratedGradients(keeping(probability(model), ends, moves))
            found = explainer.attribute(ends[:, moves], starts[:, moves], n_steps=8, method="gausslegendre")
            own = scores[text, : len(moves)][moves]
            torch.testing.assert_close(own, found[0].sum(-1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("toy", TOYS)
def test_input_x_gradient(toy):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = InputXGradient().attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        embeds = model.ask(WordEmbeddings).embed(problem.encoding.select([text])).requires_grad_()
        found = attr.InputXGradient(probability(model)).attribute(embeds)
        torch.testing.assert_close(scores[text, :length], found[0].sum(-1).detach(), rtol=0, atol=1e-10)


def test_occlusion():
    values = np.random.default_rng(0).normal(size=2**7)
    scores = Occlusion().attribute(game_problem(values), generators(1))[0]
    found = attr.FeatureAblation(as_function(values, 7)).attribute(torch.ones(1, 7), baselines=0)
    torch.testing.assert_close(scores, found[0].double(), rtol=0, atol=1e-6)


def test_kernel_shap_on_an_additive_game():
    # captum weights the two ends by 1e6 instead of constraining them and draws with replacement: its values are the
    # Shapley values only where every sample of coalitions gives the same regression.
    effects = np.random.default_rng(2).normal(size=8)
    values = ((np.arange(2**8)[:, None] >> np.arange(8)) & 1) @ effects
    scores = KernelShap(samples=64).attribute(game_problem(values), generators(1))[0]
    torch.manual_seed(0)
    found = attr.KernelShap(as_function(values, 8)).attribute(torch.ones(1, 8), baselines=0, n_samples=200)
    np.testing.assert_allclose(scores, effects, atol=1e-10)
    np.testing.assert_allclose(found[0], effects, atol=1e-3)
