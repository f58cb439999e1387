"""One weight set in the classes of several families: the same predictions, and the same scores of every method.

What differs between the families (where positions start, token types, poolers, biases, names) must not show in an
explanation. The heads are made so that they agree: ReLU(z) - ReLU(-z) = GELU(z) - GELU(-z) = z, and tanh(z) = z near 0.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoTokenizer,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    LlamaForSequenceClassification,
    MistralConfig,
    MistralForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import UnsupportedError
from raison.core.method import Method, Property
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import check
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.loading.ready_made import base_weights, zoo
from raison.models.stack.eval_mode import quiet

pytestmark = pytest.mark.demo

TEXTS = ["a slow but honest film", "no charm"]
LAYERS = 3
"""Of SmolLM2, the lowest: more would cost time and test the same."""
SMALL = 1e-3
"""So much of a state goes into tanh: tanh(z) / z = 1 - z^2 / 3."""
CLOSE = 1e-4
"""Of the largest score."""

CHEAPER = {
    "discretized_integrated_gradients": "discretized_integrated_gradients(steps=4)",
    "gradient_shap": "gradient_shap(samples=4)",
    "integrated_gradients": "integrated_gradients(steps=8)",
    "kernel_shap": "kernel_shap(samples=24)",
    "lime": "lime(samples=24)",
    "resampled": "resampled(method='integrated_gradients(steps=4)', baselines=2)",
    "rpi": "rpi(baselines=2, steps=4)",
    "rpi_g": "rpi_g(baselines=2, steps=4)",
    "sequential_integrated_gradients": "sequential_integrated_gradients(steps=4)",
    "smooth_grad": "smooth_grad(samples=4)",
}
"""Calls with fewer passes."""

Names = dict[str, str]


def laid(model: PreTrainedModel, state: dict[str, Tensor]) -> PreTrainedModel:
    """The model with these weights, of which it must use every one and lack none."""
    model.load_state_dict(state)
    return model.eval()


def renamed(state: dict[str, Tensor], names: Names) -> dict[str, Tensor]:
    """Each name by the rule of the first beginning that fits; what has no rule is dropped."""
    found = {}
    for name, tensor in state.items():
        old = next((part for part in names if name.startswith(part)), None)
        if old is not None:
            found[names[old] + name.removeprefix(old)] = tensor.clone()
    return found


def head(rows: Tensor, scale: float, names: tuple[str, str]) -> dict[str, Tensor]:
    """Two layers that give rows @ state: the inner one has each row and its negative, the outer one the difference."""
    dense, out = names
    classes, hidden = rows.shape
    inner, outer = torch.zeros(hidden, hidden), torch.zeros(classes, hidden)
    inner[: 2 * classes] = scale * torch.cat([rows, -rows])
    for number in range(classes):
        # tanh is odd: each of the two gives the whole.
        outer[number, [number, classes + number]] = torch.tensor([1.0, -1.0]) / (scale if scale == 1 else 2 * scale)
    return {
        f"{dense}.weight": inner,
        f"{dense}.bias": torch.zeros(hidden),
        f"{out}.weight": outer,
        f"{out}.bias": torch.zeros(classes),
    }


@cache
def minilm() -> tuple[PreTrainedModel, object]:
    """The demo model's own weights, with the head made linear as above."""
    model, tokenizer = zoo.load_demo("demo/sst2")
    pooler, classifier = model.bert.pooler.dense, model.classifier
    rows = (classifier.weight @ pooler.weight).detach() / 4
    model.load_state_dict(head(rows, SMALL, ("bert.pooler.dense", "classifier")), strict=False)
    model.rows = rows
    return model.eval(), tokenizer


def shared_settings(config: PreTrainedConfig, names: Names) -> dict[str, object]:
    """The settings of a config under other names, with the labels."""
    known = config.to_dict()
    return {"id2label": config.id2label, **{new: known[old] for old, new in names.items()}}


BERT_LIKE = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
BERT_LIKE += ("type_vocab_size", "layer_norm_eps", "hidden_act", "max_position_embeddings")


def bert() -> PreTrainedModel:
    return minilm()[0]


