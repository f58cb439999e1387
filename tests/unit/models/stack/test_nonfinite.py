"""Naming the module where numbers stop being finite."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.models.stack.nonfinite import first_nonfinite
from raison.models.stack.tap import attention_modules
from tests.tiny import TAPPED, TINY


def pass_of(name: str) -> tuple[PreTrainedModel, Callable[[], object]]:
    model, tokenizer = TINY[name]()
    inputs = tokenizer(["The rain did not stop.", "Not at all!"], return_tensors="pt", padding=True)
    return model, lambda: model(**inputs)


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("name", TINY)
def test_a_sound_model_has_none(name: str) -> None:
    model, run = pass_of(name)
    assert first_nonfinite(model, run) is None
    assert hooks(model) == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", TAPPED)
def test_the_innermost_culprit_is_named(name: str, value: float) -> None:
    model, run = pass_of(name)
    names = {module: dotted for dotted, module in model.named_modules()}
    # A projection of the second attention layer: GPT-2 has its own class for a linear layer.
    culprit = next(
        module
        for module in attention_modules(model)[1].modules()
        if "weight" in dict(module.named_parameters(recurse=False))
    )
    with torch.no_grad():
        culprit.weight.view(-1)[0] = value
    assert first_nonfinite(model, run) == names[culprit]
    assert hooks(model) == 0


def test_a_model_is_named_by_its_class() -> None:
    class Divides(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, numbers: Tensor) -> dict[str, list[Tensor]]:
            return {"quotients": [self.inner(numbers), numbers / 0]}

    model = Divides()
    assert first_nonfinite(model, lambda: model(torch.ones(2))) == "Divides"
    assert first_nonfinite(model, lambda: model.inner(torch.ones(2))) is None


def test_hooks_go_when_the_pass_fails() -> None:
    model, _ = pass_of("bert")

    def fail() -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        first_nonfinite(model, fail)
    assert hooks(model) == 0
