"""What is found out about a causal model and its twin of 16 bits is found out once, whatever is read of it."""

import pytest

import raison
from raison.models.loading.load import load
from raison.models.passes import rerun
from raison.models.passes.packing import PackedReader
from raison.models.passes.rerun import UpperRunner
from tests.tiny import LANGUAGE_MODELS, build_language_model

OUTPUTS = (" a modest story", " the sea")


@pytest.mark.parametrize("family", LANGUAGE_MODELS)
def test_one_trial_of_packing_per_model(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, tried = PackedReader._try, []

    def tries(self: PackedReader) -> bool:
        tried.append(self._base)
        return own(self)

    monkeypatch.setattr(PackedReader, "_try", tries)
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
    own, tried = rerun._agree, []

    def tries(upper: UpperRunner, *others: object) -> bool:
        tried.append((id(upper._core), upper._layer))
        return own(upper, *others)

    monkeypatch.setattr(rerun, "_agree", tries)
    writer = load(*build_language_model("llama"))
    for output in OUTPUTS:
        raison.explain(writer, "the old sailor told", "rpi(baselines=2, steps=2)", output=output, precision=precision)
    assert tried
    assert len(tried) == len(set(tried))
