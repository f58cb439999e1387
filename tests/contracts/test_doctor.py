"""What doctor says of every kind of model, derived from its outputs and capabilities."""

import json
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

import raison
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE
from raison.models.tokens.word_encoder import WordEncoder
from tests.tiny import TINY, build, build_answering, build_embedder, build_language_model, build_writer


class Lengths(LanguageModel):
    """A model of a kind of its own, with no capability: the more units stay, the likelier is "long"."""

    name, classes, multi_label, removals, max_tokens = "lengths", ("short", "long"), False, ("delete",), None

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool = False) -> Encoding:
        return WordEncoder(1).encode(texts, unit)

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        return [torch.stack([-keep.sum(1).float(), keep.sum(1).float()], 1) for keep in keeps]


KINDS: dict[str, tuple[Callable[[], object], str, str]] = {
    "classes": (lambda: raison.load(*TINY["bert"]()), "classes", "the predicted class"),
    "labels": (lambda: raison.load(*build("bert", ("a", "b"), "multi_label_classification")), "labels", "each"),
    "number": (lambda: raison.load(*build("bert", ("rating",))), "number", "one document comes before another"),
    "similarity": (lambda: raison.load(*build_embedder("bert"), similarity="cosine"), "number", "of a pair"),
    "function": (lambda: raison.load(lambda texts: [[0.4, 0.6]] * len(texts), classes=["a", "b"]), "classes", "class"),
    "pairs": (lambda: raison.load(lambda pairs: [1.0] * len(pairs), classes=["a"], pairs=True), "number", "document"),
    "answers": (lambda: raison.load(*build_answering("bert")), "classes", "answer to a question"),
    "writer": (lambda: raison.load(*build_language_model("gpt2")), "text", "every output token"),
    "encoder-decoder that writes": (lambda: raison.load(*build_writer("t5")), "text", "every output token"),
    "another": (Lengths, "classes", "the predicted class"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_tells_what_a_model_is_and_what_works(kind: str) -> None:
    make, outputs, told = KINDS[kind]
    found = raison.doctor(make())
    assert found.passed, [f"{check.check}: {check.detail}" for check in found.checks if not check.passed]
    assert found.facts["outputs"] == outputs
    assert told in str(found.facts["explains"])
    assert set(found.methods) == set(CATALOGUE.names)
    works = [name for name, reasons in found.methods.items() if not reasons]
    assert {"occlusion", "kernel_shap"} <= set(works)
    assert json.loads(json.dumps(found.to_dict()))["explains"] == found.facts["explains"]
    for name, reasons in found.methods.items():
        assert (name in works) or (f"not {name}: " in str(found) and reasons)


def test_time_is_told_by_groups_of_methods() -> None:
    found = raison.doctor(raison.load(*TINY["bert"]()), tokens=64)
    [told] = [value for name, value in found.facts.items() if name == "64 tokens"]
    assert any("100 masked texts" in line for line in told)
    assert any("50 gradients" in line for line in told)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_writer_has_the_full_report(family: str) -> None:
    model = raison.load(*(build_writer(family) if family == "t5" else build_language_model(family)))
    found = raison.doctor(model, tokens=100)
    told = str(found.facts["100 tokens"])
    attention = ("with all its attention",) if family == "gpt2" else ()
    for group in ("a pass takes", "with gradients", *attention, "100 masked texts", "50 gradients"):
        assert group in told
    assert any(found.methods["decompx"])
    assert "kernel_shap" in str(found.facts["auto takes"])


def test_what_auto_would_take_is_what_it_takes() -> None:
    model = raison.load(*TINY["bert"]())
    told = raison.doctor(model).facts["auto takes"]
    assert isinstance(told, list)
    assert [line.split(" for ")[1] for line in told] == ["4 words", "12 words"], "more are too many for it"
    for line in told:
        name, _, words = line.partition(" for ")
        e = raison.explain(model, " ".join(["film"] * int(words.split()[0])))
        assert name.startswith(e.method)


def test_unknown_tokens_are_a_warning() -> None:
    model = raison.load(*TINY["bert"]())
    assert "warnings" not in raison.doctor(model, "a dull plot").facts
    [warning] = raison.doctor(model, "\u4eca\u5929 a dull plot").facts["warnings"]
    assert "not in the vocabulary" in warning
