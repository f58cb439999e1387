"""The layers of tiny models as plain arrays, read by hand from the modules of each family, for literal references.

Nothing of the library is used but the adapter that is explained: states and attention come from transformers' own
eager pass.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import raison
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.targets.target import Of, Target
from raison.models.adapters.classifier import Classifier
from tests.tiny import LANGUAGE_MODELS, TINY

POST = ("albert", "bert", "big_bird", "deberta_v2", "distilbert", "electra", "mpnet", "roberta")
PRE = (*LANGUAGE_MODELS, "t5_encoder")
TEXTS = ("a dull plot", "I love this so much !", "no")


@dataclass
class Layer:
    """Matrices are (outputs, inputs); `value` and `output` have one entry per head."""

    value: list[np.ndarray]
    value_bias: list[np.ndarray]
    output: list[np.ndarray]
    output_bias: np.ndarray
    norms: tuple[nn.Module, nn.Module]
    mlp: tuple[nn.Module, nn.Module | None, nn.Module, nn.Module]
    """First matrix, gate, activation, second matrix."""


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def matrix(module: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """(weight, bias) of a linear layer; GPT-2 stores the transpose."""
    weight = array(module.weight)
    weight = weight if isinstance(module, nn.Linear) else weight.T
    return weight, np.zeros(len(weight)) if module.bias is None else array(module.bias)


def apply(module: nn.Module, x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return array(module(torch.from_numpy(np.asarray(x))))


def divisor(norm: nn.Module, x: np.ndarray) -> float:
    """What a norm divides a state by."""
    if isinstance(norm, nn.LayerNorm):
        return float(np.sqrt(x.var() + norm.eps))
    return float(np.sqrt((x**2).mean() + norm.variance_epsilon))


def linear_norm(norm: nn.Module, part: np.ndarray, sigma: float) -> np.ndarray:
    """A norm of one of several parts of a state, without its bias."""
    mean = part.mean() if isinstance(norm, nn.LayerNorm) else 0.0
    return array(norm.weight) * (part - mean) / sigma


def norm_bias(norm: nn.Module) -> np.ndarray:
    return array(norm.bias) if isinstance(norm, nn.LayerNorm) else np.zeros(len(norm.weight))


def layers(name: str, model: nn.Module) -> list[Layer]:
    if name == "gpt2":
        return [_gpt2(block) for block in model.transformer.h]
    if name in LANGUAGE_MODELS:
        return [_llama(block) for block in model.model.layers]
    if name == "t5_encoder":
        return [_t5(block) for block in model.transformer.encoder.block]
    if name == "distilbert":
        return [_distilbert(block) for block in model.distilbert.transformer.layer]
    if name == "albert":
        # One module, run three times.
        return [_albert(model.albert.encoder.albert_layer_groups[0].albert_layers[0])] * 3
    if name == "mpnet":
        return [_mpnet(block) for block in model.mpnet.encoder.layer]
    base = {"big_bird": "bert", "deberta_v2": "deberta"}.get(name, name)
    return [_bert(block) for block in getattr(model, base).encoder.layer]


def _layer(value: tuple, output: tuple, norms: tuple, mlp: tuple, repeats: int = 1, features: int = 8) -> Layer:
    heads = [slice(start, start + features) for start in range(0, len(value[0]), features) for _ in range(repeats)]
    columns = [slice(start, start + features) for start in range(0, output[0].shape[1], features)]
    return Layer(
        [value[0][rows] for rows in heads],
        [value[1][rows] for rows in heads],
        [output[0][:, part] for part in columns],
        output[1],
        norms,
        mlp,
    )


def _albert(block: nn.Module) -> Layer:
    own, mlp = block.attention, (block.ffn, None, block.activation, block.ffn_output)
    return _layer(matrix(own.value), matrix(own.dense), (own.LayerNorm, block.full_layer_layer_norm), mlp)


def _mpnet(block: nn.Module) -> Layer:
    own = block.attention
    mlp = (block.intermediate.dense, None, block.intermediate.intermediate_act_fn, block.output.dense)
    return _layer(matrix(own.attn.v), matrix(own.attn.o), (own.LayerNorm, block.output.LayerNorm), mlp)


def _bert(block: nn.Module) -> Layer:
    own = block.attention
    # DeBERTa names its projections otherwise.
    value = dict(own.self.named_children()).get("value_proj") or own.self.value
    mlp = (block.intermediate.dense, None, block.intermediate.intermediate_act_fn, block.output.dense)
    norms = (own.output.LayerNorm, block.output.LayerNorm)
    return _layer(matrix(value), matrix(own.output.dense), norms, mlp)


def _distilbert(block: nn.Module) -> Layer:
    mlp = (block.ffn.lin1, None, block.ffn.activation, block.ffn.lin2)
    norms = (block.sa_layer_norm, block.output_layer_norm)
    return _layer(matrix(block.attention.v_lin), matrix(block.attention.out_lin), norms, mlp)


def _gpt2(block: nn.Module) -> Layer:
    weight, bias = matrix(block.attn.c_attn)
    mlp = (block.mlp.c_fc, None, block.mlp.act, block.mlp.c_proj)
    return _layer((weight[64:], bias[64:]), matrix(block.attn.c_proj), (block.ln_1, block.ln_2), mlp)


def _llama(block: nn.Module) -> Layer:
    mlp = (block.mlp.up_proj, block.mlp.gate_proj, block.mlp.act_fn, block.mlp.down_proj)
    norms = (block.input_layernorm, block.post_attention_layernorm)
    # Two heads of values for four of queries.
    value, output, features = block.self_attn.v_proj, block.self_attn.o_proj, block.self_attn.head_dim
    return _layer(matrix(value), matrix(output), norms, mlp, repeats=2, features=features)


def _t5(block: nn.Module) -> Layer:
    own, dense = block.layer[0], block.layer[1].DenseReluDense
    mlp = (dense.wi_1, dense.wi_0, dense.act, dense.wo)
    norms = (own.layer_norm, block.layer[1].layer_norm)
    return _layer(matrix(own.SelfAttention.v), matrix(own.SelfAttention.o), norms, mlp)


def load(name: str, dtype: torch.dtype = torch.float64) -> Classifier:
    model, tokenizer = TINY[name]()
    return raison.load(model.to(dtype), tokenizer)


def make_problem(model: Classifier, texts: tuple[str, ...] = TEXTS, of: Of = "logit", index: int = 1) -> Problem:
    encoding = model.encode(texts, "word")
    target = Target(torch.full((len(texts),), index), None, of)
    return Problem(model, encoding, target, model.removals[0], Ledger.empty(len(texts)), Evaluations())


def passed(model: Classifier, problem: Problem, text: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """States that enter each layer (tokens, hidden), attention (heads, query, key), and logits of one text alone."""
    own = copy.deepcopy(model.model)
    own.set_attn_implementation("eager")
    ids = problem.encoding.input_ids[text : text + 1, : problem.encoding.lengths[text]]
    with torch.no_grad():
        found = own(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            output_hidden_states=True,
            output_attentions=True,
        )
    return (
        [array(state[0]) for state in found.hidden_states],
        [array(a[0]) for a in found.attentions],
        array(found.logits[0]),
    )


def pooled(name: str, tokens: int) -> np.ndarray:
    """The prediction's share of every row."""
    rows = np.zeros(tokens)
    if name == "t5_encoder":
        return rows + 1 / tokens
    rows[0 if name in POST else -1] = 1
    return rows


def moved(layer: Layer, attention: np.ndarray, entering: np.ndarray, i: int, j: int) -> np.ndarray:
    """sum_h A_ij^h W_O^h (W_V^h x_j + b_V^h)."""
    total = np.zeros(entering.shape[1])
    for head in range(len(layer.value)):
        value = layer.value[head] @ entering[j] + layer.value_bias[head]
        total = total + attention[head, i, j] * (layer.output[head] @ value)
    return total


def mlp_output(layer: Layer, x: np.ndarray) -> np.ndarray:
    inner, gate, activation, outer = layer.mlp
    if gate is None:
        return apply(outer, apply(activation, apply(inner, x)))
    return apply(outer, apply(activation, apply(gate, x)) * apply(inner, x))
