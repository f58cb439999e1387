"""The attention tap against the models' own eager attention, on every family."""

import copy

import pytest
import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertForSequenceClassification,
    DebertaConfig,
    DebertaForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    Gemma2Config,
    Gemma2ForSequenceClassification,
    GptOssConfig,
    GptOssForSequenceClassification,
    PreTrainedModel,
)
from transformers.pytorch_utils import Conv1D

from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.models.stack.tap import STEPS, Tap, attention_modules, tap
from tests.tiny import ENCODER_DECODERS, LABELS, LANGUAGE_MODELS, TAPPED, TINY, eager_logits, padded_batch

SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def roll_probabilities(step: str, layer: int, tensor: Tensor) -> Tensor:
    """An edit that gives every attention weight to the next key."""
    return tensor.roll(1, -1) if step == "probabilities" else tensor


@pytest.mark.parametrize("name", TAPPED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_equals_eager_exactly(name: str, dtype: torch.dtype) -> None:
    model, inputs = padded_batch(name)
    model.to(dtype)
    expected = eager_logits(model, inputs)
    with tap(model, record=STEPS) as seen:
        assert torch.equal(model(**inputs).logits, expected)
    for step in STEPS:
        assert sorted(seen[step]) == list(range(len(attention_modules(model))))
    tolerance = 1e-5 if dtype is torch.float32 else 2e-2
    for rows in seen.probabilities.values():
        assert (rows.sum(-1).float() - 1).abs().max() < tolerance


@pytest.mark.parametrize("name", TAPPED)
def test_layers_are_numbered_in_the_order_of_computation(name: str) -> None:
    model, inputs = padded_batch(name)
    modules = attention_modules(model)
    assert len(modules) == model.config.num_hidden_layers, "of encoder-decoders, only the encoder's"
    called: list[nn.Module] = []
    handles = [module.register_forward_hook(lambda module, *_: called.append(module)) for module in set(modules)]
    model(**inputs)
    for handle in handles:
        handle.remove()
    assert called == modules
    assert (len(set(modules)) == 1) == (name == "albert"), "which runs one module as every layer"
    if name in ENCODER_DECODERS:
        assert set(modules) <= set(model.get_encoder().modules())


@pytest.mark.parametrize("name", TAPPED)
def test_steps_follow_from_each_other(name: str) -> None:
    model, inputs = padded_batch(name)
    with tap(model, record=STEPS) as seen:
        model(**inputs)
    for layer in seen.query:
        assert seen.key[layer].shape == seen.query[layer].shape == seen.value[layer].shape
        assert torch.allclose(seen.scores[layer].softmax(-1), seen.probabilities[layer], atol=1e-6)
        assert torch.allclose(seen.probabilities[layer] @ seen.value[layer], seen.output[layer], atol=1e-5)
        if name not in ("t5", "t5_encoder", "mpnet", "deberta", "deberta_v2"):  # which add what positions say
            scale = attention_modules(model)[layer].head_dim ** -0.5 if name == "qwen3" else (32 // 4) ** -0.5
            plain = seen.query[layer] @ seen.key[layer].transpose(-1, -2) * scale
            visible = seen.scores[layer] > -1e30
            assert torch.allclose(plain[visible], seen.scores[layer][visible], atol=1e-4)


@pytest.mark.parametrize("name", TAPPED)
def test_padding_and_windows_are_masked(name: str) -> None:
    model, inputs = padded_batch(name)
    with tap(model) as seen:
        model(**inputs)
    padding = inputs["attention_mask"] == 0
    assert padding.any()
    length = padding.shape[1]
    causal = torch.ones(length, length).triu(1).bool()
    distance = torch.arange(length)[:, None] - torch.arange(length)
    for layer, rows in seen.probabilities.items():
        own = ~padding[:, None, :, None]
        assert (rows * padding[:, None, None, :] * own).max() == 0
        if name in LANGUAGE_MODELS:
            assert (rows * causal * own).max() == 0
        if name == "mistral":
            assert (rows * (distance >= 4) * own).max() == 0
        if name == "modernbert":
            outside = (rows * (distance.abs() > 2) * own).max()
            assert (outside == 0) == (layer % 2 == 1), "even layers are global, odd ones local"


@pytest.mark.parametrize("name", TAPPED)
def test_identity_edit_changes_nothing(name: str) -> None:
    model, inputs = padded_batch(name)
    calls: list[tuple[str, int]] = []

    def same(step: str, layer: int, tensor: Tensor) -> Tensor:
        calls.append((step, layer))
        return tensor

    expected = eager_logits(model, inputs)
    with tap(model, edit=same):
        assert torch.equal(model(**inputs).logits, expected)
    order = ("query", "key", "scores", "probabilities", "value", "output")
    assert calls == [(step, layer) for layer in range(len(attention_modules(model))) for step in order]


@pytest.mark.parametrize("name", TAPPED)
@pytest.mark.parametrize("edited", STEPS)
def test_every_step_can_be_edited(name: str, edited: str) -> None:
    model, inputs = padded_batch(name)

    def change(step: str, layer: int, tensor: Tensor) -> Tensor:
        return tensor.roll(1, 1) if step == edited and layer == 1 else tensor

    expected = eager_logits(model, inputs)
    with tap(model, record=STEPS, edit=change) as seen:
        assert not torch.allclose(model(**inputs).logits, expected, atol=1e-3)
    with tap(model, record=STEPS) as plain:
        model(**inputs)
    assert torch.equal(seen[edited][1], plain[edited][1].roll(1, 1))
    assert torch.equal(seen[edited][0], plain[edited][0])


@pytest.mark.parametrize("name", TAPPED)
def test_gradients_reach_the_records(name: str) -> None:
    model, inputs = padded_batch(name)
    with tap(model, record=STEPS) as seen:
        logits = model(**inputs).logits
    tensors = [tensor for step in STEPS for tensor in seen[step].values()]
    assert all(gradient.abs().max() > 0 for gradient in torch.autograd.grad(logits.sum(), tensors))


@pytest.mark.parametrize(
    ("name", "coarsest"),
    [
        *((name, torch.float64) for name in ("bert", "roberta", "distilbert", "electra", "gpt2")),
        # Their softmax and norms are in single precision whatever the model's own.
        *((name, torch.float32) for name in ("llama", "qwen3")),
    ],
)
def test_gradient_agrees_with_finite_differences(name: str, coarsest: torch.dtype) -> None:
    """At the step that is best for the coarsest rounding in the pass, within what rounding leaves there."""
    model, inputs = padded_batch(name)
    model.double()
    with tap(model) as seen:
        value = model(**inputs).logits[:, 0].sum()
        (gradient,) = torch.autograd.grad(value, seen.probabilities[1])
    direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    eps = torch.finfo(coarsest).eps
    step = eps ** (1 / 3)

    def moved(by: float) -> float:
        def move(step: str, layer: int, tensor: Tensor) -> Tensor:
            return tensor + by * direction if (step, layer) == ("probabilities", 1) else tensor

        with tap(model, edit=move), torch.no_grad():
            return model(**inputs).logits[:, 0].sum().item()

    # Four points: the error of the formula, of order step^4, is below that of rounding, of order eps / step.
    near, far = (moved(by) - moved(-by) for by in (step, 2 * step))
    parts = gradient * direction
    assert abs((8 * near - far) / (12 * step) - parts.sum().item()) < eps / step * parts.abs().sum().item()


def test_an_edit_can_start_the_graph_of_a_frozen_model() -> None:
    model, inputs = padded_batch("bert")
    model.requires_grad_(False)
    expected = eager_logits(model, inputs)

    def leaf(step: str, _layer: int, tensor: Tensor) -> Tensor:
        return tensor.detach().requires_grad_() if step == "probabilities" else tensor

    with tap(model, edit=leaf) as seen:
        logits = model(**inputs).logits
    assert torch.equal(logits, expected)
    assert torch.autograd.grad(logits.sum(), seen.probabilities[2])[0].abs().max() > 0


@pytest.mark.parametrize("name", TAPPED)
def test_nested_taps(name: str) -> None:
    model, inputs = padded_batch(name)
    expected, own = eager_logits(model, inputs), model.config._attn_implementation
    with tap(model) as outer:
        with tap(model, record=("scores",), layers=[1], edit=roll_probabilities) as inner:
            edited = model(**inputs).logits
        assert list(inner.scores) == [1]
        assert not inner.probabilities
        assert not torch.allclose(edited, expected, atol=1e-3)
        rolled = outer.probabilities[1]
        assert torch.equal(model(**inputs).logits, expected)
        assert torch.equal(outer.probabilities[1].roll(1, -1), rolled)
    assert model.config._attn_implementation == own


def test_records_are_those_of_the_latest_pass() -> None:
    model, inputs = padded_batch("gpt2")
    first = {name: tensor[:1] for name, tensor in inputs.items()}
    with tap(model) as seen:
        model(**inputs)
        model(**first)
        assert {rows.shape[0] for rows in seen.probabilities.values()} == {1}
    model(**inputs)
    assert {rows.shape[0] for rows in seen.probabilities.values()} == {1}


def projections(model: PreTrainedModel) -> list[str]:
    """Dotted names of the linear layers in attention modules."""
    attention = {part for module in attention_modules(model) for part in module.modules()}
    return [name for name, part in model.named_modules() if part in attention and isinstance(part, nn.Linear | Conv1D)]


@pytest.mark.parametrize("name", TAPPED)
def test_peft_models(name: str) -> None:
    model, inputs = padded_batch(name)
    lora = LoraConfig(
        TaskType.SEQ_CLS,
        target_modules=projections(model),
        # GPT-2 stores the matrices of its linear layers the other way round.
        fan_in_fan_out=name == "gpt2",
        init_lora_weights=False,
    )
    with torch.random.fork_rng(devices=[]):
        adapted = get_peft_model(model, lora)
    adapted.eval()
    expected, own = eager_logits(adapted.get_base_model(), inputs), adapted.config._attn_implementation
    for outer in (adapted, adapted.get_base_model()):
        with tap(outer) as seen:
            assert torch.equal(adapted(**inputs).logits, expected)
        assert len(seen.probabilities) == len(attention_modules(model))
    assert adapted.config._attn_implementation == own


def test_layers_and_steps_are_checked() -> None:
    model, inputs = padded_batch("bert")
    with tap(model, layers=[2]) as seen:
        model(**inputs)
    assert list(seen.probabilities) == [2]
    with pytest.raises(InputError, match="3 attention layers"), tap(model, layers=[3]):
        pass
    with pytest.raises(UnknownNameError, match="Did you mean 'scores'"), tap(model, record=("score",)):
        pass
    with pytest.raises(UnknownNameError, match="unknown step"):
        Tap()["weights"]


def test_softcap_and_sinks_are_honoured() -> None:
    """Families beyond the tiny ones, whose eager functions change scores in further ways."""
    tokens = {"input_ids": torch.arange(3, 23).reshape(2, 10), "attention_mask": torch.ones(2, 10, dtype=torch.long)}
    small = SMALL | {"vocab_size": 50, "num_key_value_heads": 2, "head_dim": 8, "initializer_range": 0.5}
    with torch.random.fork_rng(devices=[]):
        capped = Gemma2ForSequenceClassification(Gemma2Config(**small, attn_logit_softcapping=2.0, pad_token_id=0))
        sinking = GptOssForSequenceClassification(
            GptOssConfig(**small, num_local_experts=2, num_experts_per_tok=1, pad_token_id=0)
        )
    for model in (capped.eval(), sinking.eval()):
        expected = eager_logits(model, tokens)
        with tap(model, record=STEPS) as seen:
            assert torch.equal(model(**tokens).logits, expected)
        assert len(seen.probabilities) == 2
        sums = seen.probabilities[0].sum(-1)
        assert torch.allclose(sums, torch.ones(())) == (model is capped), "a sink takes its share of each row"


def test_models_that_cannot_be_tapped_say_so() -> None:
    reasons = (("longformer", "overlapping windows"), ("xlnet", "one Einstein sum"))
    for name, reason in reasons:
        model, _ = TINY[name]()
        own = model.config._attn_implementation
        with pytest.raises(UnsupportedError, match=reason), tap(model):
            pass
        assert model.config._attn_implementation == own
    with pytest.raises(UnsupportedError, match="transformers"), tap(nn.Linear(1, 1)):
        pass


@pytest.mark.parametrize("settings", [{"num_hidden_groups": 2}, {"inner_group_num": 2}, {"num_hidden_layers": 5}])
def test_layers_that_share_modules_are_counted_as_they_are_run(settings: dict[str, int]) -> None:
    small = SMALL | {"vocab_size": 50, "num_hidden_layers": 4, "embedding_size": 16, "initializer_range": 0.5}
    with torch.random.fork_rng(devices=[]):
        model = AlbertForSequenceClassification(AlbertConfig(**small | settings)).eval()
    tokens = {"input_ids": torch.arange(3, 23).reshape(2, 10), "attention_mask": torch.ones(2, 10, dtype=torch.long)}
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    expected = own(**tokens, output_attentions=True)
    for _ in range(2):  # the second pass counts from the beginning
        with tap(model, record=("probabilities",)) as seen:
            assert torch.equal(model(**tokens).logits, expected.logits)
        assert len(seen.probabilities) == len(expected.attentions)
        for layer, rows in enumerate(expected.attentions):
            assert torch.equal(seen.probabilities[layer], rows)


@pytest.mark.parametrize("kind", ["plain", "content only", "positions of its own", "talking heads", "long"])
@pytest.mark.parametrize("name", ["deberta", "deberta_v2"])
def test_every_setting_of_disentangled_attention(name: str, kind: str) -> None:
    """The probabilities are those that the model itself returns, in every form that its attention can take."""
    settings = {
        "plain": {"relative_attention": False, "position_biased_input": True},
        "content only": {"pos_att_type": []},
        "positions of its own": {"pos_att_type": ["c2p"], "share_att_key": False},
        "talking heads": {"talking_head": True},
        "long": {"max_relative_positions": 4, "position_buckets": -1},
    }[kind]
    small = SMALL | {"vocab_size": 50, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "pad_token_id": 0}
    classes = {
        "deberta": (DebertaConfig, DebertaForSequenceClassification),
        "deberta_v2": (DebertaV2Config, DebertaV2ForSequenceClassification),
    }
    config_of, model_of = classes[name]
    with torch.random.fork_rng(devices=[]):
        model = model_of(config_of(**small | settings, initializer_range=0.5, num_labels=len(LABELS))).eval()
    mask = torch.ones(2, 10, dtype=torch.long)
    mask[1, 7:] = 0
    tokens = {"input_ids": torch.arange(3, 23).reshape(2, 10), "attention_mask": mask}
    with torch.no_grad():
        expected = model(**tokens, output_attentions=True)
        with tap(model) as seen:
            assert torch.equal(model(**tokens).logits, expected.logits)
    for layer, rows in enumerate(expected.attentions):
        if kind == "talking heads" and name == "deberta":
            # What it returns is mixed over the heads already.
            assert not torch.equal(seen.probabilities[layer], rows)
        else:
            assert torch.equal(seen.probabilities[layer], rows)
