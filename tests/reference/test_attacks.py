"""Attacks in embedding space and their measures, against literal versions."""

import math

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError
from raison.core.problem import Evaluations, Ledger, Problem
from raison.explaining.batch import prepare
from raison.explaining.prediction_change import predicted
from raison.explaining.settings import Settings
from raison.methods.saliency import Saliency
from raison.numerics.measures.attacks import (
    attack_loss,
    on_boundary,
    probability_change,
    rank_change,
    same_prediction,
    top_count,
    top_sum_change,
    top_units,
)
from raison.trust.attack_descent import AttackStart, descend
from raison.trust.attack_settings import EmbeddingAttack
from tests.tiny import build

TEXTS = ["the old sailor told a modest story about the sea", "dull", "a boring plot , and nobody believed him at all"]


def test_rank_change_of_the_thesis_s_example():
    # The top three were 12, 3, 7 and are 3, 15, 7: the first and second rank differ.
    original, changed = np.zeros(16), np.zeros(16)
    original[[12, 3, 7]] = 3, 2, 1
    changed[[3, 15, 7]] = 3, 2, 1
    assert rank_change(original, changed, 3) == pytest.approx(2 / 3)
    assert top_units(original, 3).tolist() == [12, 3, 7]
    assert rank_change(original, original, 3) == 0


def test_measures_equal_loops():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        k = int(rng.integers(1, n + 1))
        a, b = rng.integers(-3, 4, n).astype(float), rng.integers(-3, 4, n).astype(float)
        # Python's sort is stable: equal scores keep the order of the text.
        first, second = (sorted(range(n), key=lambda i, s=s: -s[i])[:k] for s in (a, b))
        assert rank_change(a, b, k) == pytest.approx(sum(i != j for i, j in zip(first, second, strict=True)) / k)
        total = sum(a[i] - b[i] for i in first)
        assert top_sum_change(a, b, k) == pytest.approx(total)
    assert probability_change(0.9, 0.7) == pytest.approx(0.2)


def test_k_is_the_floor_of_a_share_and_at_least_one():
    assert [top_count(n, 0.15, None) for n in (1, 6, 7, 13, 14, 20)] == [1, 1, 1, 1, 2, 3]
    assert top_count(5, 0.15, 5) == 5
    with pytest.raises(InputError, match="k is 6, and there are 5 units"):
        top_count(5, 0.15, 6)


