"""A loaded model whose parts were replaced afterwards is explained as it is now, or refused with the way out."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

import raison
from raison.core.errors import InputError, UnsupportedError
from raison.text.prompts import Prompt
from tests.tiny import TINY, build_language_model, build_writer

TEXT = "the film is not a quiet pleasure"
OUTPUT = " and more"
PROMPT = Prompt(name="film", shot="{text} is{label}", labels={"good": " good", "bad": " bad"}, scoring="first")
METHODS = ("occlusion", "saliency", "integrated_gradients(steps=4)", "attention_rollout", "decompx")


def drawn(module: nn.Module, seed: int = 3) -> nn.Module:
    """With other weights."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return module


def linear(model: PreTrainedModel, outputs: int, bias: bool) -> nn.Module:
    return drawn(nn.Linear(model.config.hidden_size, outputs, bias=bias))


def classifier_of_a_decoder(model: PreTrainedModel) -> None:
    model.score = linear(model, model.config.num_labels, bias=False)


def classifier_of_an_encoder(model: PreTrainedModel) -> None:
    model.classifier = linear(model, model.config.num_labels, bias=True)


def layer_of_an_encoder(model: PreTrainedModel) -> None:
    layer = model.bert.encoder.layer[0]
    model.bert.encoder.layer[0] = drawn(type(layer)(model.config))


def layer_of_a_decoder(model: PreTrainedModel) -> None:
    layer = model.model.layers[0]
    model.model.layers[0] = drawn(type(layer)(model.config, 0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("llama", classifier_of_a_decoder),
        ("gpt2", classifier_of_a_decoder),
        ("bert", classifier_of_an_encoder),
        ("bert", layer_of_an_encoder),
        ("llama", layer_of_a_decoder),
    ],
)
def test_a_classifier_is_explained_as_it_is_now(
    family: str, change: Callable[[PreTrainedModel], None], method: str
) -> None:
    model, tokenizer = TINY[family]()
    loaded = raison.load(model, tokenizer)
    before = raison.explain(loaded, TEXT, method)
    change(model)
    model.eval()
    after, fresh = (raison.explain(one, TEXT, method) for one in (loaded, raison.load(model, tokenizer)))
    assert after.probabilities == pytest.approx(fresh.probabilities, abs=1e-6)
    assert after.scores == pytest.approx(fresh.scores, abs=1e-5)
    assert after.probabilities != pytest.approx(before.probabilities, abs=1e-3)


def test_a_prompted_model_is_explained_as_it_is_now() -> None:
    model, tokenizer = build_language_model("llama")
    loaded = raison.load(model, tokenizer, prompt=PROMPT)
    before = raison.explain(loaded, TEXT, "occlusion")
    model.lm_head = linear(model, model.config.vocab_size, bias=False)
    after = raison.explain(loaded, TEXT, "occlusion")
    fresh = raison.explain(raison.load(model, tokenizer, prompt=PROMPT), TEXT, "occlusion")
    assert after.probabilities == pytest.approx(fresh.probabilities, abs=1e-6)
    assert after.probabilities != pytest.approx(before.probabilities, abs=1e-3)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_what_a_model_writes_is_explained_as_it_is_now(family: str) -> None:
    model, tokenizer = build_writer(family) if family == "t5" else build_language_model(family)
    loaded = raison.load(model, tokenizer)
    before = raison.explain(loaded, TEXT, "occlusion", output=OUTPUT)
    model.set_output_embeddings(drawn(nn.Linear(model.config.hidden_size, model.config.vocab_size, bias=False)))
    after, fresh = (
        raison.explain(one, TEXT, "occlusion", output=OUTPUT) for one in (loaded, raison.load(model, tokenizer))
    )
    assert [token.probability for token in after.tokens] == pytest.approx(
        [token.probability for token in fresh.tokens], rel=1e-4
    )
    assert after.tokens[0].probability != pytest.approx(before.tokens[0].probability, rel=1e-2)


@pytest.mark.parametrize("outputs", [1, 4])
def test_a_head_with_other_outputs_than_classes_is_refused(outputs: int) -> None:
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    model.classifier = linear(model, outputs, bias=True)
    for one in (loaded, raison.load(model, tokenizer)):
        with pytest.raises(InputError, match=rf"gives {outputs} outputs?, but .* for 3 .*set model.config.id2label"):
            raison.explain(one, TEXT, "occlusion")


@pytest.mark.parametrize("method", ["decompx", "globenc", "alti"])
def test_parts_that_no_longer_explain_a_layer_are_noticed(method: str) -> None:
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    raison.explain(loaded, TEXT, method)
    hook = model.bert.encoder.layer[1].output.dense.register_forward_hook(lambda _module, _args, output: output * 0.1)
    with pytest.raises(UnsupportedError, match="layer 1 gives different states from its parts"):
        raison.explain(loaded, TEXT, method)
    hook.remove()
    raison.explain(loaded, TEXT, method)
