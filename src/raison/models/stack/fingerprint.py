"""Whether a model is still what it was when something was computed from it."""

from collections.abc import Hashable
from itertools import chain

import torch
from torch import Tensor, nn

from raison.models.stack.hooks import without_own

SAMPLES = 16
"""Approximate number of values of each parameter that are compared to notice a change."""


def fingerprint(base: nn.Module) -> tuple[Hashable, ...]:
    """A fingerprint that changes when the model does; costs a few milliseconds.

    It covers the identity of each parameter's and each buffer's tensor, how often it was written to, and a sample of
    its values, because writes through `.data` are not counted; and each module's hooks, replaced forward function and
    plain settings, such as which adapters are active. A `.data` write to a few values of a parameter may go unnoticed.
    What a hook or a replaced function computes from outside of the model is not seen (`has_unseen_state`).
    """
    identity: list[Hashable] = []
    samples: dict[torch.device, list[Tensor]] = {}
    for parameter in chain(base.parameters(), base.buffers()):
        version = 0 if parameter.is_inference() else parameter._version
        identity.append((id(parameter), parameter.data_ptr(), parameter.shape, parameter.dtype, version))
        plain = parameter.detach()
        # Quantised tensors may not allow this; offloaded ones hold no values here.
        if type(plain) is Tensor and plain.numel() and not plain.is_meta:
            # An odd stride reaches every column of a matrix with an even number of them.
            values = plain.reshape(-1)[:: (plain.numel() // SAMPLES) | 1]
            samples.setdefault(plain.device, []).append(values.float())
    seen = tuple(torch.cat(values).cpu().numpy().tobytes() for values in samples.values())
    return (*identity, seen, tuple(_settings(module) for module in base.modules()))


def _settings(module: nn.Module) -> tuple[Hashable, ...]:
    # Without this project's own hooks, which other threads set and remove around their passes.
    settings: list[Hashable] = [*without_own(module._forward_hooks), None, *without_own(module._forward_pre_hooks)]
    if "forward" in vars(module):
        settings.append(id(vars(module)["forward"]))
    for name, value in vars(module).items():
        if isinstance(value, (bool, int, float, str)):
            settings.append((name, value))
        elif type(value) is list and all(isinstance(item, str) for item in value):
            settings.append((name, tuple(value)))
        elif type(value) is dict and value and all(isinstance(item, (bool, int, float)) for item in value.values()):
            settings.append((name, tuple(value.items())))
    return tuple(settings)
