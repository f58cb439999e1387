import pytest
import torch

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnknownNameError
from raison.core.method import Cost
from raison.methods.input_x_gradient import InputXGradient
from tests.toys import TEXTS, TOYS, VOCABULARY, Linear, generators, make_problem


@pytest.mark.parametrize("toy", TOYS)
def test_equals_the_slope_of_scaling_one_token(toy):
    # e . dv/de is the derivative of v along e itself: scale the token's embedding by 1 + h.
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = InputXGradient().attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        for token in range(length):
            ends = []
            for scale in (1 + 1e-6, 1 - 1e-6):
                embeds = model.ask(WordEmbeddings).embed(single)
                embeds[0, token] *= scale
                ends.append(float(model.ask(Passes).logits(single, embeds).softmax(-1)[0, 1]))
            assert scores[text, token] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def test_linear_model_gives_its_terms_with_their_sign():
    problem = make_problem(Linear(), ["good bad", "good film not bad"])
    scores = InputXGradient().attribute(problem, generators(2))
    terms = {piece: first + second / 2 for piece, (first, second) in VOCABULARY.items()}
    assert scores[0, :4].tolist() == pytest.approx([terms[p] for p in ("[CLS]", "good", "bad", "[SEP]")])
    assert scores[0, 2] < 0 < scores[0, 1]
    assert torch.all(scores[0, 4:] == 0)
    assert problem.ledger.evaluations == problem.ledger.gradients == [1, 1]
    assert InputXGradient().cost(7) == Cost(1, 1)


def test_the_norm_is_that_of_the_products():
    model = Linear()
    problem = make_problem(model, ["good bad"])
    scores = InputXGradient(features="norm").attribute(problem, generators(1))
    literal = [((first) ** 2 + (second / 2) ** 2) ** 0.5 for first, second in map(VOCABULARY.get, ("good", "bad"))]
    assert scores[0, 1:3].tolist() == pytest.approx(literal)


def test_unknown_reduction_of_features() -> None:
    # From a study file or the command line nothing has checked the types.
    with pytest.raises(UnknownNameError):
        InputXGradient(features="norms")
