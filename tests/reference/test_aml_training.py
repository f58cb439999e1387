"""The training of AML against the paper's equations 4 to 7, written out."""

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from raison.core.inputs.unit import Granularity
from raison.explaining.batch import Batch as Prepared
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.masking.explainer import Explainer, find
from raison.masking.substitutes import Substitutes
from raison.models.adapters.classifier import Classifier
from raison.models.stack.layers import layer_stack
from raison.numerics.losses.attributive_masking import LossWeights
from raison.training.loop.objective import TrainingBatch
from raison.training.loop.trainer import TrainSettings, fit
from raison.training.objectives.attributive_masking import AttributiveMasking
from raison.training.preparation.masks import MaskedTexts
from tests.literal_aml import ENCODERS, SEARCHED, TEXTS, one, pair


def training(adapter: Classifier, folder: Path, unit: Granularity = "token") -> tuple[MaskedTexts, Explainer, Prepared]:
    """The trainer's view of the explainer, without dropout."""
    explainer = find(adapter, str(folder), None)
    texts = prepare(adapter, TEXTS, Settings(unit=unit))
    substitutes = Substitutes.of(adapter, explainer.card.masking, None)
    return MaskedTexts(explainer.attributor, texts, substitutes, "max").eval(), explainer, texts


ABLATED = {
    "all": SEARCHED,
    "prediction only": LossWeights(1.0, 0.0, 0.0),
    "inverse only": LossWeights(0.0, 1.0, 0.0),
    "size beside one": LossWeights(0.3, 0.0, 2.0),
    "Xpred": replace(SEARCHED, prediction=0.0),
    "Xinv": replace(SEARCHED, inverse=0.0),
}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_losses_are_equations_4_to_7(name, unit, tmp_path):
    adapter, literal = pair(name, tmp_path)
    module, _, _ = training(adapter, tmp_path, unit)
    rows = torch.tensor([3, 0, 2, 4, 1])
    expected = []
    for row in rows:
        o = one(literal, adapter, TEXTS[row], unit)
        with torch.no_grad():
            a = literal.units(literal.map(literal.state, o.ids, o.y), o.owners)
            expected.append(torch.stack([*literal.terms(o.ids, o.owners, a, o.y, o.index), a.mean()]))
    p, inverse, size, l1 = torch.stack(expected).unbind(1)
    assert min(term.std() for term in (p, inverse, size, l1)) > 1e-3
    for weights in ABLATED.values():
        for kind, measured in (("cross_entropy", size), ("l1", l1)):
            total = weights.prediction * p + weights.inverse * inverse + weights.size * measured
            with torch.no_grad():
                found = module(rows, weights, kind)
                mean = AttributiveMasking(weights, kind).loss(module, TrainingBatch({"rows": rows}, rows))
            torch.testing.assert_close(found.double(), total, atol=2e-5, rtol=2e-5)
            assert mean.item() == pytest.approx(total.mean().item(), rel=2e-5)


class Once:
    """One batch."""

    def __init__(self, rows: Tensor) -> None:
        self.batch = TrainingBatch({"rows": rows}, rows)

    def __len__(self) -> int:
        return 1

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        yield self.batch


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_reach_exactly_what_is_trained(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    module, explainer, _ = training(adapter, tmp_path)
    flags = [parameter.requires_grad for parameter in adapter.model.parameters()]
    rows = torch.tensor([0, 4, 1])
    for part in explainer.attributor.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    # So small a step moves nothing; the gradients that the trainer saw stay where they are.
    fit(TrainSettings(1, 1e-30, clip=math.inf, progress=False), module, Once(rows), AttributiveMasking(SEARCHED))
    state = {key: value.requires_grad_() for key, value in copy.deepcopy(literal.state).items()}
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        o = one(literal, adapter, TEXTS[row])
        a = literal.units(literal.map(state, o.ids, o.y), o.owners)
        p, inverse, size = literal.terms(o.ids, o.owners, a, o.y, o.index)
        total = total + SEARCHED.prediction * p + SEARCHED.inverse * inverse + SEARCHED.size * size
    expected = dict(zip(state, torch.autograd.grad(total / len(rows), state.values(), allow_unused=True), strict=True))
    found = {key: parameter.grad for key, parameter in explainer.attributor.named_parameters()}
    assert {key for key, gradient in found.items() if gradient is not None} == {
        key for key, gradient in expected.items() if gradient is not None
    }
    unused = {key for key, gradient in expected.items() if gradient is None}
    # Of a whole backbone only the pooler has no part in a token's score.
    assert all("pooler" in key for key in unused)
    assert rank is None or not unused
    scale = max(float(gradient.abs().max()) for gradient in expected.values() if gradient is not None)
    for key, gradient in expected.items():
        if gradient is not None:
            torch.testing.assert_close(found[key].double() / scale, gradient / scale, atol=2e-5, rtol=1e-3)
            # A key's bias moves all of a token's attention alike, which softmax does not see.
            assert gradient.abs().max() / scale > 1e-7 or "key.bias" in key or "k_lin.bias" in key
    assert [parameter.requires_grad for parameter in adapter.model.parameters()] == flags
    assert all(parameter.grad is None for parameter in adapter.model.parameters())


def test_out_of_memory_changes_no_map_of_a_training(tmp_path):
    """Layers that take two rows at most: a text's two masked versions."""
    adapter, _ = pair("bert", tmp_path)
    module, _, _ = training(adapter, tmp_path)
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    rows = torch.arange(len(TEXTS))
    shares, losses = module.shares(), fit_losses(module, rows)
    failed: list[int] = []

    def limited(_layer, args, kwargs):
        found = len(args[0] if args else kwargs["hidden_states"])
        if found > 2:
            failed.append(found)
            raise torch.OutOfMemoryError("no room")

    stacks = (layer_stack(adapter.core), layer_stack(module.attributor.backbone))
    hooks = [layer.register_forward_pre_hook(limited, with_kwargs=True) for stack in stacks for layer in stack]
    found = module.shares()
    assert failed
    failed.clear()
    assert fit_losses(module, rows) == pytest.approx(losses, abs=1e-5)
    assert failed
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(found, shares, rtol=1e-4, atol=1e-5)


def fit_losses(module: MaskedTexts, rows: torch.Tensor) -> tuple[float, ...]:
    """The losses of two steps at a rate that changes no weight, on all texts at once."""

    class Whole:
        def __len__(self):
            return 1

        def epoch(self, number, start):
            yield TrainingBatch({"rows": rows}, rows)

    plan = TrainSettings(epochs=2, learning_rate=1e-12, warmup=0.0, progress=False)
    return fit(plan, module, Whole(), AttributiveMasking(SEARCHED)).losses