def electra() -> PreTrainedModel:
    model = bert()
    settings = shared_settings(model.config, {name: name for name in BERT_LIKE})
    made = ElectraForSequenceClassification(ElectraConfig(**settings, embedding_size=model.config.hidden_size))
    own = renamed(made.state_dict(), {"electra.embeddings.position_ids": "electra.embeddings.position_ids"})
    names = {"bert.embeddings.": "electra.embeddings.", "bert.encoder.": "electra.encoder."}
    return laid(
        made,
        own | renamed(model.state_dict(), names) | head(model.rows, 1.0, ("classifier.dense", "classifier.out_proj")),
    )


def roberta() -> PreTrainedModel:
    """Its positions start at row 2 of their table, whose first two rows nothing may read: they are not numbers."""
    model = bert()
    settings = shared_settings(model.config, {name: name for name in BERT_LIKE})
    settings["max_position_embeddings"] = model.config.max_position_embeddings + 2
    made = RobertaForSequenceClassification(RobertaConfig(**settings, pad_token_id=1))
    names = {"bert.embeddings.": "roberta.embeddings.", "bert.encoder.": "roberta.encoder."}
    state = renamed(model.state_dict(), names)
    table = state["roberta.embeddings.position_embeddings.weight"]
    unused = torch.full((2, table.shape[1]), torch.nan)
    state["roberta.embeddings.position_embeddings.weight"] = torch.cat([unused, table])
    return laid(made, state | head(model.rows, SMALL, ("classifier.dense", "classifier.out_proj")))


def distilbert() -> PreTrainedModel:
    """It has no token types: those of first texts go into the positions."""
    model = bert()
    names = {"vocab_size": "vocab_size", "hidden_size": "dim", "num_hidden_layers": "n_layers"}
    names |= {"num_attention_heads": "n_heads", "intermediate_size": "hidden_dim", "hidden_act": "activation"}
    names |= {"max_position_embeddings": "max_position_embeddings"}
    made = DistilBertForSequenceClassification(DistilBertConfig(**shared_settings(model.config, names)))
    state = model.state_dict()
    state["bert.embeddings.position_embeddings.weight"] = (
        state["bert.embeddings.position_embeddings.weight"] + state["bert.embeddings.token_type_embeddings.weight"][0]
    )
    tables = ("word_embeddings", "position_embeddings", "LayerNorm")
    rules = {f"bert.embeddings.{name}": f"distilbert.embeddings.{name}" for name in tables}
    parts = {"attention.self.query": "attention.q_lin", "attention.self.key": "attention.k_lin"}
    parts |= {"attention.self.value": "attention.v_lin", "attention.output.dense": "attention.out_lin"}
    parts |= {"attention.output.LayerNorm": "sa_layer_norm", "intermediate.dense": "ffn.lin1"}
    parts |= {"output.dense": "ffn.lin2", "output.LayerNorm": "output_layer_norm"}
    for layer in range(model.config.num_hidden_layers):
        old, new = f"bert.encoder.layer.{layer}.", f"distilbert.transformer.layer.{layer}."
        rules |= {f"{old}{name}.": f"{new}{other}." for name, other in parts.items()}
    return laid(made, renamed(state, rules) | head(model.rows, 1.0, ("pre_classifier", "classifier")))


@cache
def smollm() -> tuple[PreTrainedModel, object]:
    """The lowest layers of SmolLM2 with a head over two classes."""
    folder = base_weights.fetch("smollm2")
    with quiet(), torch.random.fork_rng(devices=[]):
        base = AutoModel.from_pretrained(folder, num_hidden_layers=LAYERS, dtype=torch.float32)
        base.config.num_labels = 2
        model = LlamaForSequenceClassification(base.config)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = 0.05 * torch.randn(2, base.config.hidden_size, generator=torch.Generator().manual_seed(3))
    state = {f"model.{name}": tensor for name, tensor in base.state_dict().items()}
    return laid(model, state | {"score.weight": rows}), tokenizer


def llama() -> PreTrainedModel:
    return smollm()[0]


LLAMA_LIKE = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
LLAMA_LIKE += ("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_parameters", "hidden_act")
LLAMA_LIKE += ("pad_token_id",)


