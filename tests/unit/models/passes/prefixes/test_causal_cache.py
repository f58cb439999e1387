"""What is found out about a causal model and its twin of 16 bits is found out once, whatever is read of it."""

import pytest
from torch import Tensor

import raison
from raison.models.loading.load import load
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.passes.rerun import WholeRunner
from tests.conftest import ALL
from tests.tiny import LANGUAGE_MODELS, build_language_model

OUTPUTS = (" a modest story", " the sea")


@pytest.mark.parametrize("family", LANGUAGE_MODELS if ALL else ("gpt2", "llama"))
def test_one_trial_of_packing_per_model(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, tried = PackedReader.trial, []

    def tries(self: PackedReader) -> bool:
        tried.append(self.base)
        return own(self)

    monkeypatch.setattr(PackedReader, "trial", tries)
    writer = load(*build_language_model(family))
    explained = [
        raison.explain(writer, "the old sailor told", "occlusion", output=output, precision=precision)
        for precision in ("bfloat16", "float32")
        for output in OUTPUTS
    ]
    # The model and its twin.
    assert len(tried) == len({id(base) for base in tried}) == 2
    assert all(any(scores) for e in explained for scores in e.scores)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_one_trial_of_each_layer_per_model(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a trial runs the whole model on replaced attention."""
    own, tried = WholeRunner.logits, []

    def tries(whole: WholeRunner, attention: Tensor) -> Tensor:
        tried.append(whole)
        return own(whole, attention)

    monkeypatch.setattr(WholeRunner, "logits", tries)
    writer, counts = load(*build_language_model("llama")), []
    for output in OUTPUTS:
        raison.explain(writer, "the old sailor told", "rpi(baselines=2, steps=2)", output=output, precision=precision)
        counts.append(len(tried))
    assert counts[0] > 0
    assert counts == counts[:1] * len(OUTPUTS)
