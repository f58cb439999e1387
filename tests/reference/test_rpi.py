"""RPI against its formula, written out; in closed form; and against finite differences."""

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.method import Cost
from raison.methods.rpi import Rpi
from raison.models.adapters.classifier import Classifier
from tests import toys
from tests.attention_reference import READS, Literal, Recipe, build_any, double_throughout, literal_maps, problem_of
from tests.tiny import LANGUAGE_MODELS, build_language_model
from tests.toys import Attending, generators, make_problem

TEXTS = ("a dull plot , but the end is good", "a quiet film")
LAYERS = (("last", (2,)), (0, (0,)), ("third_last", (0,)), ("top 2", (2, 1)))


def loaded(name: str) -> tuple[Classifier, Literal]:
    """A tiny model in float64, and its literal copy."""
    model, tokenizer = build_any(name)
    adapter = raison.load(model.double(), tokenizer)
    assert isinstance(adapter, Classifier)
    return adapter, Literal(model, READS[name])


def check(name: str, method: Rpi, recipe: Recipe) -> None:
    """Every candidate of two texts of different lengths, explained together, equals the literal one."""
    with double_throughout():
        adapter, literal = loaded(name)
        problem = problem_of(adapter, TEXTS)
        found = method.candidates(problem, generators(len(TEXTS), 5))
        for text, (rng, length) in enumerate(zip(generators(len(TEXTS), 5), problem.encoding.lengths, strict=True)):
            ids = problem.encoding.input_ids[text, :length]
            expected = torch.stack(literal_maps(literal, ids, rng, recipe))
            scale = float(expected.abs().max())
            assert scale > 1e-6
            torch.testing.assert_close(found[:, text, :length] / scale, expected / scale, rtol=0, atol=1e-9)
            assert not found[:, text, length:].any()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("layers", "numbers"), LAYERS)
@pytest.mark.parametrize("name", READS)
def test_equals_the_formula_with_whole_passes_one_by_one(name, layers, numbers):
    check(name, Rpi(baselines=2, steps=3, layers=layers, variant="paper"), Recipe(numbers, baselines=2, steps=3))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("layers", "numbers"), [(None, (0,)), ("last", (2,)), (1, (1,))])
@pytest.mark.parametrize("name", READS)
def test_the_codes_variant_equals_what_the_code_does(name, layers, numbers):
    method = Rpi(baselines=2, steps=3, layers=layers, timesteps=60, variant="code")
    check(name, method, Recipe(numbers, baselines=2, steps=3, timesteps=60, variant="code"))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", READS)
def test_the_default_is_the_codes_formula_in_the_last_layer(name):
    check(name, Rpi(baselines=2, steps=3, timesteps=60), Recipe((2,), 2, 3, timesteps=60, variant="code"))


@pytest.mark.parametrize(
    "settings",
    [{"schedule": "cosine"}, {"t": 7}, {"t": 1, "schedule": "cosine"}, {"timesteps": 12}, {"variant": "code", "t": 30}],
)
def test_schedules_and_fixed_timesteps(settings):
    settings = {"baselines": 2, "steps": 2, "timesteps": 60} | settings
    settings = {"variant": "paper"} | settings
    check("bert", Rpi(layers="bottom 2", **settings), Recipe((0, 1), **settings))


def test_the_codes_share_of_signal():
    # methods.md, section 2.1: 0.00629 of the signal is left at T = 500.
    assert Recipe((0,), variant="code").share(500) == pytest.approx(0.00629, abs=5e-6)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("layers", [1, "last"])
def test_behind_a_prompt_the_codes_noise_stays_in_the_inputs_rows(name, layers):
    model, tokenizer = build_language_model(name)
    prompt = raison.Prompt(
        name="film",
        task="What is it? Say it.",
        shot="{text} :{label}",
        labels={"good": " good", "bad": " bad"},
        shots=(("good end", "good"), ("dull", "bad")),
        scoring="first",
    )
    with double_throughout():
        adapter = raison.load(model.double(), tokenizer, prompt=prompt)
        problem = problem_of(adapter, TEXTS[:1])
        assert problem.encoding.prefix_length > 0
        labels = [ids[0] for ids in adapter.readout.label_ids]
        (ids,) = problem.encoding.input_ids
        spared = (problem.encoding.unit_ids[0] < 0).nonzero()[:, 0].tolist()
        assert len(ids) - 1 in spared
        recipe = Recipe((1 if layers == 1 else 2,), baselines=2, steps=3, variant="code")
        literal = literal_maps(Literal(model, "last", labels), ids, generators(1)[0], recipe, spared)
        method = Rpi(baselines=2, steps=3, layers=layers, variant="code")
        (found,) = method.candidates(problem, generators(1)).unbind(1)
    expected = torch.stack(literal)
    scale = float(expected.abs().max())
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=1e-9)
    # The row that is read has no noise in the last layer: all baselines are the same there.
    assert torch.equal(found[0], found[1]) == (layers == "last")


