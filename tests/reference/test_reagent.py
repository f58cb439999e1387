import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

import raison
from raison.core.errors import InputError, UnsupportedError
from raison.methods.reagent import Reagent
from raison.models.derived.masked_lm import FillIn
from tests.tiny import build
from tests.toys import TEXTS, Ignored, Linear, generators, make_problem


def literal(value, units, rng, settings):
    """Zhao and Shan 2024, algorithm 1, one run after another; `value(keep)` gives all class logits.

    Draws come from one generator in a documented order: the scores of all runs, then in each step the subsets of the
    runs that go on.
    """
    scores = rng.random((settings.runs, units)).tolist()
    replaced = min(units, max(1, round(settings.replaced * units)))
    kept = min(units, max(1, round(settings.kept * units)))
    open_, ended, steps = list(range(settings.runs)), [], [0] * settings.runs

    def probability(keep):
        logits = value(keep)
        return math.exp(logits[1]) / sum(math.exp(entry) for entry in logits)

    def rank(keep):
        logits = value(keep)
        return sorted(logits, reverse=True).index(logits[1]) + 1

    own, most = probability([True] * units), max(settings.tolerance, rank([True] * units))
    for step in range(1, settings.max_steps + 1):
        if not open_:
            break
        orders = rng.random((len(open_), units)).argsort(1).tolist()
        going = []
        for run, order in zip(open_, orders, strict=True):
            steps[run] += 1
            keep = [place >= replaced for place in order]
            change = own - probability(keep)
            delta = math.log((1 + change) / 2) - math.log(1 - (1 + change) / 2)
            scores[run] = [s - delta if stays else s + delta for s, stays in zip(scores[run], keep, strict=True)]
            best = sorted(range(units), key=lambda unit, run=run: (-scores[run][unit], unit))[:kept]
            if (
                step >= min(settings.min_steps, settings.max_steps)
                and rank([unit in best for unit in range(units)]) <= most
            ):
                ended.append(run)
            else:
                going.append(run)
        open_ = going
    counted = ended or list(range(settings.runs))
    shares = []
    for run in counted:
        powers = [math.exp(s) for s in scores[run]]
        shares.append([power / sum(powers) for power in powers])
    mean = [sum(share[unit] for share in shares) / len(shares) for unit in range(units)]
    return mean, len(ended) / settings.runs, sum(steps) / settings.runs


def class_logits(model, encoding, text, removal):
    def value(keep):
        (found,) = model.masked_logits(encoding.select([text]), [torch.tensor([keep])], removal)
        return found[0].double().tolist()

    return value


@pytest.mark.parametrize(
    "method",
    [
        Reagent(min_steps=1, max_steps=6),
        Reagent(runs=3, replaced=0.5, kept=0.2, min_steps=2, max_steps=9),
        Reagent(runs=2, min_steps=4, max_steps=4),
        Reagent(runs=2, max_steps=3),
        Reagent(runs=2, tolerance=2, min_steps=1, max_steps=5),
    ],
)
@pytest.mark.parametrize("model", [Linear(), Ignored()])
def test_equals_one_run_after_another_on_toys(model, method):
    problem = make_problem(model, TEXTS)
    scores = method.attribute(problem, generators(len(TEXTS)))
    for text, (rng, units) in enumerate(zip(generators(len(TEXTS)), problem.encoding.unit_counts, strict=True)):
        value = class_logits(model, problem.encoding, text, "mask")
        expected, ended, steps = literal(value, units, rng, method)
        np.testing.assert_allclose(scores[text, :units], expected, atol=1e-10)
        assert problem.ledger.notes[text] == {"ended": ended, "steps": steps}
        assert problem.ledger.evaluations[text] <= method.cost(units).forwards
        assert not scores[text, units:].any()


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_equals_one_run_after_another_on_tiny_models(name):
    model = raison.load(*build(name))
    texts = ["a dull plot , but the end is good", "a quiet film"]
    method = Reagent(runs=3, min_steps=1, max_steps=4)
    found = raison.explain(model, texts, method, target=1)
    encoding = model.encode(texts, "word")
    problem = make_problem(Linear(), ["film"])
    for text, explanation in enumerate(found):
        (rng,) = raison_generators(problem, encoding.texts[text])
        value = class_logits(model, encoding, text, explanation.removal)
        expected, ended, _ = literal(value, len(explanation.units), rng, method)
        np.testing.assert_allclose(explanation.scores, expected, atol=1e-3)
        assert explanation.notes["ended"] == ended