def test_what_counts_as_the_same_prediction():
    logits = torch.tensor([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [1.0, 1.0 + 1e-8, 0.0]], dtype=torch.float64)
    changed = torch.tensor([[0.0, 0.1, -5.0], [3.0, 2.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    assert same_prediction(logits, changed, False).tolist() == [True, False, True]
    assert same_prediction(logits, changed, True).tolist() == [False, True, False]
    assert on_boundary(logits, False).tolist() == [False, False, True]
    assert on_boundary(logits, True).tolist() == [True, True, True]
    assert on_boundary(changed, True).tolist() == [True, True, True]
    one = torch.ones(1, dtype=torch.float64)
    assert attack_loss(3 * one, 0.5 * one, 2 * one, 4 * one).item() == pytest.approx(2 * 3 + 4 * 0.25)


@pytest.fixture(scope="module")
def model():
    network, tokenizer = build("bert")
    network.set_attn_implementation("eager")
    return raison.load(network.double(), tokenizer)


def literal(model, text, plan, k):
    """The thesis's section 3.5 for one text, by a plain loop over the transformers model itself."""
    encoding = model.encode([text], "word")
    table = model.model.get_input_embeddings().weight.detach()
    embeds = table[encoding.input_ids[0]]
    owners = encoding.unit_ids[0].tolist()

    def see(delta):
        point = (embeds + delta).detach().requires_grad_()
        logits = model.model(inputs_embeds=point[None], attention_mask=torch.ones(1, len(point))).logits[0]
        p = logits.softmax(-1)[target if target is not None else int(logits.argmax())]
        (gradient,) = torch.autograd.grad(p, point, create_graph=True)
        scores = [
            sum((gradient[t].square().sum().sqrt() for t in range(len(owners)) if owners[t] == u), torch.zeros(()))
            for u in range(max(owners) + 1)
        ]
        return point, logits, p, scores

    target = None
    _, logits, p0, scores = see(torch.zeros_like(embeds))
    target, p0 = int(logits.argmax()), p0.detach()
    top = sorted(range(len(scores)), key=lambda u: -float(scores[u].detach()))[:k]
    delta, quiet, best, steps = torch.zeros_like(embeds), 0, (math.inf, None), 0
    while True:
        point, logits, p, scores = see(delta)
        loss = plan.alpha * sum(scores[u] for u in top)
        if plan.objective == "constrained":
            loss = loss + plan.beta * (p0 - p) ** 2
        if int(logits.argmax()) == target and float(loss.detach()) < best[0]:
            best = (float(loss.detach()), delta)
        if steps == plan.steps or quiet == plan.patience:
            return best[1], steps
        (gradient,) = torch.autograd.grad(loss, point)
        gradient = gradient * torch.tensor([float(owner >= 0) for owner in owners])[:, None]
        rate = plan.learning_rate / 2 ** (steps // plan.halve_every)
        new = (delta - rate * gradient).clamp(-plan.epsilon, plan.epsilon)
        quiet = quiet + 1 if float((new - delta).abs().max()) < plan.tolerance else 0
        delta, steps = new, steps + 1


def start_of(model, texts, plans, k):
    """Every text under every plan, as one batch."""
    batch = prepare(model, [text for text in texts for _ in plans], Settings())
    rows = len(batch.encoding)
    problem = Problem(model, batch.encoding, batch.target, batch.removal, Ledger.empty(rows), Evaluations())
    embeds = model.ask(WordEmbeddings).embed(batch.encoding)
    scores = batch.encoding.sum_to_units(Saliency().attribute(problem, []))
    top = torch.zeros(scores.shape, dtype=torch.bool)
    for row, units in enumerate(batch.encoding.unit_counts):
        top[row, scores[row, :units].argsort(descending=True)[:k]] = True
    each = list(plans) * len(texts)
    alpha, beta = (torch.tensor([getattr(p, n) for p in each], dtype=torch.float64) for n in ("alpha", "penalty"))
    return AttackStart(problem, Saliency(), embeds, top, alpha, beta, predicted(batch), radius=plans[0].epsilon)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 2.0, "halve_every": 4, "epsilon": 0.05, "beta": 30.0},
        # Steps of about 1e-2: some rows stop earlier than others.
        {"learning_rate": 1.0, "halve_every": 2, "tolerance": 0.02, "patience": 3},
    ],
)
def test_a_batch_equals_a_plain_loop_over_single_texts(model, settings):
    plans = [EmbeddingAttack(objective=o, steps=14, **settings) for o in ("constrained", "unconstrained")]
    found = descend(start_of(model, TEXTS, plans, 1), plans[0])
    for row, (text, plan) in enumerate((text, plan) for text in TEXTS for plan in plans):
        change, steps = literal(model, text, plan, 1)
        assert found.steps[row] == steps
        torch.testing.assert_close(found.change[row, : len(change)], change, rtol=1e-6, atol=1e-8)
        assert torch.all(found.change[row, len(change) :] == 0)
    assert float(found.change.abs().max()) <= settings.get("epsilon", 2.0)
    if "patience" in settings:
        assert len(set(found.steps)) > 1
        assert min(found.steps) < 14
    else:
        assert float(found.change.abs().max()) == settings["epsilon"]


@pytest.mark.parametrize("optimiser", ["adam", "sign"])
def test_other_optimisers_equal_torch_s(model, optimiser):
    plan = EmbeddingAttack(objective="unconstrained", steps=6, learning_rate=0.01, optimiser=optimiser, halve_every=3)
    start = start_of(model, TEXTS[:1], [plan], 1)
    found = descend(start, plan)
    change = torch.zeros_like(start.embeds).requires_grad_()
    steps = torch.optim.Adam([change], lr=0.01)
    losses = []
    for number in range(7):
        scores = start.problem.encoding.sum_to_units(Saliency().scores_at(start.problem, start.embeds + change))
        loss = (scores * start.top).sum()
        losses.append((float(loss.detach()), change.detach().clone()))
        (gradient,) = torch.autograd.grad(loss, change)
        change.grad = gradient * start.free
        steps.param_groups[0]["lr"] = 0.01 * 0.5 ** (number // 3)
        if optimiser == "adam":
            steps.step()
        else:
            change.data -= steps.param_groups[0]["lr"] * change.grad.sign()
    expected = min(losses, key=lambda one: one[0])[1]
    torch.testing.assert_close(found.change, expected, rtol=1e-5, atol=1e-7)
    assert float(expected.abs().max()) > 0.01
