"""A loaded model whose parts were replaced afterwards is explained as it is now, or refused with the way out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import raison
from raison.core.errors import InputError, UnsupportedError
from raison.text.prompts import Prompt
from tests.tiny import TINY, build_language_model, build_writer

TEXT = "the film is not a quiet pleasure"
LONGER = "the film is not a quiet pleasure and it is far longer than the other one , and longer still"
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


class _MeanPooler(nn.Module):
    """Reads every token, padding included."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden.mean(1)


@pytest.mark.parametrize("first", [TEXT, [TEXT, LONGER]])
def test_a_pooler_that_reads_padding_is_noticed(first: str | list[str]) -> None:
    model, tokenizer = TINY["bert"]()
    loaded = raison.load(model, tokenizer)
    raison.explain(loaded, first, "occlusion")
    model.bert.pooler = _MeanPooler()
    own = torch.softmax(model(**tokenizer(TEXT, return_tensors="pt")).logits, -1)[0].tolist()
    for method in ("occlusion", "saliency"):
        alone, beside = raison.explain(loaded, TEXT, method), raison.explain(loaded, [TEXT, LONGER], method)[0]
        assert alone.probabilities == pytest.approx(own, abs=1e-6)
        assert beside.scores == pytest.approx(alone.scores, abs=1e-6)


@pytest.mark.parametrize("method", ["decompx", "globenc"])
def test_a_part_that_its_family_has_and_the_model_lacks_is_named(method: str) -> None:
    model, tokenizer = TINY["bert"]()
    model.bert.pooler = _MeanPooler()
    with pytest.raises(
        UnsupportedError, match=r"bert\.pooler\.dense of its family is missing: a _MeanPooler has no dense"
    ):
        raison.explain(raison.load(model, tokenizer), TEXT, method)
    told = raison.doctor(raison.load(model, tokenizer))
    assert told.methods[method]


def steered(model: PreTrainedModel) -> Callable[[], None]:
    """A hook that shifts states by a strength which it reads anew in every pass; the change raises it."""
    strength = [0.0]

    def shift(_module: nn.Module, _args: object, output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        moved = hidden + strength[0] * torch.linspace(-1, 1, hidden.shape[-1])
        return (moved, *output[1:]) if isinstance(output, tuple) else moved

    model.model.layers[0].register_forward_hook(shift)
    return lambda: strength.__setitem__(0, 3.0)


def slower_rotation(model: PreTrainedModel) -> Callable[[], None]:
    def change() -> None:
        model.model.rotary_emb.inv_freq.mul_(0.3)

    return change


def without_a_layer(model: PreTrainedModel) -> Callable[[], None]:
    layer = model.model.layers[0].mlp
    whole = layer.forward
    return lambda: setattr(layer, "forward", lambda hidden: whole(hidden) * 0)


@pytest.mark.parametrize("prepare", [steered, slower_rotation, without_a_layer])
def test_a_stored_prompt_is_of_the_model_as_it_is_now(
    prepare: Callable[[PreTrainedModel], Callable[[], None]],
) -> None:
    model, tokenizer = build_language_model("llama")
    change = prepare(model)
    loaded = raison.load(model, tokenizer, prompt=PROMPT)
    before = raison.explain(loaded, TEXT, "occlusion")
    change()
    after, fresh = (
        raison.explain(one, TEXT, "occlusion", target=before.target)
        for one in (loaded, raison.load(model, tokenizer, prompt=PROMPT))
    )
    assert after.value_full == pytest.approx(fresh.value_full, abs=1e-6)
    assert after.value_full != pytest.approx(before.value_full, abs=1e-4)
