"""Harmless change against a loop that explains each edited text on its own and correlates ranks by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.metric import Need
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.judging.estimate import estimate
from raison.metrics.harmless_change import HarmlessChange
from raison.text.edits import edit
from tests.tiny import TINY
from tests.toys import Linear, ToyModel

TEXTS = [
    "good film and it is not bad .",
    "the film does not bore , it is wonderful .",
    "not a terrible film . good fine um",
    "bad",
]
EDITS = ("casing", "contraction", "synonym", "neutral")


class Calm(Linear):
    """Its probability hardly moves, whatever happens to a text: every edit is harmless."""

    def gain(self, embeds: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        return super().gain(embeds, own) / 100


class Late(ToyModel):
    """g = the last five tokens' e . (1, 0.5) minus that of all others, scaled down."""

    def gain(self, embeds: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        terms = (embeds @ embeds.new_tensor([1.0, 0.5])) * own
        from_end = own.flip(1).cumsum(1).flip(1).to(embeds)
        return torch.where(from_end <= 5, terms, -terms).sum(1) / 1000


class Uncased(Linear):
    """Reads the words in lower case."""

    def encode(self, texts: list[str], unit: str, truncate: bool = False) -> Encoding:
        return replace(super().encode([text.lower() for text in texts], unit), texts=tuple(texts))


def ranks(values: list[float]) -> list[float]:
    """Ties share the mean of their places."""
    return [sum(o < v for o in values) + (sum(o == v for o in values) - 1) / 2 for v in values]


def correlation(a: list[float], b: list[float]) -> float:
    """Pearson's of the ranks, written out."""
    first, second = np.array(ranks(a)), np.array(ranks(b))
    first, second = first - first.mean(), second - second.mean()
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))


def tokens(model: LanguageModel, text: str) -> list[int]:
    return model.encode([text], "word").input_ids[0].tolist()


def covered(units: list[tuple[int, int]], span: tuple[int, int]) -> list[int]:
    return [i for i, (start, end) in enumerate(units) if start < span[1] and end > span[0]]


def literal(model: LanguageModel, e: Explanation, metric: HarmlessChange) -> float:
    """The definition, one edit at a time; words only, so that the edited ones are those that the edit covers."""
    found = []
    for name in metric.edits:
        edited = edit(name, e.text)
        if edited is None:
            continue
        again = raison.explain(
            model, edited.text, e.method, unit=e.unit, target=e.target, of=e.of, removal=e.removal, seed=e.seed
        )
        before, after = (one.probabilities[one.classes.index(e.target)] for one in (e, again))
        if abs(before - after) > metric.tolerance or tokens(model, e.text) == tokens(model, edited.text):
            continue
        old, new = ([(unit.start, unit.end) for unit in one.units] for one in (e, again))
        left, right = covered(old, edited.old), covered(new, edited.new)
        last = max(left, default=len(old) - 1)
        pairs = [([i], [i]) for i in range(min(left, default=len(old)))] + ([(left, right)] if left else [])
        pairs += [([i], [i + len(right) - len(left)]) for i in range(last + 1, len(old))]
        # What agrees in five decimals of the largest score is equal.
        most, most_again = (max(abs(score) for score in one.scores) for one in (e, again))
        was = [round(sum(e.scores[i] for i in group) / most, 5) for group, _ in pairs]
        now = [round(sum(again.scores[i] for i in group) / most_again, 5) for _, group in pairs]
        if len(set(was)) > 1 and len(set(now)) > 1:
            found.append(correlation(was, now))
    return sum(found) / len(found) if found else float("nan")


def values(model: LanguageModel, explanations: list[Explanation], metric: HarmlessChange) -> tuple[float, ...]:
    return raison.evaluate(model, explanations, [metric]).metrics[0].values


@pytest.mark.parametrize("method", ["occlusion", "kernel_shap", "random", "saliency"])
@pytest.mark.parametrize("tolerance", [0.0, 0.12, 1.0])
@pytest.mark.parametrize("toy", [Linear, Calm])
def test_equals_one_edited_text_at_a_time(toy: type[ToyModel], tolerance: float, method: str) -> None:
    model, metric = toy(), HarmlessChange(tolerance=tolerance)
    explanations = raison.explain(model, TEXTS, method, seed=2)
    expected = [literal(model, e, metric) for e in explanations]
    np.testing.assert_allclose(values(model, explanations, metric), expected, atol=1e-9)


def test_some_edits_count_and_others_do_not() -> None:
    """The comparison above is between different things: each tolerance lets other edits through."""
    model = Linear()
    explanations = raison.explain(model, TEXTS, "kernel_shap", seed=2)
    found = [values(model, explanations, HarmlessChange(tolerance=tolerance)) for tolerance in (0.0, 0.12, 1.0)]
    assert len({repr(row) for row in found}) == 3
    assert np.isnan(found[0]).sum() >= 2
    assert np.isfinite(found[2][:3]).all()


