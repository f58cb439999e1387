"""Comprehensiveness, sufficiency, their averages and log-odds against literal versions, one sequence at a time."""

import math

import numpy as np
import pytest
import torch

import raison
from raison.core.results.explanation import Explanation
from raison.models.adapters.classifier import Classifier
from raison.numerics.measures.ranking import PROFILES
from tests.tiny import TINY

TEXTS = [
    "the film is not a quiet pleasure , it is a loud one",
    "dull",
    "a dull plot , but the acting is good and the end is good , and the music , too , is good .",
]
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


@pytest.fixture(scope="module")
def model() -> Classifier:
    # In double precision: the order in which a batch is summed must not show at 1e-6.
    model, tokenizer = TINY["bert"]()
    return raison.load(model.double(), tokenizer)


@pytest.fixture(scope="module")
def explanations(model: Classifier) -> list[Explanation]:
    return raison.explain(model, TEXTS, "random")


def probability(model: Classifier, explanation: Explanation, gone: set[int], mask: bool) -> float:
    """The explained class's probability when some words are deleted or masked in the list of ids."""
    encoded = model.tokenizer(explanation.text, return_offsets_mapping=True)
    ids = []
    for token, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        inside = [
            i for i, unit in enumerate(explanation.units) if start < end and unit.start < end and start < unit.end
        ]
        if not inside or inside[0] not in gone:
            ids.append(token)
        elif mask:
            ids.append(model.tokenizer.mask_token_id)
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([ids])).logits[0].double()
    return float(logits.softmax(-1)[model.classes.index(explanation.target)])


def how_many(profile: str, units: int, share: float) -> int:
    percent = round(share * 100)
    if profile == "eraser":
        return -((-units * percent) // 100)
    if profile == "aml_code":
        return units * percent // 100
    return max(1, (2 * units * percent + 100) // 200)


def literal(model: Classifier, explanation: Explanation, metric: str, share: float, profile: str) -> float:
    units = len(explanation.units)
    count = how_many(profile, units, share)
    ranked = sorted(range(units), key=lambda i: (-explanation.scores[i], i))
    top, rest = set(ranked[:count]), set(ranked[count:])
    full = probability(model, explanation, set(), False)
    if metric == "comprehensiveness":
        return full - probability(model, explanation, top, False)
    if metric == "sufficiency":
        if profile == "aml_code" and count == 0:
            return 0.0
        return full - probability(model, explanation, rest, False)
    return math.log(probability(model, explanation, top, True)) - math.log(full)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("metric", ["comprehensiveness", "sufficiency", "log_odds"])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_single_share(
    model: Classifier, explanations: list[Explanation], metric: str, profile: str, share: float
) -> None:
    found = raison.evaluate(model, explanations, [f"{metric}(profile={profile!r}, share={share})"]).metrics[0]
    expected = [literal(model, e, metric, share, profile) for e in explanations]
    np.testing.assert_allclose(found.values, expected, atol=1e-6)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("metric", ["comprehensiveness", "sufficiency"])
def test_average_over_shares(model: Classifier, explanations: list[Explanation], metric: str, profile: str) -> None:
    found = raison.evaluate(model, explanations, [f"aopc_{metric}(profile={profile!r})"]).metrics[0]
    divisor = len(SHARES) + (profile in ("aml_code", "unirex"))
    for value, explanation in zip(found.values, explanations, strict=True):
        total = sum(literal(model, explanation, metric, share, profile) for share in SHARES)
        assert value == pytest.approx(total / divisor, abs=1e-6)


def test_profiles_differ_where_the_papers_do(model: Classifier, explanations: list[Explanation]) -> None:
    values = {
        profile: raison.evaluate(model, explanations, [f"aopc_sufficiency(profile={profile!r})"]).metrics[0].values
        for profile in PROFILES
    }
    assert len(set(values.values())) == len(PROFILES)
