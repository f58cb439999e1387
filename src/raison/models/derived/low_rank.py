"""Linear layers whose trained part may differ between the rows of a batch."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


def rowwise(
    features: Float[Tensor, "batch tokens _features"], weight: Float[Tensor, "*rows _out _features"]
) -> Float[Tensor, "batch tokens _out"]:
    """features times a matrix, or row b of the batch times matrix b if there is one per row."""
    return features @ weight.mT


class RowLinear(nn.Module):
    """A linear layer. With parameters stacked along a first axis, row b of the batch uses the b-th ones."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, features: Float[Tensor, "batch tokens _in"]) -> Float[Tensor, "batch tokens _out"]:
        bias = self.bias if self.bias.ndim == 1 else self.bias[:, None]
        return rowwise(features, self.weight) + bias


class LowRank(nn.Module):
    """A frozen linear layer plus a trained product of two thin matrices (Hu et al. 2022), zero at the beginning.

    With `down` and `up` stacked along a first axis, row b of the batch uses the b-th ones.
    """

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    @property
    def weight(self) -> Tensor:
        """Some families check a layer's type before they call it."""
        return self.linear.weight

    def forward(self, features: Tensor) -> Tensor:
        return self.linear(features) + rowwise(rowwise(features, self.down), self.up)


def add_low_rank(module: nn.Module, rank: int, skipped: tuple[str, ...] = ()) -> None:
    """Freeze a module and replace its linear layers by LowRank, in place.

    Layers below a child whose name contains one of `skipped` stay as they are.
    """
    module.requires_grad_(False)
    _replace(module, rank, skipped)


def _replace(module: nn.Module, rank: int, skipped: tuple[str, ...]) -> None:
    for name, child in module.named_children():
        if any(word in name for word in skipped):
            continue
        if isinstance(child, nn.Linear):
            setattr(module, name, LowRank(child, rank))
        else:
            _replace(child, rank, skipped)


def merge_low_rank(module: nn.Module) -> None:
    """Merge each LowRank into its linear layer and restore that layer; for one set of parameters."""
    for name, child in module.named_children():
        if not isinstance(child, LowRank):
            merge_low_rank(child)
            continue
        with torch.no_grad():
            child.linear.weight += child.up @ child.down
        setattr(module, name, child.linear)
