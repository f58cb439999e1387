"""The ensemble against its formula, member by member, and against members that are explained alone."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.methods.ensemble import GROUPS, Ensemble
from tests.tiny import TINY
from tests.toy_capabilities import ToyAttention, ToyLayers, ToyPasses
from tests.toys import TEXTS, Attending, Linear, Product, generators, make_problem

SMALL = ("lime(samples=20)", "kernel_shap(samples=20)", "integrated_gradients(steps=5)", "saliency", "occlusion")
TEXT = "not a terrible film . good fine um"


def literal(rows: list[tuple[float, ...]], normalise: str) -> list[float]:
    """Section 3.4 of the thesis: each member divided by its own sum, then the mean, one unit at a time."""
    found = [0.0] * len(rows[0])
    for row in rows:
        size = sum(abs(score) for score in row) if normalise == "absolute" else sum(row)
        for unit, score in enumerate(row):
            found[unit] += (score / size if size else 0.0) / len(rows)
    return found


@pytest.mark.parametrize("normalise", ["absolute", "sum"])
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("toy", [Linear, Product])
def test_is_the_mean_of_what_the_members_say_alone(toy: type, unit: str, normalise: str) -> None:
    """Tokenwise and unitwise members, random ones with their own draws; texts of different lengths in one batch."""
    model, method = toy(), Ensemble(SMALL, normalise)
    texts = list(TEXTS[:3])
    together = raison.explain(model, texts, method, unit=unit, seed=3, target=1, of="logit")
    alone = [raison.explain(model, texts, member, unit=unit, seed=3, target=1, of="logit") for member in SMALL]
    for text, explanation in enumerate(together):
        expected = literal([of_member[text].scores for of_member in alone], normalise)
        np.testing.assert_allclose(explanation.scores, expected, rtol=1e-9, atol=1e-12)
        assert max(abs(score) for score in expected) > 0.05


def test_equals_members_on_a_transformer() -> None:
    model = raison.load(*TINY["bert"]())
    members = ("kernel_shap(samples=12)", "attention_average", "attention_rollout(residual=False)", "input_x_gradient")
    text = "the film is not a quiet pleasure"
    found = raison.explain(model, text, Ensemble(members))
    rows = [raison.explain(model, text, member).scores for member in members]
    np.testing.assert_allclose(found.scores, literal(rows, "absolute"), rtol=1e-5, atol=1e-7)


def test_a_method_of_several_parts_is_the_one_that_runs_alone() -> None:
    member = "rpi(layers=(0, 1), baselines=2, steps=2)"
    found = raison.explain(Attending(), TEXT, Ensemble((member, "occlusion")), target=1)
    rows = [raison.explain(Attending(), TEXT, name, target=1).scores for name in (member, "occlusion")]
    np.testing.assert_allclose(found.scores, literal(rows, "absolute"), rtol=1e-9, atol=1e-12)


def test_removals_that_members_share_count_once() -> None:
    """Occlusion asks for the whole text and each unit removed; exact Shapley values for all of these, and more."""
    model, text = Linear(), "good film bad um"
    shap, occlusion = (raison.explain(model, text, name) for name in ("kernel_shap", "occlusion"))
    both = raison.explain(model, text, Ensemble(("kernel_shap", "occlusion")))
    assert shap.evaluations == both.evaluations == 2**4
    assert occlusion.evaluations > 0
    method = Ensemble(("kernel_shap", "occlusion"))
    assert both.evaluations <= method.cost(4).forwards == shap.evaluations + occlusion.evaluations
    gradients = raison.explain(model, text, Ensemble(("saliency", "input_x_gradient")))
    assert (gradients.evaluations, gradients.gradients) == (2, 2)


def test_members_that_are_compared_beside_it_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, passes = raison.load(*TINY["bert"]()), []
    kind = type(model.ask(WordEmbeddings))
    plain = kind.path_gradients
    monkeypatch.setattr(kind, "path_gradients", lambda *given: (passes.append(len(given[3])), plain(*given))[1])
    members = ["integrated_gradients(steps=5)", "occlusion"]
    found = raison.compare(model, ["a quiet sea", "not bad"], [*members, Ensemble(members)], ["gini"], progress=False)
    assert passes == [5]
    alone = raison.compare(model, ["a quiet sea", "not bad"], [Ensemble(members)], ["gini"], progress=False)
    assert passes == [5, 5]
    label = alone.rows[0].method
    np.testing.assert_allclose(found[label]["gini"].values, alone[label]["gini"].values, rtol=1e-6)
    assert found[label].evaluations == alone[label].evaluations
    assert found[label].gradients == alone[label].gradients


def test_the_notes_of_members_are_kept_apart() -> None:
    found = raison.explain(Linear(), TEXT, Ensemble(("lime", "kernel_shap", "occlusion")))
    assert set(found.notes["members"]) == {"lime", "kernel_shap"}
    assert found.notes["members"]["lime"]["r_squared"] > 0
    assert found.notes["members"]["kernel_shap"]["solution"] == "least squares"


def test_a_member_without_scores_counts_as_zeros() -> None:
    """A model that ignores the only word: all of its scores are zero, and nothing is divided by zero."""
    model = Linear()
    model.table[:] = model.table[0]
    found = raison.explain(model, "film good", Ensemble(("occlusion", "random")), target=1)
    scores = raison.explain(model, "film good", "random", target=1).scores
    np.testing.assert_allclose(found.scores, literal([(0.0, 0.0), scores], "absolute"))
    assert raison.explain(model, "film good", Ensemble(("occlusion", "random"), "sum"), target=1).scores != (0.0, 0.0)


def test_a_negative_sum_turns_the_signs_and_says_so() -> None:
    """The thesis's words on a text against the target; the default keeps the signs."""
    members = ("occlusion", "kernel_shap")
    plain, literally = (
        raison.explain(Linear(), "bad film", Ensemble(members, normalise), target=1, of="logit")
        for normalise in ("absolute", "sum")
    )
    assert plain.scores[0] < 0 < literally.scores[0]
    assert sum(literally.scores) == pytest.approx(1)
    assert literally.notes["turned"] == list(members)
    assert "turned" not in plain.notes


