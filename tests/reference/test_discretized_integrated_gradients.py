"""Discretized integrated gradients against the paper's search and sum, written word by word and point by point."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost
from raison.methods.discretized_integrated_gradients import DiscretizedIntegratedGradients as Dig
from tests.tiny import TINY
from tests.toys import TEXTS, TOYS, Copy, Ignored, Linear, Product, generators, in_place, make_problem

TEXT = "a dull plot , but fine"


def is_between(base, current, value):
    return min(base, current) <= value <= max(base, current)


def literal_anchors(table, word, base, base_id, method):
    """Ids of the anchors of one word, feature by feature, in double precision."""
    been, current = [word], word
    for _ in range(method.steps):
        if current == base_id:
            been.append(base_id)
            continue
        distances = ((table - table[current]) ** 2).sum(1)
        near = [other for other in np.argsort(distances, kind="stable") if other != current][: method.neighbours]
        costs = {}
        for other in near:
            if other in been or other == base_id:
                continue
            outside = [not is_between(b, c, v) for b, c, v in zip(base, table[current], table[other], strict=True)]
            moved = table[current] - (table[current] - base) / method.steps
            squares = [(v - m) ** 2 for v, m, out in zip(table[other], moved, outside, strict=True) if out]
            costs[int(other)] = sum(squares) if method.strategy == "greedy" else sum(outside)
        current = min(costs, key=costs.get) if costs else base_id
        been.append(current)
    return been[1:]


def literal_path(table, word, base, base_id, method):
    """(points, hidden) from the baseline to the word."""
    points = [table[word]]
    for anchor in literal_anchors(table, word, base, base_id, method):
        target = base if anchor == base_id else table[anchor]
        before = points[-1]
        point = target.copy()
        for feature in range(len(base)):
            if not is_between(base[feature], before[feature], target[feature]):
                point[feature] = before[feature] - (before[feature] - base[feature]) / method.steps
        points.append(point)
    points = [*points, base][::-1]
    for _ in range(method.factor):
        finer = []
        for first, second in pairwise(points):
            finer += [first, (first + second) / 2]
        points = [*finer, points[-1]]
    return np.stack(points)


def literal(value, ends, table, words, method):
    """Scores of one text; `words` are (id, baseline's vector, its id) of each token, None for one that stays."""
    paths = [
        literal_path(table, *word, method)
        if word
        else np.repeat(end[None], 2**method.factor * (method.steps + 1) + 1, 0)
        for word, end in zip(words, ends.double().numpy(), strict=True)
    ]
    paths = torch.from_numpy(np.stack(paths, 1))
    scores = torch.zeros(len(ends), dtype=torch.float64)
    for here, there in pairwise(paths):
        point = (here if method.rule == "left" else (here + there) / 2).to(ends.dtype).requires_grad_()
        (gradient,) = torch.autograd.grad(value(point), point)
        scores += ((there - here) * gradient.double()).sum(1)
    return scores


def words_of(model, encoding, baseline, table):
    """What `literal` needs of each token."""
    if baseline == "zero":
        bases = [(np.zeros(table.shape[1]), -1)] * encoding.input_ids.shape[1]
    else:
        bases = [
            (table[number], number)
            for number in model.ask(WordEmbeddings).removed(encoding, baseline).input_ids[0].tolist()
        ]
    tokens = zip(encoding.input_ids[0].tolist(), encoding.unit_ids[0].tolist(), bases, strict=True)
    return [(number, *base) if unit >= 0 else None for number, unit, base in tokens]


@pytest.mark.parametrize("strategy", ["greedy", "maxcount"])
@pytest.mark.parametrize(
    ("baseline", "rule", "factor"), [("removal", "left", 0), ("zero", "left", 1), ("pad", "middle", 0)]
)
@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama"])
def test_equals_the_search_and_the_sum_on_a_transformer(family, baseline, rule, factor, strategy):
    model = raison.load(*TINY[family]())
    method = Dig(steps=4, neighbours=7, strategy=strategy, baseline=baseline, rule=rule, factor=factor)
    if baseline not in (*model.removals, "removal", "zero"):
        pytest.skip(f"no {baseline} token")
    found = raison.explain(model, TEXT, method, of="logit", target=1)
    encoding, table = model.encode([TEXT], "word"), model.embedding_table.weight.detach().double().numpy()
    words = words_of(model, encoding, in_place(model) if baseline == "removal" else baseline, table)
    expected = literal(
        lambda point: model.ask(Passes).logits(encoding, point[None])[0, 1],
        model.ask(WordEmbeddings).embed(encoding)[0],
        table,
        words,
        method,
    )
    expected = encoding.sum_to_units(expected[None])[0]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(found.scores).max() > 1e-2
    assert found.evaluations == found.gradients == method.cost(0).forwards == 5 * 2**factor


@pytest.mark.parametrize("steps", [1, 3, 30])
def test_the_search_ends_where_no_word_is_left(steps):
    # Two neighbours and many steps: a walk soon has been to both, and goes to the baseline.
    model = raison.load(*TINY["bert"]())
    method = Dig(steps=steps, neighbours=2)
    found = raison.explain(model, TEXT, method, of="logit", target=1)
    encoding, table = model.encode([TEXT], "word"), model.embedding_table.weight.detach().double().numpy()
    words = words_of(model, encoding, in_place(model), table)
    walks = [literal_anchors(table, *word, method) for word in words if word]
    assert any(walk[-1] == model.tokenizer.mask_token_id for walk in walks) == (steps == 30)
    expected = literal(
        lambda point: model.ask(Passes).logits(encoding, point[None])[0, 1],
        model.ask(WordEmbeddings).embed(encoding)[0],
        table,
        words,
        method,
    )
    np.testing.assert_allclose(found.scores, encoding.sum_to_units(expected[None])[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
@pytest.mark.parametrize("strategy", ["greedy", "maxcount"])
@pytest.mark.parametrize("baseline", ["mask", "pad", "zero"])
def test_sums_to_the_difference_on_a_linear_model(baseline, strategy, unit):
    model = Linear()
    for steps in (1, 5, 20):
        problem = make_problem(model, TEXTS, unit)
        scores = Dig(steps=steps, strategy=strategy, baseline=baseline).attribute(problem, generators(len(TEXTS)))
        vector = {"mask": (0.0, 0.3), "pad": (9.0, 9.0), "zero": (0.0, 0.0)}[baseline]
        ends = model.ask(WordEmbeddings).embed(problem.encoding)
        terms = (ends - torch.tensor(vector, dtype=ends.dtype)) @ torch.tensor([1, 0.5], dtype=ends.dtype)
        expected = terms.masked_fill(~problem.encoding.scored, 0.0)
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("toy", [Product, Ignored, Copy])
def test_the_gap_closes_as_steps_are_halved(toy):
    gaps = {}
    for rule in ("left", "middle"):
        for factor in (0, 2, 4):
            problem = make_problem(toy(), TEXTS, of="probability")
            scores = Dig(steps=5, factor=factor, rule=rule).attribute(problem, generators(len(TEXTS)))
            ends = problem.values([torch.tensor([[True], [False]]).expand(2, n) for n in problem.encoding.unit_counts])
            change = torch.stack([values[0] - values[1] for values in ends])
            gaps[rule, factor] = float((scores.sum(1) - change).abs().max())
    # Halved twice: a fourth of the error of a sum from the left, a sixteenth of that of the middles.
    assert gaps["left", 4] < 0.4 * gaps["left", 2] < 0.4 * gaps["left", 0]
    assert gaps["middle", 4] < 0.2 * gaps["middle", 2]
    assert gaps["middle", 4] < 0.1 * gaps["left", 4]


@pytest.mark.parametrize("toy", TOYS)
def test_what_stays_scores_zero(toy):
    problem = make_problem(toy(), TEXTS, of="probability")
    scores = Dig(steps=3).attribute(problem, generators(len(TEXTS)))
    assert torch.all(scores[~problem.encoding.scored] == 0)
    assert scores.abs().max() > 0.01


def test_no_word_moves_where_it_is_the_baseline():
    problem = make_problem(Product(), ["good film"], removal="pad")
    masked = problem.model.ask(WordEmbeddings).removed(problem.encoding, "pad").input_ids[0, 1]
    problem.encoding.input_ids[0, 1] = masked
    scores = Dig(steps=3).attribute(problem, generators(1))
    assert scores[0, 1] == 0 != scores[0, 2]


def test_texts_of_a_batch_do_not_mix():
    together = make_problem(Product(), TEXTS, of="probability")
    scores = Dig(steps=4).attribute(together, generators(len(TEXTS)))
    for text, length in enumerate(together.encoding.lengths):
        alone = make_problem(Product(), [TEXTS[text]], of="probability")
        found = Dig(steps=4).attribute(alone, generators(1))
        torch.testing.assert_close(found[0], scores[text, :length], rtol=0, atol=1e-12)
        assert together.ledger.notes[text] == {"baseline": "mask"}


def test_portions_change_nothing(monkeypatch):
    whole = make_problem(Product(), TEXTS, of="probability")
    expected = Dig(steps=4).attribute(whole, generators(len(TEXTS)))
    monkeypatch.setattr("raison.integration.repeated_texts.NUMBERS", 100)
    monkeypatch.setattr("raison.integration.anchors.NUMBERS", 1)
    parted = make_problem(Product(), TEXTS, of="probability")
    scores = Dig(steps=4).attribute(parted, generators(len(TEXTS)))
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-14)
    assert parted.ledger == whole.ledger


def test_counts_its_passes():
    problem = make_problem(Linear(), TEXTS)
    method = Dig(steps=6, factor=2)
    method.attribute(problem, generators(len(TEXTS)))
    assert problem.ledger.evaluations == problem.ledger.gradients == [28] * len(TEXTS)
    assert method.cost(3) == Cost(28, 28)


def test_needs_an_embedding_table():
    with pytest.raises(UnsupportedError, match="exposes no embedding table.*Use integrated_gradients"):
        raison.explain(Plain(), "good film", "discretized_integrated_gradients")


class Plain(Linear):
    """A toy that never shows a table, whatever others do."""

    def __getattribute__(self, name):
        if name == "embedding_table":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_refuses_what_cannot_be():
    for setting, wrong in (("steps", 0), ("neighbours", 0), ("factor", -1), ("factor", 11), ("factor", True)):
        with pytest.raises(InputError, match=f"{setting} of discretized_integrated_gradients"):
            Dig(**{setting: wrong})
    for name, wrong, right in (
        ("strategy", "greed", "greedy"),
        ("rule", "lefts", "left"),
        ("baseline", "masc", "mask"),
    ):
        with pytest.raises(UnknownNameError, match=f"{name} of discretized.*Did you mean '{right}'"):
            Dig(**{name: wrong})
