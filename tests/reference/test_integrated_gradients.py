import numpy as np
import pytest
import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnsupportedError
from raison.core.method import Cost
from raison.methods.integrated_gradients import IntegratedGradients
from raison.numerics.gradients.quadrature import gauss_legendre
from tests.toys import TEXTS, TOYS, Ignored, Linear, Max, Product, generators, make_problem, removed_embeddings


def riemann(model, encoding, baseline, points=5000):
    """Sundararajan et al. 2017, the sum of section 5, with midpoints; plain autograd on the probability of one text."""
    ends = model.ask(WordEmbeddings).embed(encoding)
    start = ends.clone()
    start[encoding.scored] = torch.as_tensor(baseline, dtype=ends.dtype)
    shares = (torch.arange(points, dtype=ends.dtype) + 0.5) / points
    path = (start + shares[:, None, None] * (ends - start)).requires_grad_()
    value = (2 * model.gain(path, torch.ones(path.shape[:2], dtype=torch.bool))).sigmoid()
    (gradients,) = torch.autograd.grad(value.sum(), path)
    return ((ends - start)[0] * gradients.mean(0)).sum(-1)


@pytest.mark.parametrize(("name", "vector"), [("removal", (0.0, 0.3)), ("zero", (0.0, 0.0))])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_riemann_sum(toy, name, vector):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = IntegratedGradients(steps=200, baseline=name).attribute(problem, generators(len(TEXTS)))
    # The maximum has kinks on the path, where quadrature converges like one over the number of points only.
    tolerance = 0.01 if toy is Max else 1e-6
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        expected = riemann(model, single, vector)
        torch.testing.assert_close(scores[text, :length], expected, rtol=0, atol=tolerance)
        assert torch.all(scores[text, length:] == 0)
        assert torch.all(scores[text, :length][~single.scored[0]] == 0)


@pytest.mark.parametrize("name", ["removal", "mask", "pad", "zero"])
@pytest.mark.parametrize("toy", [Linear, Product, Ignored])
def test_gap_is_noted_and_vanishes_for_polynomials(toy, name):
    # Products of up to twelve terms: degree 11 at most along the path, exact with six nodes.
    problem = make_problem(toy(), TEXTS)
    scores = IntegratedGradients(steps=6, baseline=name).attribute(problem, generators(len(TEXTS)))
    for text, notes in enumerate(problem.ledger.notes):
        assert notes["completeness_gap"] == pytest.approx(0, abs=1e-9 * float(scores[text].abs().sum() + 1))
        assert notes["baseline"] == ("mask" if name == "removal" else name)


def test_gap_tells_of_too_few_steps():
    problem = make_problem(Product(), TEXTS[1:2], of="probability")
    few = IntegratedGradients(steps=1).attribute(problem, generators(1))
    keeps = torch.tensor([[True], [False]]).expand(2, problem.encoding.unit_counts[0]).contiguous()
    full, empty = problem.values([keeps])[0].tolist()
    gap = problem.ledger.notes[0]["completeness_gap"]
    assert gap == pytest.approx(float(few.sum()) - (full - empty))
    assert abs(gap) > 1e-3


@pytest.mark.parametrize(("name", "backwards"), [("removal", 7), ("mask", 7), ("zero", 8)])
def test_counts_its_passes(name, backwards):
    problem = make_problem(Linear(), TEXTS)
    method = IntegratedGradients(steps=7, baseline=name)
    method.attribute(problem, generators(len(TEXTS)))
    assert problem.ledger.evaluations == [9] * len(TEXTS)
    assert problem.ledger.gradients == [backwards] * len(TEXTS)
    assert method.cost(5) == Cost(9, backwards)


def test_deletion_falls_back_to_the_first_token_in_place():
    deleted, masked = (make_problem(Product(), TEXTS, removal=removal) for removal in ("delete", "mask"))
    results = [IntegratedGradients().attribute(problem, generators(len(TEXTS))) for problem in (deleted, masked)]
    assert torch.equal(*results)
    assert deleted.ledger.notes == masked.ledger.notes


def test_linear_model_and_dummy():
    scores = IntegratedGradients(steps=1).attribute(make_problem(Linear(), ["good bad"]), generators(1))
    # Terms 1.1 and -1.15 minus that of the mask, 0.15.
    assert scores[0].tolist() == pytest.approx([0, 0.95, -1.3, 0])
    problem = make_problem(Ignored(), ["um bad film"])
    assert IntegratedGradients().attribute(problem, generators(1))[0, 1] == 0


class Blanking(Linear):
    """Has a removal of its adapter's own, besides deletion."""

    removals = ("blank", "delete")

    def removed(self, encoding, removal):
        assert removal == "blank"
        return Linear.removed(self, encoding, "mask")

    def masked_logits(self, encoding, keeps, removal):
        assert removal == "blank"
        return Linear.masked_logits(self, encoding, keeps, "mask")


def test_a_removal_of_the_adapter_s_own_is_a_baseline():
    own, usual = (make_problem(toy, TEXTS, removal=name) for toy, name in ((Blanking(), "blank"), (Linear(), "mask")))
    scores = [IntegratedGradients().attribute(problem, generators(len(TEXTS))) for problem in (own, usual)]
    assert torch.equal(*scores)


def test_refuses_what_cannot_be():
    for steps in (0, -1):
        with pytest.raises(InputError, match="steps"):
            IntegratedGradients(steps=steps)
    with pytest.raises(UnsupportedError, match="no unk token"):
        IntegratedGradients(baseline="unk").attribute(make_problem(Linear(), ["good"]), generators(1))


def test_quadrature_is_exact_for_polynomials():
    nodes, weights = gauss_legendre(4)
    for degree in range(8):
        assert float(weights @ nodes**degree) == pytest.approx(1 / (degree + 1), abs=1e-14)
    assert bool((nodes.diff() > 0).all())


@pytest.mark.parametrize("toy", TOYS)
def test_from_a_given_start(toy):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    ends = model.ask(WordEmbeddings).embed(problem.encoding)
    noise = torch.from_numpy(np.random.default_rng(3).normal(size=tuple(ends.shape)))
    start = torch.where(problem.encoding.scored[..., None], noise, ends)
    scores = IntegratedGradients(steps=200).attribute_from(problem, start)
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        expected = riemann(model, single, start[text, :length][single.scored[0]])
        torch.testing.assert_close(scores[text, :length], expected, rtol=0, atol=0.02 if toy is Max else 1e-5)
        assert torch.all(scores[text, length:] == 0)
    assert problem.ledger.evaluations == problem.ledger.gradients == [200] * len(TEXTS)
    assert problem.ledger.notes == [{}] * len(TEXTS)


@pytest.mark.parametrize("name", ["mask", "pad"])
def test_from_its_own_start(name):
    model = Product()
    problem = make_problem(model, TEXTS, of="probability")
    own = IntegratedGradients(steps=9, baseline=name).attribute(problem, generators(len(TEXTS)))
    start = removed_embeddings(model, problem.encoding, name)
    assert torch.equal(IntegratedGradients(steps=9).attribute_from(problem, start), own)
