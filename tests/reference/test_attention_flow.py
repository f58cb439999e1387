from itertools import product

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.methods.attention_flow import AttentionFlow
from raison.numerics.attention.maximum_flow import RESOLUTION, token_flows
from tests.tiny import TEXTS as SENTENCES
from tests.tiny import build
from tests.toys import TEXTS, Linear, generators, make_problem


def augmented(capacity, source, sink):
    """Ford and Fulkerson: push along a shortest path with room until there is none; nodes are any keys."""
    room = {edge: float(width) for edge, width in capacity.items()}
    neighbours = {}
    for start, end in capacity:
        neighbours.setdefault(start, set()).add(end)
        neighbours.setdefault(end, set()).add(start)
    total = 0.0
    while True:
        came, queue = {source: None}, [source]
        for node in queue:
            for other in sorted(neighbours.get(node, ()), key=repr):
                if other not in came and room.get((node, other), 0) > 1e-13:
                    came[other] = node
                    queue.append(other)
        if sink not in came:
            return total
        path, node = [], sink
        while came[node] is not None:
            path.append((came[node], node))
            node = came[node]
        push = min(room[edge] for edge in path)
        for start, end in path:
            room[start, end] -= push
            room[end, start] = room.get((end, start), 0) + push
        total += push


def network(layers, rows):
    """Edges from ("in", position) of the prediction down to (0, token)."""
    capacity = {}
    for position, share in enumerate(rows):
        if share:
            capacity["in", (len(layers), position)] = share
    for level, layer in enumerate(layers, start=1):
        for i, row in enumerate(layer):
            for j, entry in enumerate(row):
                if entry:
                    capacity[(level, i), (level - 1, j)] = entry
    return capacity


def mixings(model, encoding, residual):
    """Abnar and Zuidema 2020, equation 1, by loops over one text without padding."""
    with torch.no_grad(), model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(encoding)
    tokens, layers = encoding.lengths[0], []
    for layer in sorted(tap.probabilities):
        heads = tap.probabilities[layer][0].tolist()
        rows = [[sum(head[i][j] for head in heads) / len(heads) for j in range(tokens)] for i in range(tokens)]
        if residual:
            rows = [[0.5 * rows[i][j] + 0.5 * (i == j) for j in range(tokens)] for i in range(tokens)]
            rows = [[entry / sum(row) for entry in row] for row in rows]
        layers.append(rows)
    return layers


class MeanPooled(Linear):
    """Predicts from the mean of all tokens."""

    def prediction_rows(self, encoding):
        mask = encoding.attention_mask.double()
        return mask / mask.sum(1, keepdim=True)


@pytest.mark.parametrize("model", [Linear(), MeanPooled()])
@pytest.mark.parametrize("residual", [True, False])
def test_equals_augmenting_paths_and_padding_does_not_leak(model, residual):
    problem = make_problem(model, TEXTS)
    scores = AttentionFlow(residual=residual).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        one = problem.encoding.select([text])
        capacity = network(mixings(model, one, residual), model.ask(ReadableAttention).prediction_rows(one)[0].tolist())
        for token in range(length):
            expected = augmented(capacity, "in", (0, token)) if one.scored[0, token] else 0
            assert float(scores[text, token]) == pytest.approx(expected, abs=1e-7)
        assert torch.all(scores[text, length:] == 0)
        assert 0 < float(scores[text].max()) <= 1
    assert problem.ledger.evaluations == [1] * len(TEXTS)
    assert AttentionFlow().cost(9).forwards == 1


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "t5_encoder"])
def test_equals_augmenting_paths_on_tiny_models(name):
    model = raison.load(*build(name))
    explanation = raison.explain(model, SENTENCES[1], "attention_flow", unit="token")
    encoding = model.encode([SENTENCES[1]], "token")
    capacity = network(
        mixings(model, encoding, True), model.ask(ReadableAttention).prediction_rows(encoding)[0].tolist()
    )
    expected = [0.0] * len(explanation.units)
    for token, unit in enumerate(encoding.unit_ids[0].tolist()):
        if unit >= 0:
            expected[unit] += augmented(capacity, "in", (0, token))
    np.testing.assert_allclose(explanation.scores, expected, atol=1e-5)


def test_flow_equals_the_smallest_cut():
    """Max-flow min-cut, by trying every cut of random networks with three positions and two layers."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        layers = rng.random((2, 3, 3)) * (rng.random((2, 3, 3)) > 0.3)
        rows = rng.dirichlet(np.ones(3))
        edges = network(layers.tolist(), rows.tolist())
        inner = [(level, position) for level in range(3) for position in range(3)]
        for sink in range(3):
            cuts = []
            for sides in product((False, True), repeat=len(inner)):
                near = {"in"} | {node for node, side in zip(inner, sides, strict=True) if side}
                if (0, sink) not in near:
                    cuts.append(sum(width for (a, b), width in edges.items() if a in near and b not in near))
            (found,) = token_flows(layers, rows, [sink])
            assert found == pytest.approx(min(cuts), abs=9 / RESOLUTION)


def test_a_bottleneck_in_the_middle_is_found():
    """All of token 1 passes through one pipe of width 0.25, which the sums of rows and columns do not show."""
    first = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    middle = np.array([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0]])
    last = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    flows = token_flows(np.stack([first, middle, last]), np.array([1.0, 0.0, 0.0]), [0, 1, 2])
    np.testing.assert_allclose(flows, [0.5, 0.25, 0.25])


def test_what_a_decoder_cannot_see_gets_nothing():
    causal = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    flows = token_flows(np.stack([causal, causal]), np.array([0.0, 1.0, 0.0]), [0, 1, 2])
    np.testing.assert_allclose(flows, [1.0, 0.5, 0.0], atol=3 / RESOLUTION)
