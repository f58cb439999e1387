import numpy as np
import pytest

from raison.methods.alti import Alti
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
    moved,
    passed,
    pooled,
)
from tests.toys import generators


def mixing(name, layer, state, attention):
    """C of one layer, by loops over pairs of tokens (Ferrando et al. 2022, section 3)."""
    tokens = len(state)
    matrix = np.zeros((tokens, tokens))
    entering = apply(layer.norms[0], state) if name in PRE else state
    for i in range(tokens):
        parts = [moved(layer, attention, entering, i, j) + (state[i] if i == j else 0) for j in range(tokens)]
        y = sum(parts) + layer.output_bias
        if name in POST:
            sigma = divisor(layer.norms[0], y)
            parts = [linear_norm(layer.norms[0], part, sigma) for part in parts]
            y = apply(layer.norms[0], y)
        for j in range(tokens):
            matrix[i, j] = max(0.0, np.abs(y).sum() - np.abs(y - parts[j]).sum())
        matrix[i] /= matrix[i].sum()
    return matrix


@pytest.mark.parametrize("name", [*POST, *PRE])
def test_equals_loops(name):
    model = load(name)
    problem = make_problem(model)
    scores = Alti().attribute(problem, generators(len(TEXTS))).numpy()
    for text, length in enumerate(problem.encoding.lengths):
        states, attention, _ = passed(model, problem, text)
        expected = pooled(name, length)
        for number, layer in reversed(list(enumerate(layers(name, model.model)))):
            expected = expected @ mixing(name, layer, states[number], attention[number])
        np.testing.assert_allclose(scores[text, :length], expected, rtol=1e-4, atol=1e-6)
        assert scores[text].sum() == pytest.approx(1)
        assert np.all(scores[text, length:] == 0)
    assert problem.ledger.evaluations == [1] * len(TEXTS)