def raison_generators(problem, text):
    """The driver's generator of a text: it depends on the seed, the method's name and the text alone."""
    from dataclasses import replace

    return replace(problem, encoding=replace(problem.encoding, texts=(text,))).generators("reagent")


def test_many_steps_find_what_the_class_rests_on():
    """Without a stop, the mean over random subsets tells the word that the class rests on from the others."""
    problem = make_problem(Linear(), ["um good film um um"])
    (scores,) = Reagent(runs=4, min_steps=80, max_steps=80).attribute(problem, generators(1))
    assert int(scores.argmax()) == 1
    assert float(scores.sum()) == pytest.approx(1)


def test_a_class_that_never_wins_ends_by_its_own_rank():
    """The target is second of two in the text itself, and may stay so: runs end at once."""
    problem = make_problem(Linear(), ["bad film bad"])
    Reagent(min_steps=1, max_steps=5).attribute(problem, generators(1))
    assert problem.ledger.notes[0] == {"ended": 1.0, "steps": 1.0}


def test_no_run_that_ends_gives_the_mean_of_all():
    class Needy(Linear):
        """Positive only with every word."""

        def gain(self, embeds, own):
            whole = (embeds @ embeds.new_tensor([1.0, 0.0])).isclose(embeds.new_tensor(0.6)) * own
            return 2.0 * (whole.sum(1) == 3) - 1

    problem = make_problem(Needy(), ["fine fine fine"])
    method = Reagent(runs=2, min_steps=1, max_steps=3)
    (scores,) = method.attribute(problem, generators(1))
    assert problem.ledger.notes[0] == {"ended": 0.0, "steps": 3.0}
    expected, _, _ = literal(class_logits(Needy(), problem.encoding, 0, "mask"), 3, generators(1)[0], method)
    np.testing.assert_allclose(scores, expected)


def test_a_pair_of_classes_has_no_infinite_change():
    explanation = raison.explain(raison.load(*build("bert")), "a quiet film", "reagent", target=("positive", "neutral"))
    assert sum(explanation.scores) == pytest.approx(1)


@pytest.fixture
def filler(tmp_path: Path) -> str:
    """A masked language model of its own weights, with the tiny BERT's tokenizer."""
    model, tokenizer = build("bert")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        config = BertConfig(**{**model.config.to_dict(), "vocab_size": len(tokenizer)})
        BertForMaskedLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def test_filled_tokens_stand_in_for_replaced_units(filler):
    model, tokenizer = build("bert")
    adapter = raison.load(model, tokenizer)
    text = "a dull plot , but the end is good"
    method = Reagent(runs=2, min_steps=3, max_steps=3, filler=filler)
    explanation = raison.explain(adapter, text, method, target=1)
    encoding = adapter.encode([text], "word")
    fills = FillIn(filler, tokenizer).fill(encoding)[0]

    def value(keep):
        ids = encoding.input_ids[0].clone()
        for token, unit in enumerate(encoding.unit_ids[0].tolist()):
            if unit >= 0 and not keep[unit]:
                ids[token] = fills[token]
        with torch.no_grad():
            return model(input_ids=ids[None]).logits[0].double().tolist()

    (rng,) = raison_generators(make_problem(Linear(), ["film"]), text)
    expected, _, _ = literal(value, len(explanation.units), rng, method)
    np.testing.assert_allclose(explanation.scores, expected, atol=1e-4)
    # Two texts in one batch, of which one is shorter.
    both = raison.explain(adapter, [text, "a quiet film"], method, target=1)
    np.testing.assert_allclose(both[0].scores, explanation.scores, atol=1e-5)
    assert explanation.evaluations == 1 + 2 * 3 + 2 == method.cost(9).forwards


def test_a_filler_of_another_vocabulary_or_no_classifier_is_refused(filler):
    with pytest.raises(InputError, match="another vocabulary"):
        Reagent(filler=filler).check(raison.load(*build("distilbert")))
    with pytest.raises(UnsupportedError, match="filler=None"):
        Reagent(filler=filler).check(Linear())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runs": 0}, "runs of reagent cannot be 0"),
        ({"max_steps": -1}, "max_steps"),
        ({"min_steps": 0}, "min_steps"),
        ({"replaced": 0.0}, "share of the units"),
        ({"kept": 1.5}, "kept of reagent cannot be 1.5"),
        ({"tolerance": 0}, "tolerance"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Reagent(**settings)