def attending(text: str = "not a terrible film") -> tuple[Attending, torch.Tensor, torch.Tensor]:
    """The toy, the row of layer 1's attention that it predicts from, and the logit's gradient with respect to it."""
    model = Attending()
    encoding = model.encode([text], "word")
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(encoding)
    terms = model.ask(WordEmbeddings).embed(encoding)[0] @ torch.tensor([1.0, 0.5], dtype=torch.float64)
    return model, tap.probabilities[1][0, :, 0], torch.arange(1.0, 3.0, dtype=torch.float64)[:, None] * terms


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_closed_form_where_the_logit_is_linear_in_the_attention(steps):
    """Sum of v_j over j = 1 ... n is n b + (n + 1) / 2 (a - b), and the gradient u is the same everywhere."""
    model, own, slope = attending()
    problem = make_problem(model, ["not a terrible film"])
    method = Rpi(baselines=4, steps=steps, t=200, layers=1, variant="paper")
    found = method.candidates(problem, generators(1))[:, 0]
    draws = np.random.default_rng([generators(1)[0].integers(2**63), 1])
    share = Recipe((1,)).share(200)
    for score in found:
        start = share**0.5 * own + (1 - share) ** 0.5 * torch.from_numpy(draws.standard_normal(own.shape))
        expected = (own - start) * (start + (steps + 1) / (2 * steps) * (own - start)) * slope
        torch.testing.assert_close(score, expected.mean(0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("variant", ["signed", "paper", "code"])
def test_a_layer_that_nothing_depends_on_scores_zero(variant):
    model, _, _ = attending()
    found = Rpi(baselines=3, steps=3, layers=0, variant=variant).candidates(
        make_problem(model, ["good film"]), generators(1)
    )
    assert not found.any()


def test_the_expected_map_goes_against_the_gradient_in_the_paper_and_along_it_in_the_code():
    """Where the gradient u is the same everywhere, the paper's mean map is about -(1 - A)(1 - a^2) / 2 u.

    The mean of v_j over the path is c a + (1 - c) b, c = (n + 1) / 2n, so the mean map is
    c a^2 + (1 - 2 c) a E b - (1 - c) E b^2 times u, with E b = sqrt(A) a and E b^2 = A a^2 + 1 - A. As n grows, c goes
    to 1/2, and the factor to -(1 - A)(1 - a^2) / 2: below zero for every probability. The code's factor is
    a^2 (1 + sqrt A) / 2.
    """
    text, t, steps = "good bad wonderful film", 200, 5
    model, own, slope = attending(text)
    paper, code = (
        Rpi(baselines=2000, steps=steps, t=t, layers=1, variant=variant).attribute(
            make_problem(model, [text]), generators(1)
        )[0]
        for variant in ("paper", "code")
    )
    shares = [Recipe((1,), variant=variant).share(t) for variant in ("paper", "code")]
    c, square = (steps + 1) / (2 * steps), shares[0] * own.square() + 1 - shares[0]
    factor = c * own.square() + (1 - 2 * c) * shares[0] ** 0.5 * own.square() - (1 - c) * square
    # Six standard errors: (a - b)(c a + (1 - c) b) varies by less than 1, a (a + b) / 2 by less than a / 2.
    bound = 6 / 2000**0.5 * slope.abs()
    assert ((paper - (factor * slope).mean(0)).abs() <= bound.mean(0)).all()
    expected = own.square() * (1 + shares[1] ** 0.5) / 2 * slope
    assert ((code - expected.mean(0)).abs() <= (bound * own / 2).mean(0)).all()
    clear = (slope > 0).all(0) & (slope.mean(0) > 0.6)
    assert clear.sum() >= 3
    assert (paper[clear] < -0.1).all()
    assert (code[clear] > 0).all()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_gradients_agree_with_finite_differences(name, layer):
    with double_throughout():
        adapter, literal = loaded(name)
        problem = problem_of(adapter, TEXTS[1:])
        (site,) = problem.attention_sites(0, lambda _: [layer])
        noise = torch.from_numpy(np.random.default_rng(3).standard_normal(tuple(site.probabilities.shape)))
        point = site.probabilities + 0.3 * noise
        (slopes,) = problem.attention_slopes(0, site, lambda _: point[None], 1)
        (ids,) = problem.encoding.input_ids
        whole = literal.attention(ids)[layer]
        rows = [int(site.read[0])] if len(site.rows) > 1 else [len(ids) - 1 if READS[name] == "last" else 0]
        entries = [(head, key) for head in range(len(point)) for key in range(0, len(ids), 2)]
        differences = torch.stack(
            [_difference(literal, ids, layer, (whole, point), (head, rows[0], key)) for head, key in entries]
        )
        found = torch.stack([slopes.gradients[0, head, 0, key] for head, key in entries])
    scale = float(found.abs().max())
    assert scale > 1e-6
    torch.testing.assert_close(differences / scale, found / scale, rtol=0, atol=1e-6)


def _difference(literal, ids, layer, ends, entry, step=1e-4):
    """Central, of the probability of class 1."""
    whole, point = ends
    values = []
    for sign in (1, -1):
        attention = whole.clone()
        attention[:, :] = point if len(point[0]) > 1 else attention
        head, row, key = entry
        attention[:, row] = point[:, row if len(point[0]) > 1 else 0]
        attention[head, row, key] += sign * step
        with torch.no_grad():
            values.append(literal.logits(ids, layer, attention).softmax(-1)[1])
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("layers", ["last", "top 2"])
def test_fewer_baselines_are_the_first_ones(layers):
    adapter, _ = loaded("bert")
    few, many = (
        Rpi(baselines=count, steps=2, layers=layers).candidates(problem_of(adapter, TEXTS), generators(2))
        for count in (3, 5)
    )
    number = len(few) // 3
    for layer in range(number):
        torch.testing.assert_close(few[3 * layer : 3 * layer + 3], many[5 * layer : 5 * layer + 3], rtol=0, atol=1e-12)
    assert (many[0] - many[1]).abs().max() > 1e-6


def test_parts_put_one_after_another_are_the_candidates():
    adapter, _ = loaded("gpt2")
    method = Rpi(baselines=3, steps=2, layers="top 2")
    assert [part.layers for part in method.parts] == [-1, -2]
    parts = torch.cat([part.candidates(problem_of(adapter, TEXTS), generators(2)) for part in method.parts])
    whole = method.candidates(problem_of(adapter, TEXTS), generators(2))
    assert len(whole) == method.maps == 6
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        method.attribute(problem_of(adapter, TEXTS), generators(2)), whole.mean(0), rtol=0, atol=1e-12
    )
    assert Rpi().parts == (Rpi(layers=-1),)
    assert Rpi(variant="paper").parts == (Rpi(variant="paper", layers=-1),)
    assert Rpi(variant="code").parts == (Rpi(variant="code", layers=-3),)


@pytest.mark.parametrize(("variant", "points"), [("signed", 5), ("paper", 4), ("code", 5)])
def test_counts_its_passes(variant, points):
    problem = make_problem(Attending(), toys.TEXTS)
    method = Rpi(baselines=3, steps=4, layers=(0, 1), variant=variant)
    method.attribute(problem, generators(len(toys.TEXTS)))
    assert problem.ledger.evaluations == [1 + 6 * points] * len(toys.TEXTS)
    assert problem.ledger.gradients == [6 * points] * len(toys.TEXTS)
    # Its parts, each alone, take one plain pass each: an upper bound for both together.
    assert method.cost(5) == Cost(2 + 6 * points, 6 * points)
    assert method.parts[0].cost(5) == Cost(1 + 3 * points, 3 * points)
    noted = [notes.get("caution", "") for notes in problem.ledger.notes]
    assert all(("against the gradient" in note) == (variant == "paper") for note in noted)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 0}, "steps of rpi cannot be 0: give a whole number of at least 1"),
        ({"steps": True}, "steps of rpi cannot be True"),
        ({"baselines": 0}, "baselines of rpi cannot be 0: give a whole number of at least 1"),
        ({"timesteps": 0}, "timesteps of rpi cannot be 0"),
        ({"t": 0}, "t of rpi cannot be 0: give a timestep from 1 to the number of timesteps"),
        ({"t": 21, "timesteps": 20}, "t of rpi cannot be 21: give a timestep from 1 to 20"),
        ({"layers": "lats"}, "layers of rpi cannot be 'lats': give 'last'"),
        ({"layers": (1, 1)}, "layers of rpi cannot be (1, 1)"),
    ],
)
def test_refuses_settings_that_cannot_be(settings, said):
    with pytest.raises(InputError) as caught:
        Rpi(**settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("setting", "value", "meant"), [("variant", "coed", "code"), ("schedule", "cosin", "cosine")])
def test_refuses_names_that_are_none(setting, value, meant):
    with pytest.raises(UnknownNameError, match=f"{setting} of rpi '{value}'. Did you mean '{meant}'"):
        Rpi(**{setting: value})


@pytest.mark.parametrize("layers", [3, -4, "top 4", "1 to 3"])
def test_refuses_layers_that_the_model_has_not(layers):
    adapter, _ = loaded("bert")
    with pytest.raises(UnsupportedError, match=r"the model has no layers .* numbered from 0 to 2"):
        raison.explain(adapter, TEXTS[1], Rpi(baselines=1, steps=1, layers=layers))
