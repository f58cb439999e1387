"""Stored keys and values reach a transformer under the name that its forward has for them."""

import warnings

import pytest
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from raison.models.stack.caches import given_cache
from tests.tiny import TINY


class Renamed(nn.Module):
    def forward(self, ids: Tensor, cache: DynamicCache | None = None) -> Tensor:
        return ids


class Older(nn.Module):
    def forward(self, ids: Tensor, past_key_values: DynamicCache | None = None) -> Tensor:
        return ids


class Anything(nn.Module):
    def forward(self, ids: Tensor, **_rest: object) -> Tensor:
        return ids


@pytest.mark.parametrize(
    ("base", "name"), [(Renamed(), "cache"), (Older(), "past_key_values"), (Anything(), "past_key_values")]
)
def test_the_argument_has_the_name_of_the_forward(base: nn.Module, name: str) -> None:
    stored = DynamicCache()
    (argument,) = given_cache(base, stored).items()
    assert argument == (name, stored)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_the_installed_version_takes_it_without_a_warning(family: str) -> None:
    base = TINY[family]()[0].base_model
    cache = DynamicCache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base(input_ids=torch.tensor([[3, 4, 5]]), use_cache=True, **given_cache(base, cache))
    assert cache.get_seq_length() == 3
