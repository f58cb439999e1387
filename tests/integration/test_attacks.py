"""Attacks on toys whose answer is known, on tiny models, and by word substitution."""

import copy
import math

import pytest
import torch

import raison
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.methods.input_x_gradient import InputXGradient
from raison.methods.saliency import Saliency
from raison.models.adapters.classifier import Classifier
from raison.progress import hearing
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attacks import attacks, boundary, undifferentiable
from raison.trust.neighbours import Neighbours
from raison.trust.substitution import Substitution, substitutions
from tests.contracts.test_methods import fingerprint
from tests.tiny import build
from tests.toys import TEXTS as TOY_TEXTS
from tests.toys import VOCABULARY, Linear, ToyModel

POSITIVE = Settings(target=1, of="logit")
TEXTS = ["the film is not a quiet pleasure , it is a loud one", "dull", "a dull plot , but the acting is good"]
BOTH = [EmbeddingAttack(objective=o, steps=3, learning_rate=1.0) for o in ("constrained", "unconstrained")]


class Wave(ToyModel):
    """g = 5 + sum over tokens of sin(a) / 2 with a = e . (1, 0.5): always positive, and each token's slope is cos(a).

    Every slope can be taken away: a change of pi / 2 - a along (1, 0.5) makes cos(a) zero.
    """

    def gain(self, embeds, own):
        return 5 + (torch.sin(embeds @ embeds.new_tensor([1.0, 0.5])) * own).sum(1) / 2


def records(*args, **keywords):
    return [record for portion in attacks(*args, **keywords) for record in portion]


def tiny(name="bert"):
    model, tokenizer = build(name)
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def test_saliency_of_a_linear_model_cannot_be_attacked():
    plans = [EmbeddingAttack(objective=o, steps=50) for o in ("constrained", "unconstrained")]
    found = records(Linear(), TOY_TEXTS, [Saliency()], POSITIVE, plans)
    assert len(found) == len(TOY_TEXTS) * 2 * 2
    for record in found:
        assert record.rank_change == 0
        assert record.sum_change == pytest.approx(0, abs=1e-12)
    # Nothing moves, under either objective: the patience is over first.
    assert {record.steps for record in found if record.attack == "embedding"} == {20}
    assert all(record.held for record in found if record.attack == "embedding")


@pytest.mark.parametrize("objective", ["constrained", "unconstrained"])
def test_a_known_attack_is_found(objective):
    texts = ["film good bad", "fine film film um"]
    plan = EmbeddingAttack(objective=objective, steps=120, learning_rate=0.5, k=1)
    found = records(Wave(), texts, [Saliency()], POSITIVE, plan)
    attacked = [record for record in found if record.attack == "embedding"]
    for record in attacked:
        assert record.held
        assert record.rank_change == 1
        text = texts[record.text].split()
        terms = [sum(a * b for a, b in zip(VOCABULARY[word], (1, 0.5), strict=True)) for word in text]
        # |d g / d e| is |cos a| / 2 times the length of (1, 0.5), and nothing of it is left.
        highest = max(abs(math.cos(term)) for term in terms) / 2 * math.hypot(1, 0.5)
        assert record.sum_change == pytest.approx(highest, rel=1e-3)
        assert abs(record.probability_change) < 1e-3
    # Within the same bound, chance finds something worse.
    for record in found:
        if record.attack == "noise":
            assert record.sum_change < next(r.sum_change for r in attacked if r.text == record.text)
            assert record.steps == plan.draws


def test_the_bound_holds():
    # cos(a) cannot reach zero with so small a change: a moves by 0.1 * (1 + 0.5) at most.
    plan = EmbeddingAttack(objective="unconstrained", steps=100, learning_rate=0.5, epsilon=0.1, k=1)
    (record,) = [r for r in records(Wave(), ["film good"], [Saliency()], POSITIVE, plan) if r.attack == "embedding"]
    a = 0.2 - 0.15  # of "film", the steepest
    fall = (math.cos(a) - math.cos(a + 0.15)) / 2 * math.hypot(1, 0.5)
    assert record.sum_change == pytest.approx(fall, rel=1e-6)


def test_without_a_change_that_keeps_the_prediction_nothing_is_claimed():
    class Narrow(Wave):
        """Positive at the text itself, and only there."""

        def gain(self, embeds, own):
            moved = (embeds - self.table[self.known]).abs().sum((1, 2))
            return super().gain(embeds, own) - 1e5 * moved

    model = Narrow()
    model.known = model.encode(["film good"], "word").input_ids
    for record in records(model, ["film good"], [Saliency()], POSITIVE, EmbeddingAttack(steps=10, learning_rate=1.0)):
        assert (record.held, record.rank_change, record.sum_change, record.probability_change) == (False, 0, 0, 0)