def decoder(config: type[PreTrainedConfig], kind: type[PreTrainedModel], **others: object) -> PreTrainedModel:
    """The weights under a config of another family; biases that only this one has are zero."""
    model = llama()
    made = kind(config(**shared_settings(model.config, {name: name for name in LLAMA_LIKE}), **others))
    biases = {name: tensor for name, tensor in made.state_dict().items() if name.endswith("_proj.bias")}
    return laid(made, {name: torch.zeros_like(tensor) for name, tensor in biases.items()} | model.state_dict())


FAMILIES: dict[str, dict[str, Callable[[], PreTrainedModel]]] = {
    "encoders": {"bert": bert, "electra": electra, "roberta": roberta, "distilbert": distilbert},
    "decoders": {
        "llama": llama,
        "mistral": partial(decoder, MistralConfig, MistralForSequenceClassification, sliding_window=None),
        "qwen2": partial(decoder, Qwen2Config, Qwen2ForSequenceClassification, use_sliding_window=False),
    },
}


@cache
def models(kind: str) -> dict[str, Classifier]:
    tokenizer = (minilm if kind == "encoders" else smollm)()[1]
    with torch.random.fork_rng(devices=[]):
        made = {name: make() for name, make in FAMILIES[kind].items()}
    found = {name: raison.load(model, tokenizer) for name, model in made.items()}
    for name, model in found.items():
        # Random methods draw by the text, not by the model: nothing may depend on what it is called.
        assert isinstance(model, Classifier)
        model.name = name
    return found


@pytest.mark.parametrize("kind", FAMILIES)
def test_predictions_and_capabilities_are_the_same(kind: str) -> None:
    found = models(kind)
    first, *others = found.values()
    own = first.ask(Passes).logits(first.encode(TEXTS, "word")).detach()
    assert (own[0] - own[1]).abs().max() > 0.1
    for other in others:
        theirs = other.ask(Passes).logits(other.encode(TEXTS, "word")).detach()
        torch.testing.assert_close(theirs, own, rtol=CLOSE, atol=CLOSE)
        assert [type(one) for one in other.capabilities] == [type(one) for one in first.capabilities]
        assert other.removals == first.removals
    assert len({type(model.core) for model in found.values()}) == len(found)


def test_the_linear_head_is_the_sum_of_rows() -> None:
    """What the head was made to be, on the state of the first token."""
    model = bert()
    tokens = minilm()[1](TEXTS, return_tensors="pt", padding=True)
    state = model.bert(**tokens).last_hidden_state[:, 0]
    torch.testing.assert_close(model(**tokens).logits, nn.functional.linear(state, model.rows), rtol=CLOSE, atol=CLOSE)


def reason_to_leave_out(method: Method, found: dict[str, Classifier]) -> str | None:
    """A trained explainer belongs to one model's tokens and classes; some methods need what no classifier has.

    What one class refuses, all must refuse: nothing is left out because of one adapter.
    """
    if Property.TRAINED in method.properties:
        return "needs an explainer that was trained for one model"
    refusals = [_refusal(method, model) for model in found.values()]
    assert all(refusals) or not any(refusals), dict(zip(found, refusals, strict=True))
    return refusals[0]


def _refusal(method: Method, model: Classifier) -> str | None:
    try:
        check(model, method)
    except UnsupportedError as error:
        return str(error)
    return None


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_method_gives_the_same_scores(kind: str, name: str) -> None:
    method = CATALOGUE.create(CHEAPER.get(name, name))
    found = models(kind)
    reason = reason_to_leave_out(method, found)
    if reason is not None:
        pytest.skip(reason)
    scores = {}
    for family, model in found.items():
        explained = raison.explain(model, TEXTS, method, of="logit", target=1, progress=False)
        scores[family] = [np.array(_one(e).scores) for e in explained]
    first, *others = scores
    for other in others:
        for own, theirs in zip(scores[first], scores[other], strict=True):
            assert np.abs(theirs - own).max() <= CLOSE * np.abs(own).max(), (first, other, own, theirs)


def _one(explanation: object) -> Explanation:
    assert isinstance(explanation, Explanation)
    return explanation
