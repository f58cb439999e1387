"""captum's DeepLift agrees where a model is made of linear layers and activation modules that it knows.

Elsewhere it does not: functions that are not modules escape it (in Hugging Face models GELU, softmax and norms), and
products have plain gradients. Its scores then do not sum to the difference; those of raison do.
"""

import pytest
import torch
from torch import Tensor, nn

from raison.models.gradients.rules.function_mode import applied
from raison.models.gradients.rules.rescale import rescale_rules

attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.peer


class Gated(nn.Module):
    """A feed-forward layer as transformers have it: a function, a product, and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 1)
        self.norm = nn.LayerNorm(6)

    def forward(self, values: Tensor) -> Tensor:
        normed = self.norm(values)
        return self.down(nn.functional.gelu(self.gate(normed)) * self.up(normed))


def randomized(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / 2
    return model.double()


def points() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    first, second = torch.randn(2, 5, 6, dtype=torch.float64, generator=generator)
    return first, second


def own_scores(model: nn.Module, first: Tensor, second: Tensor) -> Tensor:
    both = torch.cat([first, second]).requires_grad_()
    with applied(rescale_rules(len(both)), model):
        value = model(both)
    (slopes,) = torch.autograd.grad(value[: len(first)].sum(), both)
    return slopes[: len(first)] * (first - second)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.Softplus])
def test_layers_with_activation_modules(activation: type[nn.Module]) -> None:
    model = randomized(nn.Sequential(nn.Linear(6, 8), activation(), nn.Linear(8, 8), activation(), nn.Linear(8, 1)))
    first, second = points()
    expected = attr.DeepLift(model).attribute(first, second)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(own_scores(model, first, second), expected.detach(), rtol=1e-6, atol=1e-8)


def test_functions_products_and_norms_escape_captum() -> None:
    model = randomized(Gated())
    first, second = points()
    change = (model(first) - model(second)).detach()[:, 0]
    captum = attr.DeepLift(model).attribute(first, second).detach().sum(1)
    assert (captum - change).abs().max() > 0.1
    torch.testing.assert_close(own_scores(model, first, second).sum(1), change, rtol=0, atol=1e-9)
