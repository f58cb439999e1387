"""What is made once for a model is made again when the model has changed."""

import copy
from itertools import count

import torch
from torch import nn

from raison.models.derived.per_model import made_once


class Owner:
    """Anything that can be referred to weakly."""


def test_it_is_made_once_for_each_key() -> None:
    owner, network, numbers = Owner(), nn.Linear(3, 2), count()

    def number(key: str) -> int:
        return made_once(owner, network, key, lambda: next(numbers))

    assert [number("a"), number("b"), number("a")] == [0, 1, 0]
    assert made_once(Owner(), network, "a", lambda: next(numbers)) == 2


def test_two_networks_of_one_owner_do_not_displace_each_other() -> None:
    owner, first, second, numbers = Owner(), nn.Linear(3, 2), nn.Linear(3, 2), count()
    found = [made_once(owner, network, "a", lambda: next(numbers)) for network in (first, None, second, first, None)]
    assert found == [0, 1, 2, 0, 1]


def test_every_change_of_the_network_makes_it_again() -> None:
    owner, network, numbers = Owner(), nn.Linear(3, 2), count()
    other = copy.deepcopy(network.state_dict())
    other["weight"] += 1

    def number() -> int:
        return made_once(owner, network, "a", lambda: next(numbers))

    assert number() == 0
    with torch.no_grad():
        network.weight += 1
    assert number() == 1
    network.weight.data *= 2
    assert number() == 2
    # Fresh tensors, which have not been written to since they were made.
    network.load_state_dict(other, assign=True)
    assert number() == 3
    network.eval()
    assert number() == 3


def test_tensors_can_be_trained_outside_the_callers_inference_mode() -> None:
    with torch.inference_mode():
        made = made_once(Owner(), None, "a", lambda: torch.ones(2, requires_grad=True))
    assert not made.is_inference()
