"""Masked predictions of a causal model: those of one token sequence at a time, and nothing is read twice."""

import numpy as np
import pytest
import torch

import raison
from raison.core.results.generation import GenerationExplanation
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.passes.prefixes import causal
from raison.text.prompts import Prompt
from tests.packs import counted
from tests.tiny import build_language_model

PROMPT, OUTPUT = "the old sailor told a modest story", " and nobody believed him at all"


def explained(writer: Generator, method: str) -> tuple[GenerationExplanation, int]:
    """An explanation of the output, and the tokens that were read for it."""
    with counted(writer.model.base_model) as sizes:
        found = raison.explain(writer, PROMPT, method, output=OUTPUT)
    assert isinstance(found, GenerationExplanation)
    return found, sum(sizes)


@pytest.mark.parametrize("method", ["kernel_shap(samples=40)", "occlusion", "lime(samples=40)"])
def test_few_sequences_at_a_time_read_no_masked_prompt_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of a long output have more masked prompts, each with a part of the output, than fit at a time."""
    model, tokenizer = build_language_model("llama")
    explained(Generator(model, tokenizer, "llama"), method)  # first the trial of packing
    whole, tokens = explained(Generator(model, tokenizer, "llama"), method)
    steps = len(whole.scores)
    monkeypatch.setattr(causal, "SEQUENCES", 4 * steps)
    parts, again = explained(Generator(model, tokenizer, "llama"), method)
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-6)
    # Two masks that lie in different parts may begin alike.
    assert tokens <= again < 1.35 * tokens


@pytest.mark.parametrize("sequences", [causal.SEQUENCES, 5])
def test_every_text_gets_its_own_rows(sequences: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are read together, with as many masks or more, and one that is read by itself."""
    monkeypatch.setattr(causal, "SEQUENCES", sequences)
    words = Prompt(name="film", task="", shot="{text} :{label}", labels={"good": " good", "bad": " bad"}, shots=())
    model = raison.load(*build_language_model("gpt2"), prompt=words)
    assert isinstance(model, Classifier)
    texts = ["a modest story", "so dull a plot", "a modest story", "a modest story"]
    draws = torch.Generator().manual_seed(0)
    keeps = [torch.rand(masks, 3 + (masks == 6), generator=draws) < 0.5 for masks in (4, 6, 4, 9)]
    for removal in ("unk", "delete"):
        together = model.masked_logits(model.encode(texts, "word"), keeps, removal)
        for text, wanted, found in zip(texts, keeps, together, strict=True):
            (alone,) = model.masked_logits(model.encode([text], "word"), [wanted], removal)
            torch.testing.assert_close(found, alone, atol=1e-5, rtol=0)
            assert found.std(0).max() > 1e-3, "a model that ignores its input would pass"