def test_rows_do_not_depend_on_their_batch_and_the_model_is_untouched():
    model = tiny()
    before = fingerprint(model)
    together = {r.key: r for r in records(model, TEXTS, [InputXGradient()], Settings(), BOTH)}
    assert fingerprint(model) == before
    assert len(together) == len(TEXTS) * 4
    for number, text in enumerate(TEXTS):
        for plan in BOTH:
            for alone in records(model, [text], [InputXGradient()], Settings(), plan):
                batched = together[(alone.method, alone.attack, alone.objective, number)]
                assert (alone.k, alone.steps, alone.held) == (batched.k, batched.steps, batched.held)
                assert alone.sum_change == pytest.approx(batched.sum_change, rel=1e-3, abs=1e-5)
                assert alone.probability_change == pytest.approx(batched.probability_change, rel=1e-3, abs=1e-5)
    assert max(record.sum_change for record in together.values()) > 1e-3


def test_what_is_done_is_not_done_again():
    model = Wave()
    found = records(model, TOY_TEXTS, [Saliency()], POSITIVE, BOTH)
    done = {record.key for record in found if record.text > 0}
    again = records(model, TOY_TEXTS, [Saliency()], POSITIVE, BOTH, done=done)
    assert {record.key for record in again} == {record.key for record in found} - done


def test_long_attacks_are_written_in_portions_and_tell_their_steps(monkeypatch):
    model = tiny()
    whole = records(model, TEXTS, [Saliency()], POSITIVE, BOTH)
    monkeypatch.setattr("raison.trust.attacks._AT_RISK", 2 * BOTH[0].steps)
    told = []
    with hearing(told.append):
        portions = list(attacks(model, TEXTS, [Saliency()], POSITIVE, BOTH))
    # A portion is two attacks, each with its control.
    assert [len(portion) for portion in portions] == [4] * len(TEXTS)
    assert sum(told) >= BOTH[0].steps * len(TEXTS)
    parts = {record.key: record for portion in portions for record in portion}
    assert len(parts) == len(whole)
    for record in whole:
        assert record.rank_change == parts[record.key].rank_change
        assert record.sum_change == pytest.approx(parts[record.key].sum_change, abs=1e-5)


def test_a_constrained_attack_changes_the_probability_less():
    plans = [
        EmbeddingAttack(objective=o, steps=30, learning_rate=0.5, alpha=0.2, beta=20.0)
        for o in ("constrained", "unconstrained")
    ]
    found = records(tiny(), TEXTS, [InputXGradient()], Settings(), plans)
    changes = {
        o: sum(abs(r.probability_change) for r in found if r.attack == "embedding" and r.objective == o)
        for o in ("constrained", "unconstrained")
    }
    assert changes["constrained"] < changes["unconstrained"]


def test_a_relative_bound_counts_in_deviations_of_the_table():
    model = tiny()
    deviation = float(model.embedding_table.weight.detach().double().std())
    settings = {"steps": 4, "learning_rate": 5.0}
    found, same = (
        [r.to_dict() for r in records(model, TEXTS[:1], [Saliency()], Settings(), plan)]
        for plan in (
            EmbeddingAttack(epsilon=0.1, relative=True, **settings),
            EmbeddingAttack(
                epsilon=0.1 * deviation, steps=4, learning_rate=5.0 * deviation, tolerance=1e-5 * deviation
            ),
        )
    )
    assert found == same
    with pytest.raises(UnsupportedError, match="exposes no embedding table"):
        records(Wave(), ["film"], [Saliency()], POSITIVE, EmbeddingAttack(relative=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon of an attack cannot be 0.0: give a number above 0"),
        ({"epsilon": -1.0}, "epsilon of an attack cannot be -1.0"),
        ({"share": 0.0}, "share of an attack cannot be 0.0"),
        ({"k": 0}, "k of an attack cannot be 0"),
        ({"steps": 0}, "steps of an attack"),
        ({"alpha": 0.0}, "alpha of an attack"),
        ({"beta": -1.0}, "beta of an attack"),
        ({"learning_rate": math.nan}, "learning_rate"),
    ],
)
def test_settings_that_make_no_attack_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        EmbeddingAttack(**settings)


def test_unknown_names_k_above_the_units_and_equal_objectives_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'constrained'"):
        EmbeddingAttack(objective="constraint")
    with pytest.raises(UnknownNameError, match="Did you mean 'descent'"):
        EmbeddingAttack(optimiser="descend")
    with pytest.raises(InputError, match="k is 3, and the text 'good film' has 2 units"):
        attacks(Wave(), ["film good bad", "good film"], [Saliency()], POSITIVE, EmbeddingAttack(k=3))
    with pytest.raises(InputError, match="same objective"):
        attacks(Wave(), ["film"], [Saliency()], POSITIVE, [EmbeddingAttack(), EmbeddingAttack(steps=3)])
    for tolerance in (0.0, -1.0):
        with pytest.raises(InputError, match="tolerance of an attack cannot be"):
            Substitution(tolerance=tolerance)


