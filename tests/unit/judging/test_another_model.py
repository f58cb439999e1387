"""Explanations of another model than the one that evaluates them: refused, or told with the scores."""

import random
from dataclasses import replace

import pytest
from transformers import BertForSequenceClassification

import raison
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from tests.tiny import build

TEXTS = ["the old sailor told a story", "a dull plot"]
NAMES = ("bad", "good")


def bert(labels: tuple[str, ...] = NAMES, problem: str | None = None, changed: float = 0.0) -> LanguageModel:
    network, tokenizer = build("bert", labels, problem)
    assert isinstance(network, BertForSequenceClassification)
    network.classifier.bias.data[0] += changed
    return raison.load(network, tokenizer)


def explained(model: LanguageModel) -> list[raison.Explanation]:
    return raison.explain(model, TEXTS, "occlusion", progress=False)


@pytest.mark.parametrize(
    ("made", "judge", "reason"),
    [
        (bert(("bad",), "regression"), bert(("bad", "good")), "is about number, and .* gives classes"),
        (bert(), bert(NAMES, "multi_label_classification"), "is about classes, and .* gives labels"),
        (bert(), bert((*NAMES, "fine")), "is about the classes bad, good, and those of .* are bad, good, fine"),
    ],
)
def test_explanations_of_other_outputs_are_refused(made: LanguageModel, judge: LanguageModel, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        raison.evaluate(judge, explained(made), "comprehensiveness", progress=False)


def test_another_model_of_the_same_classes_is_told() -> None:
    """Of its own explanations, in any batch, nothing is said."""
    model, other = bert(), bert(changed=1.0)
    assert not raison.evaluate(model, explained(model), "comprehensiveness", progress=False).cautions
    found = raison.evaluate(other, explained(model), "comprehensiveness", progress=False)
    assert found.cautions[0].startswith("2 of 2 explanations state another prediction than")
    assert found.cautions[0] in " ".join(str(found).split())
    number, moved = (bert(("score",), "regression", changed) for changed in (0.0, 1.0))
    assert not raison.evaluate(number, explained(number), "comprehensiveness", progress=False).cautions
    assert raison.evaluate(moved, explained(number), "comprehensiveness", progress=False).cautions


@pytest.mark.filterwarnings("ignore::raison.core.errors.UnsteadyWarning")
def test_a_model_that_changes_its_mind_is_not_another_one() -> None:
    draw = random.Random(3)

    def noisy(texts: list[str]) -> list[list[float]]:
        shares = [draw.uniform(0.2, 0.8) for _ in texts]
        return [[share, 1 - share] for share in shares]

    model = raison.load(noisy, classes=NAMES)
    found = raison.evaluate(model, explained(model), "comprehensiveness", progress=False)
    assert not [caution for caution in found.cautions if "another model" in caution]


def test_the_noise_of_a_server_is_not_another_model() -> None:
    model, other = bert(), bert(changed=1.0)
    noise = {"noise": {"value": 0.2, "mean": 0.1, "bound": 0.3}}
    noisy = [replace(e, notes=e.notes | noise) for e in explained(model)]
    assert not raison.evaluate(other, noisy, "comprehensiveness", progress=False).cautions
