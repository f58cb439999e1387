import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.decomposition import Anatomy
from raison.core.errors import UnsupportedError
from raison.methods.globenc import Globenc
from tests.literal_layers import (
    POST,
    PRE,
    TEXTS,
    apply,
    divisor,
    layers,
    linear_norm,
    load,
    make_problem,
    mlp_output,
    moved,
    passed,
    pooled,
)
from tests.tiny import TINY
from tests.toys import generators


def norms(name, layer, state, attention):
    """N of one layer, by loops over pairs of tokens (Modarressi et al. 2022, section 3)."""
    tokens = len(state)
    matrix = np.zeros((tokens, tokens))
    entering = apply(layer.norms[0], state) if name in PRE else state
    for i in range(tokens):
        parts = [moved(layer, attention, entering, i, j) + (state[i] if i == j else 0) for j in range(tokens)]
        if name in PRE:
            matrix[i] = [np.linalg.norm(part) for part in parts]
            continue
        whole = sum(parts) + layer.output_bias
        after = apply(layer.norms[0], whole)
        sigma_1, sigma_2 = divisor(layer.norms[0], whole), divisor(layer.norms[1], after + mlp_output(layer, after))
        for j in range(tokens):
            u = linear_norm(layer.norms[0], parts[j], sigma_1)
            matrix[i, j] = np.linalg.norm(linear_norm(layer.norms[1], u, sigma_2))
    return matrix


@pytest.mark.parametrize("name", [*POST, *PRE])
def test_equals_loops(name):
    model = load(name)
    problem = make_problem(model)
    scores = Globenc().attribute(problem, generators(len(TEXTS))).numpy()
    for text, length in enumerate(problem.encoding.lengths):
        states, attention, _ = passed(model, problem, text)
        expected = pooled(name, length)
        for number, layer in reversed(list(enumerate(layers(name, model.model)))):
            expected = expected @ norms(name, layer, states[number], attention[number])
        np.testing.assert_allclose(scores[text, :length], expected / expected.sum(), rtol=1e-4, atol=1e-7)
        assert np.all(scores[text, length:] == 0)
    assert problem.ledger.evaluations == [1] * len(TEXTS)


def test_the_target_changes_nothing():
    model = load("bert")
    first, second = (Globenc().attribute(make_problem(model, index=index), generators(len(TEXTS))) for index in (0, 2))
    assert torch.equal(first, second)


def test_models_without_known_layers_are_refused():
    model = raison.load(*TINY["t5"]())
    assert not model.offers(Anatomy)
    with pytest.raises(
        UnsupportedError,
        match=r"lacks the capability 'decomposition' \(its layers form two stacks.*\. These methods work: .*occlusion",
    ):
        raison.explain(model, TEXTS[0], "globenc")
