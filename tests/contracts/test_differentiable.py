"""The contract of differentiable methods: scores at given embeddings, and their gradient, on every tiny model."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers.models.deberta.modeling_deberta import DebertaLayerNorm

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.method import Method, Property
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.registry import label_of
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.contracts.conftest import TEXTS
from tests.contracts.test_methods import fingerprint

FURTHER = (
    "input_x_gradient(features='norm')",
    "integrated_gradients(steps=4, baseline='zero')",
    "sequential_integrated_gradients(steps=None)",
    "attention_average(queries='prediction')",
    "attention_rollout(residual=False, queries='all')",
)
SHORTER = {
    "integrated_gradients": "integrated_gradients(steps=6)",
    "sequential_integrated_gradients": "sequential_integrated_gradients(steps=3)",
}
"""Calls with fewer passes; both ways of a method use the same points."""
DIFFERENTIABLE = [name for name in CATALOGUE.names if Property.DIFFERENTIABLE in CATALOGUE.get(name).properties]


@pytest.fixture(params=(*DIFFERENTIABLE, *FURTHER))
def method(request: pytest.FixtureRequest, tiny: Classifier) -> Method:
    created = CATALOGUE.create(SHORTER.get(request.param, request.param))
    if reasons := created.lacking(tiny):
        pytest.skip("; ".join(reasons))
    return created


def problem_of(model: Classifier, texts: list[str]) -> Problem:
    batch = prepare(model, texts, Settings(target=0, of="logit"))
    ledger = Ledger.empty(len(texts))
    return Problem(model, batch.encoding, batch.target, batch.removal, ledger, Evaluations())


def rngs(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(0) for _ in range(count)]


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_the_property_and_the_function_go_together(name: str) -> None:
    cls = CATALOGUE.get(name)
    assert (Property.DIFFERENTIABLE in cls.properties) == (cls.scores_at is not Method.scores_at)
    assert (Property.PATH in cls.properties) == (cls.attribute_from is not Method.attribute_from)


def test_scores_at_the_own_embeddings_are_the_method_s(tiny: Classifier, method: Method) -> None:
    if tiny.core.config.model_type.startswith("deberta") and label_of(method) == "input_x_gradient":
        pytest.skip("the embeddings are normalized alone, so that input times gradient is zero")
    problem = problem_of(tiny, TEXTS)
    expected = method.attribute(problem, rngs(len(TEXTS))).detach()
    found = method.scores_at(problem, tiny.ask(WordEmbeddings).embed(problem.encoding)).detach().cpu().double()
    scored = problem.encoding.scored
    largest = float(expected[scored].abs().max())
    # Right behind the embeddings ModernBERT normalizes: input times gradient is zero there, up to rounding.
    atol = 1e-4 * largest + 2e-6
    torch.testing.assert_close(found[scored], expected[scored].double(), rtol=1e-4, atol=atol)
    assert largest > 10 * atol


def smooth(tiny: Classifier) -> Classifier:
    """A copy in double precision throughout, with an activation that has a second derivative where T5 has none."""
    model = copy.deepcopy(tiny.model).double()
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.ReLU):
                setattr(module, name, nn.GELU())
            if isinstance(child, DebertaLayerNorm):
                # DeBERTa's own computes in single precision.
                norm = nn.LayerNorm(len(child.weight), child.variance_epsilon).double()
                norm.load_state_dict(child.state_dict())
                setattr(module, name, norm)
    loaded = raison.load(model, tiny.tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def test_gradient_agrees_with_finite_differences(tiny: Classifier, method: Method) -> None:
    # Parts of some models compute in single precision, so the step cannot be small. Others have kinks: ReLU in
    # DistilBERT's head, and in all of T5.
    step = 1e-5 if tiny.core.config.model_type in ("distilbert", "t5") else 1e-3
    model = smooth(tiny)
    problem = problem_of(model, TEXTS[2:])
    embeds, scored = model.ask(WordEmbeddings).embed(problem.encoding), problem.encoding.scored
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(scored.shape, generator=generator).double() * scored
    noise = torch.randn(embeds.shape, generator=generator).double() * scored[..., None]
    scale = float(method.scores_at(problem, embeds)[scored].detach().abs().max())

    def total(point: Tensor) -> Tensor:
        return (weights * method.scores_at(problem, point)).sum() / scale

    point = embeds.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(total(point), point)
    # At random, and up the hill, so that the slope is not small by chance.
    direction = noise + gradient * (noise.norm() / gradient.norm())

    def slope(size: float) -> float:
        ends = [float(total(embeds + sign * size * direction).detach()) for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * size)

    # Of the fourth order.
    expected = (4 * slope(step) - slope(2 * step)) / 3
    assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-2, abs=1e-3)
    assert abs(expected) > 0.01


def test_the_model_is_left_as_it_was(tiny: Classifier, method: Method) -> None:
    tiny.model.train()
    before = fingerprint(tiny)
    flags = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled()
    problem = problem_of(tiny, TEXTS)
    point = tiny.ask(WordEmbeddings).embed(problem.encoding).requires_grad_()
    torch.autograd.grad(method.scores_at(problem, point).masked_fill(~problem.encoding.scored, 0).sum(), point)
    assert fingerprint(tiny) == before
    assert flags == (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled())
    assert all(parameter.grad is None for parameter in tiny.model.parameters())