def test_scores_that_cancel_out_have_no_sum() -> None:
    """Two words with opposite effects: g is linear in the table, of which the second is made minus the first."""
    model = Linear()
    mask, good, bad = 3, 5, 6
    model.table[bad] = 2 * model.table[mask] - model.table[good]
    with pytest.raises(InputError, match=r"occlusion's scores.*normalise='absolute'"):
        raison.explain(model, "good bad", Ensemble(("occlusion", "lime"), "sum"), target=1, of="logit")
    assert raison.explain(model, "good bad", Ensemble(("occlusion", "lime")), target=1, of="logit").scores[0] > 0


def test_the_groups_of_the_thesis() -> None:
    assert [len(GROUPS[name]) for name in ("top3", "all")] == [3, 7]
    named, listed = (
        raison.explain(Linear(), TEXT, Ensemble(methods)).scores for methods in ("top3", list(GROUPS["top3"]))
    )
    assert named == listed
    whole = raison.explain(Attending(), TEXT, "ensemble(methods='all')")
    rows = [raison.explain(Attending(), TEXT, name).scores for name in GROUPS["all"]]
    np.testing.assert_allclose(whole.scores, literal(rows, "absolute"), rtol=1e-9, atol=1e-12)
    assert set(GROUPS["top3"]) < set(GROUPS["all"])


def test_draws_do_not_depend_on_the_generators_it_is_given() -> None:
    """Its members draw from the problem's own, by their names."""
    problem = make_problem(Linear(), TEXTS)
    method = Ensemble(("lime(samples=10)", "random"))
    first, second = (method.attribute(problem, generators(len(TEXTS), seed)) for seed in (0, 1))
    assert torch.equal(first, second)
    other = make_problem(Linear(), TEXTS)
    assert [rng.random() for rng in other.generators("lime")] == [rng.random() for rng in problem.generators("lime")]
    assert problem.generators("lime")[0].random() != problem.generators("random")[0].random()


def test_missing_capabilities_are_told_member_by_member() -> None:
    class Closed(Linear):
        kinds = (ToyPasses, ToyAttention, ToyLayers)

    with pytest.raises(UnsupportedError, match="Leave these members out") as error:
        raison.explain(Closed(), TEXT, "ensemble(methods='all')")
    assert [reason.partition(" ")[0] for reason in error.value.reasons] == [
        "integrated_gradients",
        "saliency",
        "input_x_gradient",
    ]
    assert raison.explain(Closed(), TEXT, Ensemble(("lime", "attention_average"))).scores


@pytest.mark.parametrize(
    ("methods", "match"),
    [
        (("lime", "kernel_shapp"), "Did you mean 'kernel_shap'"),
        ("top4", "Did you mean 'top3'"),
        (("lime", "lime(samples=9, sample=3)"), "setting of lime"),
    ],
)
def test_unknown_names(methods: tuple[str, ...] | str, match: str) -> None:
    with pytest.raises(UnknownNameError, match=match):
        Ensemble(methods)


@pytest.mark.parametrize(
    ("methods", "match"),
    [
        (("lime", "ensemble"), "ensemble cannot be a member"),
        (("lime", "ensemble(methods='all')"), "ensemble cannot be a member"),
        (("lime",), "at least two"),
        ((), "at least two"),
        (("lime", "lime"), "named twice"),
    ],
)
def test_members_that_cannot_be_averaged(methods: tuple[str, ...], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Ensemble(methods)


def test_normalisation_has_two_names() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'absolute'"):
        Ensemble(normalise="absolut")
    assert asdict(Ensemble()) == {"methods": "top3", "normalise": "absolute"}