def test_methods_that_cannot_be_attacked_are_named_with_the_reason():
    methods = [CATALOGUE.create(name) for name in ("kernel_shap", "occlusion", "aml", "saliency")]
    reasons = undifferentiable(Wave(), methods)
    assert set(reasons) == {"kernel_shap", "occlusion", "aml"}
    assert "random draws" in reasons["kernel_shap"]
    assert "evaluates the model on texts" in reasons["occlusion"]
    assert "trained" in reasons["aml"]
    with pytest.raises(UnsupportedError, match="occlusion: it only evaluates the model on texts"):
        attacks(Wave(), ["film"], methods[1:2], POSITIVE, EmbeddingAttack())


def test_texts_on_the_boundary_are_named_and_left_out():
    class Even(Linear):
        """Undecided about short texts."""

        def gain(self, embeds, own):
            return super().gain(embeds, own) * (own.sum(1) > 3)

    texts = ["film", "film good bad"]
    assert boundary(Even(), texts, POSITIVE) == [0]
    found = records(Even(), texts, [Saliency()], POSITIVE, EmbeddingAttack(steps=2))
    assert {record.text for record in found} == {1}


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_substitution_keeps_prediction_and_units(name):
    model = tiny(name)
    methods = [CATALOGUE.create(spec) for spec in ("occlusion", "input_x_gradient")]
    plan = Substitution(neighbours=4, swaps=2, tries=5, tolerance=0.3)
    before = fingerprint(model)
    found = [one for some in substitutions(model, TEXTS, methods, Settings(), plan) for one in some]
    assert fingerprint(model) == before
    assert len(found) == len(TEXTS) * len(methods)
    for one in found:
        record, old, new = one.record, one.before, one.after
        assert (old.text, record.attack) == (TEXTS[record.text], "substitution")
        assert len(old.units) == len(new.units)
        changed = [a.text != b.text for a, b in zip(old.units, new.units, strict=True)]
        assert sum(changed) == record.steps <= 2
        assert old.target == new.target
        p, q = (e.probabilities[e.classes.index(e.target)] for e in (old, new))
        assert abs(p - q) <= 0.3
        assert record.probability_change == pytest.approx(p - q, abs=1e-6)
        top = sorted(range(len(old.scores)), key=lambda i, s=old.scores: -s[i])[: record.k]
        assert record.sum_change == pytest.approx(sum(old.scores[i] - new.scores[i] for i in top), abs=1e-9)
        assert (record.sum_change > 0) == (record.steps > 0)
    assert any(one.record.steps for one in found)
    again = [one for some in substitutions(model, TEXTS, methods, Settings(), plan) for one in some]
    assert [one.record for one in again] == [one.record for one in found]
    done = {one.record.key for one in found}
    assert list(substitutions(model, TEXTS, methods, Settings(), plan, done=done)) == []
    last = len(TEXTS) - 1
    (alone,) = substitutions(model, TEXTS, methods, Settings(), plan, only=range(last, last + 1))
    assert [one.record for one in alone] == [one.record for one in found if one.record.text == last]


def test_neighbours_are_whole_words_of_the_nearest_embeddings():
    model = tiny()
    known = Neighbours.of(model)
    table = model.embedding_table.weight.detach()
    vocabulary = model.tokenizer.get_vocab()
    token = vocabulary["story"]
    found = known.nearest(token, 5)
    words = [w for w in vocabulary if w.isascii() and w.isalpha() and len(w) > 1 and w != "story"]
    cosines = {w: float(torch.cosine_similarity(table[vocabulary[w]], table[token], dim=0)) for w in words}
    assert found == sorted(words, key=lambda w: -cosines[w])[:5]
    encoding = model.encode(["Story about nobody, smithy!"], "word")
    places = known.places(encoding)
    assert [encoding.texts[0][place.start : place.end] for place in places] == ["Story", "about", "nobody"]


def test_substitution_needs_words_to_replace():
    with pytest.raises(UnsupportedError, match="no embedding table"):
        substitutions(Wave(), ["film"], [Saliency()], POSITIVE, Substitution())
    model = tiny()
    with pytest.raises(InputError, match="k is 2, and the text 'dull' has 1 units"):
        substitutions(model, ["dull"], [Saliency()], Settings(), Substitution(k=2))


def test_half_precision_is_attacked_too():
    model = tiny()
    half = raison.load(copy.deepcopy(model.model).to(torch.bfloat16), model.tokenizer)
    for record in records(half, TEXTS[:2], [Saliency()], Settings(), BOTH):
        assert math.isfinite(record.sum_change)
