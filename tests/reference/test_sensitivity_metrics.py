"""Infidelity and max_sensitivity against literal versions, one removed set and one shift at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import Shift, WordEmbeddings
from raison.core.errors import InputError
from raison.core.metric import KeepRows, Need
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.targets.target import Target
from raison.metrics.infidelity import Infidelity
from raison.metrics.max_sensitivity import MaxSensitivity
from tests.toys import TOYS, Linear, Product, ToyModel

TEXT = "not a terrible film . good fine um"


@dataclass
class Literal:
    """core.metric.Evidence for one text, one keep and one shift at a time; remembers what it was asked for."""

    model: LanguageModel
    explanation: Explanation
    asked: list[tuple[bool, ...]] = field(default_factory=list)
    rationales: tuple[np.ndarray, ...] = ()

    def value(self, keep: np.ndarray, removal: str) -> float:
        explanation = self.explanation
        encoding = self.model.encode([explanation.text], explanation.unit)
        (logits,) = self.model.masked_logits(encoding, [torch.from_numpy(keep)[None]], removal)
        classes = explanation.classes
        index, against = (
            None if name is None else torch.tensor([classes.index(name)])
            for name in (explanation.target, explanation.against)
        )
        return Target(index, against, explanation.of, self.model.multi_label).scalar(logits.double()).item()

    def values(self, keeps: KeepRows, removal: str) -> np.ndarray:
        self.asked += [tuple(keep.tolist()) for keep in keeps]
        return np.array([self.value(keep, removal) for keep in keeps])

    def probabilities(self, keeps: KeepRows, removal: str) -> np.ndarray:
        raise AssertionError("these metrics judge the explained value, whatever it is")

    log_probabilities = probabilities

    def shifted_scores(self, shift: Shift) -> np.ndarray:
        e = self.explanation
        with self.model.ask(WordEmbeddings).shifted(shift):
            again = raison.explain(
                self.model, e.text, e.method, unit=e.unit, target=e.target, of=e.of, removal=e.removal, seed=e.seed
            )
        return np.array(again.scores)

    def reworded(self, rewording: object) -> None:
        raise AssertionError("these metrics ask for no other wording")


def removed_sets(metric: Infidelity, explanation: Explanation) -> list[list[int]]:
    rows = ~metric.keeps(explanation)[explanation.removal][1:]
    return [np.flatnonzero(row).tolist() for row in rows]


def literal_infidelity(model: LanguageModel, explanation: Explanation, metric: Infidelity) -> float:
    """Definition 2.1, a removed set at a time; the best factor that is not negative, by a search over factors."""
    evidence = Literal(model, explanation)
    units = len(explanation.units)
    full = evidence.value(np.ones(units, dtype=bool), explanation.removal)
    pairs = []
    for removed in removed_sets(metric, explanation):
        keep = np.array([unit not in removed for unit in range(units)])
        pairs.append((sum(explanation.scores[i] for i in removed), full - evidence.value(keep, explanation.removal)))

    def error(factor: float) -> float:
        return sum((factor * predicted - change) ** 2 for predicted, change in pairs) / len(pairs)

    return best(error) if metric.scaled else error(1.0)


def best(error: Callable[[float], float]) -> float:
    """The least value over factors >= 0 of a convex function, by ternary search."""
    low, high = 0.0, 1e4
    for _ in range(300):
        third = (high - low) / 3
        low, high = (low, high - third) if error(low + third) < error(high - third) else (low + third, high)
    return error(low)


def explain(model: LanguageModel, method: str = "occlusion", of: str = "logit", removal: str = "mask") -> Explanation:
    return raison.explain(model, TEXT, method, target=1, of=of, removal=removal)


@pytest.mark.parametrize("toy", TOYS)
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("of", "removal"), [("probability", "mask"), ("margin", "delete")])
def test_infidelity(toy: type[ToyModel], scaled: bool, of: str, removal: str) -> None:
    model, metric = toy(), Infidelity(samples=20, scaled=scaled)
    for method in ("random", "occlusion"):
        explanation = explain(model, method, of, removal)
        found = metric.measure(explanation, Literal(model, explanation))
        assert found == pytest.approx(literal_infidelity(model, explanation, metric), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("scaled", [True, False])
def test_exact_scores_have_no_infidelity(scaled: bool) -> None:
    model, metric = Linear(), Infidelity(scaled=scaled)
    exact = explain(model)
    assert metric.measure(exact, Literal(model, exact)) == pytest.approx(0, abs=1e-20)
    shuffled = replace(exact, scores=exact.scores[::-1])
    reverse = replace(exact, scores=tuple(-score for score in exact.scores))
    nothing = replace(exact, scores=(0.0,) * len(exact.scores))
    wrong, worst, zero = (metric.measure(e, Literal(model, e)) for e in (shuffled, reverse, nothing))
    assert wrong > 1e-3
    assert worst == pytest.approx(zero if scaled else 4 * zero), "the wrong sign is never better than no scores"


def test_scaled_infidelity_does_not_depend_on_the_scale() -> None:
    model = Product()
    explanation = explain(model)
    evidence = Literal(model, explanation)
    first = Infidelity().measure(explanation, evidence)
    plain = Infidelity(scaled=False).measure(explanation, evidence)
    for factor in (7.5, 1e-200, 1e200):
        other = replace(explanation, scores=tuple(factor * score for score in explanation.scores))
        assert Infidelity().measure(other, evidence) == pytest.approx(first, rel=1e-9)
    assert first < plain


def test_removed_sets_are_those_of_the_text() -> None:
    """The same for all methods and predictions, a longer draw begins with a shorter one; all of it is announced."""
    model = Linear()
    explanation, other = explain(model), explain(Product(), "random", "probability")
    assert removed_sets(Infidelity(), explanation) == removed_sets(Infidelity(), other)
    assert removed_sets(Infidelity(128), explanation)[:64] == removed_sets(Infidelity(64), explanation)
    differing = raison.explain(model, TEXT + " .", "occlusion")
    assert [s[:1] for s in removed_sets(Infidelity(), differing)] != [
        s[:1] for s in removed_sets(Infidelity(), explanation)
    ]
    evidence = Literal(model, explanation)
    Infidelity().measure(explanation, evidence)
    announced = {tuple(row.tolist()) for row in Infidelity().keeps(explanation)["mask"]}
    assert set(evidence.asked) <= announced


def test_sizes_and_units_are_uniform() -> None:
    explanation = explain(Linear())
    units = len(explanation.units)
    removed = removed_sets(Infidelity(samples=8000), explanation)
    sizes = np.bincount([len(s) for s in removed], minlength=units + 1)
    assert sizes[0] == 0
    np.testing.assert_allclose(sizes[1:] / len(removed), 1 / units, atol=0.015)
    pairs = np.zeros((units, units))
    for first, second in (s for s in removed if len(s) == 2):
        pairs[first, second] += 1
    share = pairs[np.triu_indices(units, 1)] / pairs.sum()
    np.testing.assert_allclose(share, 2 / (units * (units - 1)), atol=0.025)


def test_one_unit() -> None:
    explanation = raison.explain(Linear(), "good", "occlusion", target=1, of="logit")
    assert Infidelity().measure(explanation, Literal(Linear(), explanation)) == pytest.approx(0, abs=1e-20)


@pytest.mark.peer
@pytest.mark.parametrize("scaled", [True, False])
def test_infidelity_equals_captum(scaled: bool) -> None:
    """captum's, given the same sets, on a player game: a unit is a feature that is 1 or 0."""
    from captum.metrics import infidelity

    model, metric = Product(), Infidelity(samples=32, scaled=scaled)
    explanation = explain(model)
    evidence = Literal(model, explanation)
    removed = torch.from_numpy(~metric.keeps(explanation)["mask"][1:]).double()

    def values(present: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(evidence.values(present.numpy() > 0.5, "mask"))

    expected = infidelity(
        values,
        lambda inputs: (removed, inputs - removed),
        torch.ones(1, len(explanation.units), dtype=torch.float64),
        torch.tensor([explanation.scores], dtype=torch.float64),
        n_perturb_samples=32,
        normalize=scaled,
    )
    found = metric.measure(explanation, evidence)
    assert found == pytest.approx(expected.item(), rel=1e-6)
    assert found > 1e-3


@pytest.mark.parametrize("toy", [Linear, Product])
def test_max_sensitivity(toy: type[ToyModel]) -> None:
    """On a linear model, by hand from the moved table; on another, explained again."""
    model, metric = toy(), MaxSensitivity(radius=0.1, samples=4)
    explanation = explain(model)
    scores = np.array(explanation.scores)
    ratios = []
    for draw in range(4):
        with model.ask(WordEmbeddings).shifted(Shift(0.1, draw)):
            again = np.array(explain(model).scores)
        ratios.append(np.sqrt(sum((again - scores) ** 2)) / np.sqrt(sum(scores**2)))
    found = metric.measure(explanation, Literal(model, explanation))
    assert found == pytest.approx(max(ratios), rel=1e-9)
    assert max(ratios) > 1.01 * min(ratios)


def test_max_sensitivity_of_a_linear_model_by_hand() -> None:
    """A kept word's occlusion score moves by its own vector's share in g: the mask token stays where it is."""
    model = Linear()
    explanation = raison.explain(model, "good bad good", "occlusion", target=1, of="logit")
    before = model.table.clone()
    with model.ask(WordEmbeddings).shifted(Shift(0.05, 0)):
        moves = (model.table - before) @ torch.tensor([1.0, 0.5], dtype=torch.float64)
    ids = model.encode(["good bad good"], "word").input_ids[0, 1:4]
    expected = moves[ids].norm().item() / np.linalg.norm(explanation.scores)
    found = MaxSensitivity(radius=0.05, samples=1).measure(explanation, Literal(model, explanation))
    assert found == pytest.approx(expected, rel=1e-9)


def test_max_sensitivity_has_no_scale_and_needs_scores() -> None:
    model = Product()
    explanation = explain(model)

    @dataclass
    class Scaled(Literal):
        def shifted_scores(self, shift: Shift) -> np.ndarray:
            return 5 * super().shifted_scores(shift)

    scaled = replace(explanation, scores=tuple(5 * score for score in explanation.scores))
    first = MaxSensitivity().measure(explanation, Literal(model, explanation))
    assert MaxSensitivity().measure(scaled, Scaled(model, explanation)) == pytest.approx(first)
    nothing = replace(explanation, scores=(0.0,) * len(explanation.scores))
    assert np.isnan(MaxSensitivity().measure(nothing, Literal(model, nothing)))


def test_a_method_that_ignores_the_model_is_stable() -> None:
    explanation = explain(Linear(), "random")
    assert MaxSensitivity(samples=2).measure(explanation, Literal(Linear(), explanation)) == 0


def test_announcements_and_needs() -> None:
    metric = MaxSensitivity(radius=0.3, samples=3)
    assert metric.shifts(explain(Linear())) == (Shift(0.3, 0), Shift(0.3, 1), Shift(0.3, 2))
    assert metric.needs == {Need.EMBEDDINGS}
    assert metric.keeps(explain(Linear())) == {}


@pytest.mark.parametrize(
    "settings", [lambda: Infidelity(samples=0), lambda: MaxSensitivity(samples=0), lambda: MaxSensitivity(radius=0.0)]
)
def test_settings_that_cannot_be_used(settings: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="give"):
        settings()
