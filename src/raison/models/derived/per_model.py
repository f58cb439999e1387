"""What is made once for a model, and again after the model has changed."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

from raison.models.stack.eval_mode import evaluating
from raison.models.stack.fingerprint import fingerprint

T = TypeVar("T")


@dataclass(slots=True)
class _Made:
    """Everything that was made for one state of a model, by key."""

    state: Hashable
    things: dict[Hashable, Any] = field(default_factory=dict)


_MADE: WeakKeyDictionary[Any, dict[int, _Made]] = WeakKeyDictionary()
"""By owner, only as long as that is in use, and by the id of the network."""


def made_once(owner: object, network: nn.Module | None, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, which is called again if the parameters or settings of the owner's `network` have changed.

    An owner without a network counts as unchanged. Costs a look at every module and parameter (`fingerprint`), some
    milliseconds for a large model. `make` runs outside the caller's inference mode, whose tensors could not be trained
    later.
    """
    state: Hashable = None
    if network is not None:
        # In evaluation mode: the training flag is not a change, and other threads may be evaluating the model.
        with evaluating(network):
            state = fingerprint(network)
    of_owner = _MADE.setdefault(owner, {})
    made = of_owner.get(id(network))
    if made is None or made.state != state:
        made = of_owner[id(network)] = _Made(state)
    if key not in made.things:
        with torch.inference_mode(False):
            made.things[key] = make()
    thing: T = made.things[key]
    return thing
