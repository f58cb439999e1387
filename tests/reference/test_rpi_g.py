"""RPI-G against its formula, written out, and the sum that its maps have before rows are left out."""

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost
from raison.methods.rpi import Rpi
from raison.methods.rpi_g import RpiG
from tests.attention_reference import READS, Literal, Recipe, build_any, double_throughout, literal_maps, problem_of
from tests.toys import TEXTS as TOY_TEXTS
from tests.toys import Attending, generators, make_problem

TEXTS = ("a dull plot , but the end is good", "a quiet film")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("settings", "numbers"),
    [({"layers": "last"}, (2,)), ({"layers": "bottom 2"}, (0, 1)), ({"variant": "code"}, (0,))],
)
@pytest.mark.parametrize("name", READS)
def test_equals_the_formula_with_whole_passes_one_by_one(name, settings, numbers):
    with double_throughout():
        model, tokenizer = build_any(name)
        problem = problem_of(raison.load(model.double(), tokenizer), TEXTS)
        literal = Literal(model, READS[name])
        recipe = Recipe(numbers, baselines=2, steps=3, variant=settings.get("variant", "paper"), multiply=False)
        found = RpiG(baselines=2, steps=3, **settings).candidates(problem, generators(2))
        for text, (rng, length) in enumerate(zip(generators(2), problem.encoding.lengths, strict=True)):
            ids = problem.encoding.input_ids[text, :length]
            expected = torch.stack(literal_maps(literal, ids, rng, recipe))
            scale = float(expected.abs().max())
            assert scale > 1e-6
            torch.testing.assert_close(found[:, text, :length] / scale, expected / scale, rtol=0, atol=1e-9)
            assert not found[:, text, length:].any()


def test_a_map_sums_to_the_change_of_the_target_where_one_row_is_read():
    """In the last layer of a model that reads one row, nothing is left out but the mean over heads."""
    model, tokenizer = build_any("bert")
    adapter = raison.load(model.double(), tokenizer)
    problem, literal = problem_of(adapter, TEXTS[1:]), Literal(model, "first")
    (ids,) = problem.encoding.input_ids
    (found,) = RpiG(baselines=1, steps=2000, t=60).candidates(problem, generators(1)).unbind(1)
    own = literal.attention(ids)[2]
    draws = np.random.default_rng([generators(1)[0].integers(2**63), 2])
    share, start = Recipe((2,)).share(60), own.clone()
    noise = torch.from_numpy(draws.standard_normal((len(own), 1, len(ids))))
    start[:, :1] = share**0.5 * own[:, :1] + (1 - share) ** 0.5 * noise
    with torch.no_grad():
        ahead, behind = (literal.logits(ids, 2, attention).softmax(-1)[1] for attention in (own, start))
    change = float(ahead - behind)
    assert abs(change) > 1e-2
    # The sum of n right ends misses the integral by about 1 / 2n of the slope's change.
    assert float(found.sum()) * len(own) == pytest.approx(change, abs=2e-3)


@pytest.mark.parametrize("steps", [1, 5])
def test_closed_form_where_the_logit_is_linear_in_the_attention(steps):
    model = Attending()
    problem = make_problem(model, ["not a terrible film"])
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(problem.encoding)
    own = tap.probabilities[1][0, :, 0]
    terms = model.ask(WordEmbeddings).embed(problem.encoding)[0] @ torch.tensor([1.0, 0.5], dtype=torch.float64)
    found = RpiG(baselines=3, steps=steps, t=100, layers=1).candidates(problem, generators(1))[:, 0]
    draws = np.random.default_rng([generators(1)[0].integers(2**63), 1])
    share = Recipe((1,)).share(100)
    for score in found:
        start = share**0.5 * own + (1 - share) ** 0.5 * torch.from_numpy(draws.standard_normal(own.shape))
        expected = (own - start) * torch.tensor([[1.0], [2.0]]) * terms
        torch.testing.assert_close(score, expected.mean(0), rtol=1e-9, atol=1e-12)


def test_has_the_baselines_of_rpi_and_other_maps():
    with_product, without = (
        method(baselines=2, steps=3, layers=1).candidates(make_problem(Attending(), TOY_TEXTS[:1]), generators(1))
        for method in (Rpi, RpiG)
    )
    assert not torch.allclose(with_product, without, atol=1e-3)


def test_parts_nesting_and_passes():
    method = RpiG(baselines=3, steps=4, layers="top 2")
    problem = make_problem(Attending(), TOY_TEXTS)
    whole = method.candidates(problem, generators(4))
    assert problem.ledger.evaluations == [25] * 4
    assert problem.ledger.gradients == [24] * 4
    assert method.cost(5) == Cost(26, 24)
    assert method.parts[0].cost(5) == Cost(13, 12)
    parts = [part.candidates(make_problem(Attending(), TOY_TEXTS), generators(4)) for part in method.parts]
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-12)
    more = RpiG(baselines=5, steps=4).candidates(make_problem(Attending(), TOY_TEXTS), generators(4))
    torch.testing.assert_close(more[:3], whole[:3], rtol=0, atol=1e-12)
    assert torch.equal(method.unselected(whole), whole.mean(0))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 0}, "steps of rpi_g cannot be 0: give a whole number of at least 1"),
        ({"baselines": -1}, "baselines of rpi_g cannot be -1"),
        ({"t": 501}, "t of rpi_g cannot be 501: give a timestep from 1 to 500"),
        ({"layers": ()}, "layers of rpi_g cannot be"),
    ],
)
def test_refuses_settings_that_cannot_be(settings, said):
    with pytest.raises(InputError) as caught:
        RpiG(**settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refuses_a_variant_that_is_none():
    with pytest.raises(UnknownNameError, match="variant of rpi_g 'papre'. Did you mean 'paper'"):
        RpiG(variant="papre")
