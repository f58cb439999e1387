"""Premise and hypothesis: units of both texts, kept apart from encoding to display."""

import pytest
import torch

import raison
from raison.models.adapters.classifier import Classifier
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.tiny import TINY

PAIR = ("the film is not good", "the film is dull")


@pytest.fixture(params=["bert", "roberta", "gpt2", "llama", "t5"])
def model(request: pytest.FixtureRequest) -> Classifier:
    return raison.load(*TINY[request.param]())


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_units_of_both_texts(model: Classifier, unit: str) -> None:
    explanation = raison.explain(model, PAIR, "occlusion", unit=unit)
    assert explanation.text == PAIR
    assert [unit.segment for unit in explanation.units] == sorted(unit.segment for unit in explanation.units)
    assert {unit.segment for unit in explanation.units} == {0, 1}
    for unit_ in explanation.units:
        assert unit_.text == PAIR[unit_.segment][unit_.start : unit_.end]
    assert raison.Explanation.from_json(explanation.to_json()) == explanation


def test_deletion_keeps_each_token_in_its_own_segment(model: Classifier) -> None:
    encoding = model.encode([PAIR], "word")
    keep = torch.ones(1, encoding.unit_counts[0], dtype=torch.bool)
    keep[0, [1, 5]] = False
    found = model.masked_logits(encoding, [keep], "delete")[0][0]
    stays = torch.tensor([unit < 0 or bool(keep[0, unit]) for unit in encoding.unit_ids[0].tolist()])
    ids = {"input_ids": encoding.input_ids[:, stays]}
    if model.passes.network.takes_types:
        ids["token_type_ids"] = encoding.type_ids[:, stays]
        assert set(ids["token_type_ids"][0].tolist()) == {0, 1}
    with torch.no_grad():
        plain_logits = model.model(**ids).logits[0]
    torch.testing.assert_close(found, plain_logits, atol=2e-5, rtol=1e-4)


def test_shown_and_compared(model: Classifier) -> None:
    explanation = raison.explain(model, PAIR, "random")
    assert "hypothesis" in explanation.to_html() or "dull" in explanation.to_html()
    assert "dull" in plain(explanation_text(explanation))
    comparison = raison.compare(model, [PAIR, (PAIR[1], PAIR[0])], ["occlusion"], progress=False)
    assert comparison["occlusion"]["comprehensiveness"].summary.count == 2
