"""AML's equations 1 to 7 and section 3.3, written out: one text at a time, in float64."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

import raison
from raison.core.inputs.unit import Granularity
from raison.models.adapters.classifier import Classifier
from raison.numerics.losses.attributive_masking import LossWeights
from tests.explainers import RATE, STATE, WEIGHTS, untrained
from tests.tiny import build

ENCODERS = ("bert", "roberta", "distilbert")
TEXTS = (
    "a dull plot, but the ending is good",
    "a quiet film",
    "dull",
    "nobody believed the old sailor, and the music was terrible!",
    "It was brilliant.",
)
SEARCHED = LossWeights(**WEIGHTS)
State = dict[str, Tensor]


@dataclass(frozen=True)
class Literal:
    """The formulas for one model: a plain copy F of it, its encoder, and the explainer's file; all in float64."""

    model: torch.nn.Module
    backbone: torch.nn.Module
    state: State
    stands_in: int

    def map(self, state: State, ids: Tensor, y: Tensor) -> Tensor:
        """Equation 1, one score per token of G: the head on each last hidden state, z after the last token."""
        weights = {name: parameter.detach() for name, parameter in self.backbone.named_parameters()}
        for name in weights:
            changed = f"backbone.{name}"
            layer = changed.removesuffix(".weight")
            if changed in state:
                weights[name] = state[changed]
            elif f"{layer}.up" in state:
                weights[name] = weights[name] + state[f"{layer}.up"] @ state[f"{layer}.down"]
        table = weights[next(name for name in weights if name.endswith("word_embeddings.weight"))]
        z = state["prediction"] + sum(y[j] * state["labels"][j] for j in range(len(y)))
        embeds = torch.cat([table[ids], z[None]])[None]
        states = torch.func.functional_call(self.backbone, weights, kwargs={"inputs_embeds": embeds})[0][0, :-1]
        hidden = torch.tanh(states @ state["hidden.weight"].T + state["hidden.bias"])
        return torch.sigmoid(hidden @ state["output.weight"][0] + state["output.bias"])

    def probabilities(self, embeds: Tensor) -> Tensor:
        """F(x)."""
        return self.model(inputs_embeds=embeds[None]).logits[0].softmax(-1)

    def terms(self, ids: Tensor, owners: Tensor, a: Tensor, y: Tensor, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """L_p, L_inv and L_a of a map over units; `owners` are the tokens' units, -1 for those always visible."""
        table = self.model.get_input_embeddings().weight.detach()
        x, m = table[ids], table[self.stands_in]
        masked, inverse = [], []
        for token, unit in enumerate(owners.tolist()):
            share, rest = (1.0, 1.0) if unit < 0 else (a[unit], 1 - a[unit])
            masked.append(share * x[token] + (1 - share) * m)
            inverse.append(rest * x[token] + (1 - rest) * m)
        p, q = self.probabilities(torch.stack(masked)), self.probabilities(torch.stack(inverse))
        size = -sum(torch.log(1 - a[unit]) for unit in range(len(a))) / len(a)
        return -sum(y[j] * torch.log(p[j]) for j in range(len(y))), -torch.log(1 - q[index]), size

    def units(self, scores: Tensor, owners: Tensor) -> Tensor:
        """A unit's score is the greatest of its tokens'."""
        count = int(owners.max()) + 1
        return torch.stack([scores[owners == unit].max() for unit in range(count)])

    def tuned(self, trained: Sequence[str], text: "One", weights: LossWeights, steps: int) -> list[Tensor]:
        """Maps before each step of fine-tuning on a text and after the last; a linear decay to zero."""
        state = copy.deepcopy(self.state)
        optimizer = torch.optim.AdamW([state[n].requires_grad_() for n in trained], lr=RATE, weight_decay=0.01)
        decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(steps, 1))
        maps = []
        for _ in range(steps):
            a = self.units(self.map(state, text.ids, text.y), text.owners)
            maps.append(a.detach())
            p, inverse, size = self.terms(text.ids, text.owners, a, text.y, text.index)
            optimizer.zero_grad()
            (weights.prediction * p + weights.inverse * inverse + weights.size * size).backward()
            optimizer.step()
            decay.step()
        with torch.no_grad():
            return [*maps, self.units(self.map(state, text.ids, text.y), text.owners)]


@dataclass(frozen=True)
class One:
    """One text as the formulas see it: ids, the tokens' units, the probabilities to keep, the class to lose."""

    ids: Tensor
    owners: Tensor
    y: Tensor
    index: int


def one(literal: Literal, adapter: Classifier, text: str, unit: Granularity = "token", index: int | None = None) -> One:
    encoding = adapter.encode([text], unit)
    (ids,), (owners,) = encoding.input_ids, encoding.unit_ids
    with torch.no_grad():
        y = literal.probabilities(literal.model.get_input_embeddings().weight[ids])
    predicted = int(y.argmax())
    if index is None or index == predicted:
        return One(ids, owners, y, predicted)
    return One(ids, owners, torch.eye(len(y), dtype=y.dtype)[index], index)


def literal_of(adapter: Classifier, folder: Path) -> Literal:
    model = copy.deepcopy(adapter.model).double()
    state = {name: tensor.double() for name, tensor in load_file(folder / STATE).items()}
    return Literal(model, copy.deepcopy(model.base_model), state, adapter.tokenizer.mask_token_id)


def pair(name: str, folder: Path, rank: int | None = 2) -> tuple[Classifier, Literal]:
    """A tiny model with an explainer in the folder, and the formulas."""
    adapter = raison.load(*build(name))
    assert isinstance(adapter, Classifier)
    untrained(adapter, folder, rank=rank)
    return adapter, literal_of(adapter, folder)