@pytest.mark.parametrize("target", ["negative", "positive"])
def test_a_transformer_and_a_chosen_target(target: str) -> None:
    model = raison.load(*TINY["bert"]())
    texts = ["the film is not a quiet pleasure", "a dull plot , but the acting is good"]
    explanations = raison.explain(model, texts, "occlusion", target=target, of="logit")
    metric = HarmlessChange(tolerance=1.0)
    found = values(model, explanations, metric)
    assert np.isfinite(found).all()
    expected = [literal(model, e, metric) for e in explanations]
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_scores_by_the_words_alone_are_perfectly_robust() -> None:
    """Of the words that the edits below leave alone: a linear model's exact scores do not know their neighbours."""
    model = Linear()
    text = "good bad film not fine good um ."
    explanation = raison.explain(model, text, "occlusion", of="logit", target=1)
    assert values(model, [explanation], HarmlessChange(("neutral",), tolerance=1.0)) == (pytest.approx(1),)


def test_scores_by_the_place_from_the_end_are_not() -> None:
    text = "good fine good fine good fine ."
    explanation = raison.explain(Late(), text, "occlusion", of="logit", target=1)
    (found,) = values(Late(), [explanation], HarmlessChange(("neutral",)))
    assert found < 0.9


def test_a_change_that_the_model_does_not_read_does_not_count() -> None:
    model, cased = Uncased(), Calm()
    metric = HarmlessChange(("casing",), tolerance=1.0)
    assert edit("casing", TEXTS[0]) is not None
    assert np.isnan(values(model, [raison.explain(model, TEXTS[0], "occlusion")], metric)).all()
    assert np.isfinite(values(cased, [raison.explain(cased, TEXTS[0], "occlusion")], metric)).all()


def test_a_chosen_map_has_no_value() -> None:
    chosen = raison.explain(Linear(), TEXTS[0], "random(draws=4)", select="comprehensiveness")
    assert np.isnan(values(Linear(), [chosen], HarmlessChange(tolerance=1.0))).all()


def test_methods_share_what_they_ask_of_the_same_edited_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods with the same removals cost the model one pass of each."""
    model = Calm()
    seen: list[int] = []
    inner = model.masked_logits
    monkeypatch.setattr(
        model, "masked_logits", lambda e, keeps, r: seen.append(sum(map(len, keeps))) or inner(e, keeps, r)
    )
    counts = []
    for methods in (["occlusion"], ["occlusion", "lime(samples=2)", "random"]):
        seen.clear()
        raison.compare(model, TEXTS[:2], methods, [HarmlessChange()], progress=False)
        counts.append(sum(seen))
    # At most one more pass for each text and each of its wordings: lime's second sample.
    assert counts[0] < counts[1] <= counts[0] + 2 * (1 + len(EDITS))


def test_the_estimate_counts_the_edited_texts() -> None:
    model = raison.load(*TINY["bert"]())
    texts = ["the film is not a quiet pleasure", "a dull plot"]
    without, wording = (
        estimate(model, texts, ["occlusion"], metrics) for metrics in ([], [HarmlessChange(tolerance=1.0)])
    )
    expected = 0
    for text in texts:
        edited = [found.text for name in EDITS if (found := edit(name, text)) is not None]
        units = model.encode(edited, "word").unit_counts
        # One prediction, the whole text again and each unit removed; random takes nothing.
        expected += sum(1 + raison.methods.Occlusion().cost(count).forwards for count in units)
    assert wording.metric_forwards - without.metric_forwards == expected > 20


def test_announcements_and_needs() -> None:
    metric = HarmlessChange(("neutral", "synonym"), tolerance=0.2)
    explanation = raison.explain(Linear(), TEXTS[0], "occlusion")
    asked = metric.rewordings(explanation)
    assert [one.text for one in asked] == [edit(name, TEXTS[0]).text for name in ("neutral", "synonym")]
    assert {one.tolerance for one in asked} == {0.2}
    assert metric.needs == {Need.METHOD}
    assert metric.keeps(explanation) == {}


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'casing'"):
        HarmlessChange(("casings",))
    with pytest.raises(InputError, match="each once"):
        HarmlessChange(())
    with pytest.raises(InputError, match="tolerance of harmless_change cannot be 1.5: give a number from 0 to 1"):
        HarmlessChange(tolerance=1.5)
    assert HarmlessChange(["neutral"]) == HarmlessChange(("neutral",))


def test_it_cannot_choose_a_map() -> None:
    with pytest.raises(UnsupportedError, match="explains the text again"):
        raison.explain(Linear(), TEXTS[0], "random(draws=4)", select="harmless_change")
