"""What may be asked of the component's other side, and what is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import RaisonError
from raison.models.adapters.writing.generator import Generator
from raison.web.component.explain_request import ExplainRequest, explained, read_explanations
from raison.web.component.model_facts import QUICK, facts_of
from raison.web.component.writing_request import WritingRequest, plain
from tests.explained import of_words
from tests.explainers import trained_heads
from tests.tiny import build, build_language_model


def lengths(texts: list[str]) -> np.ndarray:
    sizes = np.array([(1 + min(len(text), 100)) / 102 for text in texts])
    return np.stack([sizes, 1 - sizes], axis=1)


MODEL = raison.load(lengths, classes=["long", "short"])


def test_a_request_is_a_call_of_explain() -> None:
    body = {"model": "m", "text": "a b c", "method": "occlusion", "unit": "token", "of": "log_odds"}
    body["target"] = ["short", "long"]  # type: ignore[assignment]
    request = ExplainRequest.read(body)
    assert request == ExplainRequest.read(body | {"target": ("short", "long")})
    assert request == ExplainRequest("m", "a b c", "occlusion", "token", ("short", "long"), "log_odds")
    told = explained({"m": MODEL}, request)
    expected = raison.explain(
        MODEL, "a b c", "occlusion", unit="token", target=("short", "long"), of="log_odds", progress=False
    )
    assert told.scores == expected.scores
    assert (told.target, told.against) == ("short", "long")


def test_removal_and_seed_are_those_that_are_asked() -> None:
    body = {"model": "m", "text": "a bb ccc d", "method": "lime(samples=8)", "removal": "ellipsis", "seed": 3}
    told = explained({"m": MODEL}, ExplainRequest.read(body))
    expected = raison.explain(MODEL, "a bb ccc d", "lime(samples=8)", removal="ellipsis", seed=3, progress=False)
    assert told.scores == expected.scores
    assert (told.removal, told.seed) == ("ellipsis", 3)
    for other in ({"removal": None}, {"seed": 4}):
        assert explained({"m": MODEL}, ExplainRequest.read(body | other)).scores != told.scores


def test_what_is_left_out_is_as_in_explain() -> None:
    assert ExplainRequest.read({"model": "m", "text": ["a", "b"]}) == ExplainRequest(
        "m", ("a", "b"), "auto", "word", None, None
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "a"}, "model"),
        ({"model": "m"}, "text"),
        ({"model": "m", "text": None}, "text"),
        ({"model": "m", "text": 3}, "text"),
        ({"model": "m", "text": ["a"]}, "text"),
        ({"model": "m", "text": "a", "target": [1, 2]}, "target"),
        ({"model": "m", "text": "a", "unit": "paragraph"}, "paragraph"),
        ({"model": "m", "text": "a", "method": None}, "method"),
        ({"model": "m", "text": "a", "truncate": "yes"}, "truncate"),
        ({"model": "m", "text": "a", "removal": 3}, "removal"),
        ({"model": "m", "text": "a", "seed": -1}, "seed"),
        ({"model": "m", "text": "a", "seed": None}, "seed"),
        ({"model": "m", "text": "a", "checkpoint": "/etc/passwd"}, "checkpoint"),
    ],
)
def test_what_is_no_request_is_refused_in_one_line(body: dict[str, Any], said: str) -> None:
    with pytest.raises(RaisonError, match=said) as refused:
        ExplainRequest.read(body)
    assert "\n" not in str(refused.value)


CHAT = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]


def test_a_request_for_an_answer_is_a_call_of_explain() -> None:
    body: dict[str, Any] = {"model": "m", "text": CHAT, "unit": "part", "output": "c", "contrast": [3, "d"]}
    request = WritingRequest.read(body)
    assert request == WritingRequest("m", (("system", "a"), ("user", "b")), unit="part", output="c", contrast=(3, "d"))
    assert plain(request.text) == CHAT


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": [{"role": "user"}]}, "content"),
        ({"text": [{"role": "user", "content": 5}]}, "content"),
        ({"text": ["a", "b"]}, "text"),
        ({"text": None}, "text"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"contrast": [1.5]}, "contrast"),
        ({"output": 5}, "output"),
        ({"removal": 5}, "removal"),
        ({"seed": 0.5}, "seed"),
        ({"target": "a"}, "target"),
    ],
)
def test_what_is_no_request_for_an_answer_is_refused_in_one_line(body: dict[str, Any], said: str) -> None:
    with pytest.raises(RaisonError, match=said) as refused:
        WritingRequest.read({"model": "m", "text": "a", **body})
    assert "\n" not in str(refused.value)


def test_a_model_that_is_not_offered_is_refused() -> None:
    with pytest.raises(RaisonError, match="unknown model 'other'"):
        explained({"m": MODEL}, ExplainRequest.read({"model": "other", "text": "a"}))


def test_explanations_are_read_and_none_is_refused() -> None:
    e = of_words("a b")
    assert read_explanations({"explanations": [e.to_dict(), e.to_dict()]}) == [e, e]
    for body in ({}, {"explanations": []}, {"explanations": [1]}, {"explanations": [{}]}):
        with pytest.raises(RaisonError):
            read_explanations(body)


def test_facts_name_what_works_and_the_first_quick_method_that_does() -> None:
    facts = facts_of("m", MODEL)
    assert (facts.classes, facts.strings, facts.quick) == (("long", "short"), 1, None)
    assert "occlusion" in facts.methods
    assert "saliency" not in facts.methods
    transformer = facts_of("t", raison.load(*build("bert")))
    assert transformer.quick == QUICK[0]
    assert {"saliency", "occlusion", "auto"} <= set(transformer.methods)
    # It needs a trained explainer.
    assert "smat" not in transformer.methods


def test_trained_heads_are_offered_where_the_model_has_them(tmp_path: Path) -> None:
    writer = Generator(*build_language_model("llama"), str(tmp_path))
    facts = facts_of("w", writer)
    assert {"auto", "occlusion"} <= set(facts.methods)
    assert "there are no trained heads for at2" in facts.unable["at2"]
    layers, heads = writer.model.config.num_hidden_layers, writer.model.config.num_attention_heads
    trained_heads(writer, tmp_path / "at2", torch.ones(layers, heads))
    assert "at2" in facts_of("w", writer).methods
