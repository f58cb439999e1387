import numpy as np
import pytest
import torch

import raison
from raison.core.errors import UnsupportedError
from raison.methods.generic_attention import GenericAttention
from raison.text.prompts import Prompt
from tests.attention_reference import READS, Literal, build_any, double_throughout, problem_of
from tests.tiny import build_language_model
from tests.toys import TEXTS as TOY_TEXTS
from tests.toys import Linear, generators, make_problem

TEXTS = ("a dull plot , but the end is good", "a quiet film")


def relevance(literal, ids, of):
    """Chefer et al. 2021, equations 5 and 6, one layer and one entry at a time; the identity taken away at the end."""
    tokens = len(ids)
    identity = np.eye(tokens)
    total = identity
    for layer, attention in enumerate(literal.attention(ids)):
        gradient = literal.gradient(ids, layer, attention, of)
        mixing = np.zeros((tokens, tokens))
        for i in range(tokens):
            for j in range(tokens):
                products = [float(gradient[h, i, j] * attention[h, i, j]) for h in range(len(attention))]
                mixing[i, j] = sum(max(0.0, entry) for entry in products) / len(products)
        total = total + mixing @ total
    return np.array(literal.shares(tokens)) @ (total - identity)


@pytest.mark.parametrize("of", ["logit", "probability"])
@pytest.mark.parametrize("name", sorted(READS))
def test_equals_loops_with_every_layer_replaced_by_its_own(name, of):
    """The gradient of each layer's attention is taken with that attention put in as a leaf of its own."""
    with double_throughout():
        model, tokenizer = build_any(name)
        problem = problem_of(raison.load(model.double(), tokenizer), TEXTS, of)
        literal = Literal(model, READS[name])
        scores = GenericAttention().attribute(problem, generators(len(TEXTS)))
        for text, length in enumerate(problem.encoding.lengths):
            expected = relevance(literal, problem.encoding.input_ids[text, :length], of)
            assert expected.max() > 1e-6
            np.testing.assert_allclose(scores[text, :length], expected, rtol=1e-8, atol=1e-12)
            assert not scores[text, length:].any()
    assert problem.ledger.evaluations == problem.ledger.gradients == [1, 1]
    cost = GenericAttention().cost(7)
    assert (cost.forwards, cost.backwards) == (1, 1)


def prompted(scoring, labels):
    model, tokenizer = build_language_model("gpt2")
    prompt = Prompt(
        name="plot", task="Say how it was.", shot="Plot: {text}\nIt was{label}", labels=labels, scoring=scoring
    )
    return model, raison.load(model.double(), tokenizer, prompt=prompt)


def test_behind_a_prompt():
    with double_throughout():
        model, adapter = prompted("first", {"good": " good", "bad": " bad"})
        problem = problem_of(adapter, TEXTS[:1], "logit")
        (ids,) = problem.encoding.input_ids
        literal = Literal(model, "last", [label[0] for label in adapter.readout.label_ids])
        (found,) = GenericAttention().attribute(problem, generators(1))
        np.testing.assert_allclose(found, relevance(literal, ids, "logit"), rtol=1e-8, atol=1e-12)
    assert problem.encoding.prefix_length > 0


def test_label_words_of_several_tokens_are_refused():
    _, adapter = prompted("word", {"good": " brilliant and good", "bad": " bad"})
    assert adapter.readout.branches != ((),)
    with pytest.raises(UnsupportedError, match="label words of several tokens.*use label words of one token"):
        raison.explain(adapter, TEXTS[1], "generic_attention")


def test_a_prediction_past_its_attention_scores_zero():
    """A toy's prediction is a formula that no attention enters: nothing was brought by it."""
    problem = make_problem(Linear(), TOY_TEXTS)
    assert not GenericAttention().attribute(problem, generators(len(TOY_TEXTS))).any()


def test_the_last_token_of_a_decoder_is_scored_without_the_identity():
    """A whole 1 of the identity would be far above what attention brings to a probability."""
    model, tokenizer = build_any("gpt2")
    explanation = raison.explain(raison.load(model, tokenizer), TEXTS[0], "generic_attention", unit="token")
    assert 0 < explanation.scores[-1] < 0.5
    assert min(explanation.scores) >= 0


def test_parameters_get_no_gradients_and_frozen_models_work():
    model, tokenizer = build_any("bert")
    first = raison.explain(raison.load(model, tokenizer), TEXTS[0], "generic_attention")
    assert all(parameter.grad is None for parameter in model.parameters())
    model.requires_grad_(False)
    with torch.no_grad():
        frozen = raison.explain(raison.load(model, tokenizer), TEXTS[0], "generic_attention")
    np.testing.assert_allclose(frozen.scores, first.scores, rtol=1e-5)
