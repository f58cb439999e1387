"""Language models that do more after their layers than multiply by an output matrix: scaled, capped, transformed."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import raison
from raison.core.errors import UnsupportedError
from raison.models.derived.backbone import backbone_of
from raison.models.passes.outputs.output_layer import OutputLayer, output_layer, token_logits
from raison.models.stack.blocks import twin
from raison.text.prompts import Prompt
from tests.tiny import build_architecture, build_language_model

CHANGED: dict[str, dict[str, Any]] = {
    "gemma2": {"final_logit_softcapping": 0.5},
    "granite": {"logits_scaling": 7.0},
    "cohere": {"logit_scale": 0.3},
    "hyperclovax": {"logits_scaling": 3.0},
    "minicpm3": {
        "q_lora_rank": 8,
        "kv_lora_rank": 8,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 8,
        "dim_model_base": 8,
    },
    "modernbert-decoder": {},
    "bert": {"is_decoder": True},
}
PROMPT = "a quiet film with a good end"
OUTPUT = " and more"


def build(kind: str, **settings: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return build_architecture(kind, **(CHANGED.get(kind, {}) | settings))


@pytest.fixture(params=sorted(CHANGED), name="kind")
def _kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def own_probabilities(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].double().softmax(-1)


def test_outputs_have_the_models_own_probabilities(kind: str) -> None:
    model, tokenizer = build(kind)
    explanation = raison.explain(raison.load(model, tokenizer), PROMPT, "occlusion", output=OUTPUT)
    prompt = tokenizer(PROMPT)["input_ids"]
    probabilities = own_probabilities(model, [*prompt, *(token.id for token in explanation.tokens)])
    for number, token in enumerate(explanation.tokens):
        expected = float(probabilities[len(prompt) - 1 + number, token.id])
        assert token.probability == pytest.approx(expected, rel=1e-4)


def test_gradients_are_of_the_models_own_logits(kind: str) -> None:
    model, tokenizer = build(kind)
    loaded = raison.load(model, tokenizer)
    explanation = raison.explain(loaded, PROMPT, "input_x_gradient", output=OUTPUT, of="logit", unit="token")
    # The hook is at the embeddings' module: some models scale what they are given directly.
    shifts: list[torch.Tensor] = []

    def shift(_module: nn.Module, _args: object, embeds: torch.Tensor) -> torch.Tensor:
        shifts.append(embeds.detach().requires_grad_())
        return shifts[0]

    handle = model.get_input_embeddings().register_forward_hook(shift)
    ids = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    model(input_ids=ids).logits[0, -1, explanation.tokens[0].id].backward()
    handle.remove()
    assert shifts[0].grad is not None
    literal = (shifts[0].grad * shifts[0])[0].sum(-1).tolist()
    assert explanation.scores[0] == pytest.approx(literal[-len(explanation.units) :], rel=1e-3, abs=1e-7)


def test_label_words_have_the_models_own_probabilities(kind: str) -> None:
    model, tokenizer = build(kind)
    labels = {"good": " good", "bad": " bad"}
    prompt = Prompt(name="film", shot="{text} is{label}", labels=labels, scoring="first")
    loaded = raison.load(model, tokenizer, prompt=prompt)
    ids = tokenizer(PROMPT + " is")["input_ids"]
    tokens = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in labels.values()]
    with torch.no_grad():
        literal = model(input_ids=torch.tensor([ids])).logits[0, -1, tokens].double().softmax(-1).numpy()
    explanation = raison.explain(loaded, PROMPT, "occlusion")
    assert explanation.probabilities == pytest.approx(literal, rel=1e-4)


def test_only_what_a_matrix_gives_is_computed_from_its_rows() -> None:
    plain, _ = build_language_model("llama")
    states = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    matrix = output_layer(plain, states).module
    assert matrix is plain.get_output_embeddings()
    assert torch.allclose(token_logits(matrix, states, [3, 7]), matrix(states)[:, [3, 7]], atol=1e-6)
    capped, _ = build("gemma2", final_logit_softcapping=30.0)
    own = output_layer(capped, states).module
    assert isinstance(own, OutputLayer)
    raw = capped.get_output_embeddings()(states)
    assert torch.allclose(own(states), 30 * torch.tanh(raw / 30), atol=1e-5)
    assert torch.allclose(token_logits(own, states, [3, 7]), own(states)[:, [3, 7]])


def test_a_model_that_reads_later_tokens_is_refused() -> None:
    model, tokenizer = build("bert", is_decoder=False)
    with pytest.raises(UnsupportedError, match="reads later tokens"):
        raison.explain(raison.load(model, tokenizer), PROMPT, "occlusion", output=OUTPUT)


def test_a_model_without_separate_layers_is_refused() -> None:
    model, tokenizer = build("llama4_text")
    with pytest.raises(UnsupportedError, match="its layers are not a part of it that can run alone"):
        raison.explain(raison.load(model, tokenizer), PROMPT, "occlusion", output=OUTPUT)


def test_a_twin_has_its_own_output_layer() -> None:
    model, tokenizer = build("granite")
    prompt = Prompt(name="film", shot="{text} is{label}", labels={"good": " good", "bad": " bad"}, scoring="first")
    backbone = backbone_of(raison.load(model, tokenizer, prompt=prompt))
    assert backbone is not None
    twins: dict[int, nn.Module] = {}
    same = backbone.over(twin(backbone.tree, twins))
    explained = raison.explain(same, PROMPT, "occlusion")
    assert explained.scores == raison.explain(raison.load(model, tokenizer, prompt=prompt), PROMPT, "occlusion").scores
    with torch.no_grad():
        twins[id(model.get_output_embeddings())].weight = nn.Parameter(2 * model.get_output_embeddings().weight)
    assert raison.explain(same, PROMPT, "occlusion").probabilities != explained.probabilities
