"""captum computes the same plain gradients; its random methods only in the mean over many samples.

Its GradientShap draws positions independently and, as the papers' harness calls it, the text itself as every other
baseline: such samples are zero, and the scores half as large. Its NoiseTunnel over Saliency averages absolute values
unless told otherwise, and adds noise to every row, so that it is given the tokens of units alone.
"""

import pytest
import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.methods.gradient_shap import GradientShap
from raison.methods.saliency import Saliency
from raison.methods.smooth_grad import SmoothGrad
from tests.toys import TEXTS, TOYS, Ignored, Product, generators, make_problem, removed_embeddings

attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.peer


def probability(model, ends, moves):
    """The positive class's probability as a function of the embeddings of the tokens that move."""

    def forward(rows):
        embeds = ends.repeat(len(rows), 1, 1)
        embeds[:, moves] = rows
        return (2 * model.gain(embeds, torch.ones(embeds.shape[:2], dtype=torch.bool))).sigmoid()

    return forward


@pytest.mark.parametrize("toy", TOYS)
def test_saliency(toy):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    norms, sums = (Saliency(features=name).attribute(problem, generators(len(TEXTS))) for name in ("norm", "sum"))
    for text, length in enumerate(problem.encoding.lengths):
        ends = model.ask(WordEmbeddings).embed(problem.encoding.select([text])).requires_grad_()
        explainer = attr.Saliency(probability(model, ends.detach(), torch.ones(length, dtype=torch.bool)))
        found = explainer.attribute(ends, abs=False)[0].detach()
        torch.testing.assert_close(norms[text, :length], found.norm(dim=-1), rtol=0, atol=1e-10)
        torch.testing.assert_close(sums[text, :length], found.sum(-1), rtol=0, atol=1e-10)


def several(run, count=12):
    """Mean of independent runs, and five of its standard errors, doubled in variance for what it is compared with."""
    torch.manual_seed(0)
    found = torch.stack([run().double() for _ in range(count)])
    return found.mean(0), 5 * (2 * found.var(0) / count).sqrt()


def assert_near(own, found, allowed):
    """Within what chance explains, which is little."""
    assert bool(((own - found).abs() <= allowed).all())
    assert float(allowed.max()) < 0.25 * float(own.abs().max())


@pytest.mark.parametrize("toy", [Product, Ignored])
def test_smooth_grad(toy):
    # Their product with the input is linear in the mean gradient; a norm of a mean is not.
    model = toy()
    problem = make_problem(model, TEXTS[2:3], of="probability")
    method = SmoothGrad(samples=1200, noise=0.1, scale="range", score="input_x_gradient")
    scores = method.attribute(problem, generators(1))[0]
    moves, ends = problem.encoding.scored[0], model.ask(WordEmbeddings).embed(problem.encoding)
    own = ends[:, moves]
    sigma = 0.1 * float(own.max() - own.min())
    tunnel = attr.NoiseTunnel(attr.Saliency(probability(model, ends, moves)))
    found, allowed = several(lambda: (own * tunnel.attribute(own, nt_samples=100, stdevs=sigma, abs=False))[0].sum(-1))
    assert_near(scores[moves], found, allowed)


@pytest.mark.parametrize("toy", [Product, Ignored])
def test_gradient_shap_and_what_the_text_as_a_baseline_does_to_it(toy):
    model = toy()
    problem = make_problem(model, TEXTS[2:3], of="probability")
    scores = GradientShap(samples=1200).attribute(problem, generators(1))[0]
    moves, ends = problem.encoding.scored[0], model.ask(WordEmbeddings).embed(problem.encoding)
    own, starts = (
        ends[:, moves],
        removed_embeddings(model, problem.encoding, "mask")[:, moves],
    )
    explainer = attr.GradientShap(probability(model, ends, moves))

    def run(baselines):
        return several(lambda: explainer.attribute(own, baselines=baselines, n_samples=1000, stdevs=0.0)[0].sum(-1))

    assert_near(scores[moves], *run(starts))
    assert_near(scores[moves] / 2, *run(torch.cat([starts, own])))
