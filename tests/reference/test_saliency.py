import math

import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnknownNameError
from raison.core.method import Cost
from raison.core.registry import label_of
from raison.methods.saliency import Saliency
from tests.tiny import TINY
from tests.toys import TEXTS, TOYS, Linear, generators, make_problem


@pytest.mark.parametrize("features", ["norm", "sum"])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_finite_differences(toy, features):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = Saliency(features=features).attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        embeds = model.ask(WordEmbeddings).embed(single)
        for token in range(length):
            slopes = []
            for feature in range(2):
                step = torch.zeros_like(embeds)
                step[0, token, feature] = 1e-6
                ends = [model.ask(Passes).logits(single, embeds + sign * step).softmax(-1)[0, 1] for sign in (1, -1)]
                slopes.append(float(ends[0] - ends[1]) / 2e-6)
            expected = math.hypot(*slopes) if features == "norm" else sum(slopes)
            assert scores[text, token] == pytest.approx(expected, abs=1e-7)
        assert torch.all(scores[text, length:] == 0)


def test_linear_model_has_one_gradient_for_every_token():
    problem = make_problem(Linear(), ["good film", "not a terrible film"])
    scores = Saliency().attribute(problem, generators(2))
    lengths = problem.encoding.lengths
    assert scores[0, : lengths[0]].tolist() == pytest.approx([math.hypot(1, 0.5)] * lengths[0])
    assert torch.all(scores[0, lengths[0] :] == 0)
    assert problem.ledger.evaluations == problem.ledger.gradients == [1, 1]
    assert Saliency().cost(7) == Cost(1, 1)


@pytest.mark.parametrize("features", ["norm", "sum"])
def test_at_given_embeddings(features):
    problem = make_problem(Linear(), TEXTS, of="probability")
    method = Saliency(features=features)
    embeds = problem.model.ask(WordEmbeddings).embed(problem.encoding)
    expected = method.attribute(problem, generators(len(TEXTS)))
    found = method.scores_at(problem, embeds)
    torch.testing.assert_close(found[problem.encoding.attention_mask], expected[problem.encoding.attention_mask])


@pytest.mark.parametrize(
    ("family", "summed"),
    [("bert", False), ("roberta", False), ("gpt2", False), ("t5_encoder", True), ("llama", True)],
)
def test_norms_that_subtract_the_mean_leave_no_sum(family, summed):
    # Adding one number to all features of a token changes nothing, after the embeddings or along the residual stream.
    tiny = raison.load(*TINY[family]())
    norm, total = (
        torch.tensor(raison.explain(tiny, "a dull plot", Saliency(features=features), of="logit").scores)
        for features in ("norm", "sum")
    )
    assert norm.min() > 1e-3
    assert (float((total.abs() / norm).max()) > 0.05) == summed
    assert summed or float((total.abs() / norm).max()) < 1e-4


def test_defaults_are_not_part_of_the_label():
    assert label_of(Saliency()) == "saliency"
    assert label_of(Saliency(features="sum")) == "saliency(features='sum')"


def test_refuses_unknown_features():
    with pytest.raises(UnknownNameError, match="features of saliency.*Did you mean 'sum'"):
        Saliency(features="summ")


def test_sums_that_are_only_rounding_are_said_to_be():
    """BERT subtracts an embedding's mean, Llama does not: its sums mean something."""
    bert, llama = (raison.load(*TINY[name]()) for name in ("bert", "llama"))
    text = "the old sailor told a story"
    found = raison.explain(bert, text, "saliency(features='sum')", of="logit")
    assert "zero but for rounding" in found.notes["caution"]
    assert "caution" not in raison.explain(bert, text, "saliency", of="logit").notes
    assert "caution" not in raison.explain(bert, text, "input_x_gradient", of="logit").notes
    assert "caution" not in raison.explain(llama, text, "saliency(features='sum')", of="logit").notes
