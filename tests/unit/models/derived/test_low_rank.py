"""Low-rank matrices beside frozen layers, one for all rows or one for each."""

import pytest
import torch
from torch import nn

from raison.models.derived.low_rank import LowRank, RowLinear, add_low_rank, merge_low_rank, rowwise

EXACT = {"rtol": 1e-5, "atol": 1e-5}


def features(rows: int = 3, tokens: int = 4, size: int = 5) -> torch.Tensor:
    return torch.randn(rows, tokens, size, generator=torch.Generator().manual_seed(1))


def stacked(module: nn.Module, rows: int) -> dict[str, torch.Tensor]:
    """Other numbers in every row, for all that is trained."""
    generator = torch.Generator().manual_seed(2)
    return {
        name: torch.randn(rows, *parameter.shape, generator=generator)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    }


def network() -> nn.Sequential:
    """Two low-rank layers with something between them, and a head."""
    body = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 6)))
    add_low_rank(body, 2)
    return nn.Sequential(body, RowLinear(6, 1))


def test_one_matrix_per_row_is_a_plain_product_of_each() -> None:
    values, matrices = features(), torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(3))
    found = rowwise(values, matrices)
    for row in range(3):
        torch.testing.assert_close(found[row], values[row] @ matrices[row].T, **EXACT)
        torch.testing.assert_close(rowwise(values, matrices[row])[row], found[row], **EXACT)


def test_stacked_parameters_are_each_row_alone() -> None:
    module, values = network(), features()
    own = stacked(module, 3)
    together = torch.func.functional_call(module, own, (values,))
    for row in range(3):
        single = {name: parameter[row] for name, parameter in own.items()}
        alone = torch.func.functional_call(module, single, (values[row : row + 1],))
        torch.testing.assert_close(together[row : row + 1], alone, **EXACT)
    assert (together[0] - torch.func.functional_call(module, own, (values.flip(0),))[0]).abs().max() > 1e-3


def test_gradients_of_stacked_parameters_are_each_row_s_own() -> None:
    module, values = network(), features()
    own = {name: parameter.requires_grad_() for name, parameter in stacked(module, 3).items()}
    loss = torch.func.functional_call(module, own, (values,)).square().sum()
    found = dict(zip(own, torch.autograd.grad(loss, list(own.values())), strict=True))
    for row in range(3):
        single = {name: parameter[row].detach().clone().requires_grad_() for name, parameter in own.items()}
        alone = torch.func.functional_call(module, single, (values[row : row + 1],)).square().sum()
        for name, gradient in zip(single, torch.autograd.grad(alone, list(single.values())), strict=True):
            torch.testing.assert_close(found[name][row], gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_a_new_one_is_the_layer_that_it_stands_for(bias: bool) -> None:
    plain = nn.Linear(5, 6, bias=bias)
    layer = LowRank(plain, 2)
    values = features()
    assert torch.equal(layer(values), plain(values))
    assert not layer.up.any()
    assert layer.down.std() > 0
    assert layer.weight is plain.weight


def test_the_product_is_added_to_the_layer_s_matrix() -> None:
    plain = nn.Linear(5, 6)
    layer = LowRank(plain, 2)
    nn.init.normal_(layer.up)
    merged = plain.weight + layer.up @ layer.down
    torch.testing.assert_close(layer(features()), features() @ merged.T + plain.bias, rtol=1e-5, atol=1e-5)


def test_only_the_thin_matrices_are_trained() -> None:
    module = nn.ModuleDict({"body": nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6)), "pooler": nn.Linear(6, 6)})
    add_low_rank(module, 2, skipped=("pool",))
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    assert trained == {"body.0.down", "body.0.up"}
    assert isinstance(module["pooler"], nn.Linear)
    assert isinstance(module["body"][0], LowRank)
    assert module["body"][0].down.shape == (2, 5)
    assert module["body"][0].up.shape == (6, 2)


def test_a_row_layer_is_a_linear_layer() -> None:
    layer = RowLinear(5, 6)
    torch.testing.assert_close(layer(features()), nn.functional.linear(features(), layer.weight, layer.bias), **EXACT)
    assert max(layer.weight.abs().max(), layer.bias.abs().max()) <= 5**-0.5


def test_merging_leaves_plain_layers_that_compute_the_same() -> None:
    module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 6, bias=False)), nn.Linear(6, 2))
    layers = [module[0], module[2][0]]
    add_low_rank(module, 2, skipped=("3",))
    keys = ["0.weight", "0.bias", "2.0.weight", "3.weight", "3.bias"]
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, LowRank):
                part.up.copy_(torch.randn(part.up.shape, generator=generator))
    before = module(features())
    merge_low_rank(module)
    assert [module[0], module[2][0]] == layers
    assert list(module.state_dict()) == keys
    torch.testing.assert_close(module(features()), before, rtol=1e-5, atol=1e-5)
    again = {name: value.clone() for name, value in module.state_dict().items()}
    merge_low_rank(module)
    assert all(torch.equal(value, again[name]) for name, value in module.state_dict().items())
