"""Models whose linear layers are quantised: every method gives what it gives without, or is refused with the reason."""

import importlib.util
import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import raison
from raison.core.errors import RaisonError, UnsupportedError
from raison.methods import CATALOGUE
from raison.models.adapters.checks.selfcheck import selfcheck
from raison.models.adapters.classifier import Classifier
from tests.contracts.test_methods import SHORTER
from tests.tiny import TINY

TEXT = "the actors are brilliant but the plot is thin"
CLOSE = 0.3
"""Of the scores' norm: what eight bits leave of models this small. Gradients that get lost leave 1."""
REASON = "quantised: its int8 linear layers have no gradient"


def rounded(values: Tensor) -> tuple[Tensor, Tensor]:
    scale = values.abs().amax(-1, keepdim=True) / 127
    return (values / scale.clamp_min(1e-12)).round(), scale


class Stored(nn.Module):
    """A linear layer with its weight in eight bits, as libraries beside torch have it."""

    def __init__(self, layer: nn.Linear, rounds_inputs: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        weight, scale = rounded(layer.weight.detach())
        self.register_buffer("weight", weight.to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias, self.rounds_inputs = layer.bias, rounds_inputs

    def extra_repr(self) -> str:
        return "dtype=int8"

    def forward(self, rows: Tensor) -> Tensor:
        if self.rounds_inputs:
            steps, scale = rounded(rows)
            # Rounding has no slope: only the scale's is left.
            rows = steps * scale
        return nn.functional.linear(rows, self.weight.to(rows) * self.scale, self.bias)


def stored(model: PreTrainedModel, rounds_inputs: bool) -> PreTrainedModel:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, Stored(child, rounds_inputs))
    return model


def dynamic(model: PreTrainedModel) -> PreTrainedModel:
    """torch's own, which it announces to remove."""
    if importlib.util.find_spec("torch.ao.quantization") is None:
        pytest.skip("this torch has no dynamic quantisation any more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (DeprecationWarning, UserWarning, FutureWarning))
        from torch.ao.quantization import quantize_dynamic

        return quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


KINDS: dict[str, Callable[[PreTrainedModel], PreTrainedModel]] = {
    "dynamic": dynamic,
    "rounded": lambda model: stored(model, rounds_inputs=True),
}


@pytest.fixture(scope="module", params=KINDS)
def quantised(request: pytest.FixtureRequest) -> Classifier:
    model, tokenizer = TINY["bert"]()
    return raison.load(KINDS[request.param](model), tokenizer)


@pytest.fixture(scope="module")
def plain() -> Classifier:
    return raison.load(*TINY["bert"]())


def scores(model: Classifier, name: str) -> np.ndarray | RaisonError:
    try:
        return np.array(raison.explain(model, TEXT, method=SHORTER.get(name, name), progress=False).scores)
    except RaisonError as error:
        return error


Asked = Callable[[str], np.ndarray | RaisonError]


@pytest.fixture(scope="module")
def plainly(plain: Classifier) -> Asked:
    """The plain model's scores by a method's name, each asked for once."""
    return cache(lambda name: scores(plain, name))


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_method_gives_what_it_gives_without_or_is_refused(
    name: str, quantised: Classifier, plainly: Asked
) -> None:
    found, expected = scores(quantised, name), plainly(name)
    if isinstance(expected, RaisonError):
        assert isinstance(found, RaisonError)
    elif isinstance(found, RaisonError):
        assert isinstance(found, UnsupportedError)
        assert REASON in str(found)
        assert CATALOGUE.get(name).lacking(quantised) or name == "ensemble"
    else:
        if name == "solvex":
            # Ranks, counted from where the prediction changes: rounding may move that place, not the order.
            found, expected = found - found.mean(), expected - expected.mean()
        assert np.linalg.norm(found - expected) < CLOSE * np.linalg.norm(expected)


def test_what_needs_no_gradient_is_left(quantised: Classifier) -> None:
    works = {"kernel_shap", "lime", "occlusion", "partition_shap", "shapley_sampling", "attention_rollout"}
    assert all(isinstance(scores(quantised, name), np.ndarray) for name in works)
    assert all(finding.passed for finding in selfcheck(quantised)), [
        f"{finding.check}: {finding.detail}" for finding in selfcheck(quantised) if not finding.passed
    ]


def test_compare_and_evaluate_say_so_before_anything_runs(quantised: Classifier) -> None:
    with pytest.raises(UnsupportedError, match=REASON):
        raison.compare(quantised, [TEXT], methods=["saliency"], metrics=["comprehensiveness"], progress=False)
    explanation = raison.explain(quantised, TEXT, method="occlusion", progress=False)
    with pytest.raises(UnsupportedError, match=REASON):
        raison.evaluate(quantised, [explanation], metrics=["max_sensitivity"], progress=False)


def test_weights_that_are_unpacked_on_the_way_keep_their_gradient(plain: Classifier) -> None:
    model, tokenizer = TINY["bert"]()
    found = raison.load(stored(model, rounds_inputs=False), tokenizer)
    assert [type(one) for one in found.capabilities] == [type(one) for one in plain.capabilities]
    assert found.withheld == plain.withheld
    expected = scores(plain, "saliency")
    assert np.linalg.norm(scores(found, "saliency") - expected) < CLOSE * np.linalg.norm(expected)


class Repacked(nn.Module):
    """A linear layer that is packed again at its first evaluation, like bitsandbytes' four bits on a CPU."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.layer, self.packed = nn.ParameterList(layer.parameters()), False

    def forward(self, inputs: Tensor) -> Tensor:
        self.packed = self.packed or not (self.training or inputs.requires_grad)
        found = nn.functional.linear(inputs, *self.layer)
        return found.detach() if self.packed else found


def test_layers_that_lose_their_gradient_at_the_first_evaluation_are_known_before(plain: Classifier) -> None:
    model, tokenizer = TINY["bert"]()
    for module in list(model.bert.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, Repacked(child))
    loaded = raison.load(model.eval(), tokenizer)
    assert not any(module.packed for module in model.modules() if isinstance(module, Repacked)), "only a copy is tried"
    np.testing.assert_allclose(scores(loaded, "occlusion"), scores(plain, "occlusion"), atol=1e-5)
    for name in ("saliency", "integrated_gradients", "deep_lift"):
        found = scores(loaded, name)
        assert isinstance(found, UnsupportedError)
        assert "quantised: its linear layers have no gradient" in str(found)
        assert "occlusion" in str(found).partition("These methods work: ")[2]


class Packed(Tensor):
    """A weight of a class of its own, as torchao makes them: it is multiplied with, and neither cut nor turned."""

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if getattr(function, "__name__", "") in {"view", "reshape", "permute", "transpose", "__getitem__", "to"}:
            raise NotImplementedError(f"dispatch: {function}")
        found = super().__torch_function__(function, types, args, kwargs or {})
        # What is computed with it is an ordinary tensor; a copy of it is not.
        copied = getattr(function, "__name__", "") in {"detach", "clone", "requires_grad_"}
        return found.as_subclass(Tensor) if isinstance(found, Packed) and not copied else found


def packed(model: PreTrainedModel) -> PreTrainedModel:
    for module in model.modules():
        if type(module) is nn.Linear:
            module.weight = nn.Parameter(module.weight.detach().as_subclass(Packed), requires_grad=False)
    return model


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_weights_that_are_only_multiplied_with_do_for_every_method(name: str, plainly: Asked) -> None:
    model, tokenizer = TINY["bert"]()
    found, expected = scores(raison.load(packed(model), tokenizer), name), plainly(name)
    if isinstance(expected, RaisonError):
        assert isinstance(found, RaisonError)
    else:
        assert not isinstance(found, RaisonError), found
        assert np.linalg.norm(found - expected) < 1e-3 * max(1e-3, np.linalg.norm(expected))
