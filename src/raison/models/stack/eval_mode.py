"""Contexts for the duration of a task: models in evaluation mode, and transformers without messages.

Modes and settings belong to all threads. The first thread that needs one sets it, the last one puts it back.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock, RLock

import torch
from torch import nn
from transformers.utils import logging as hf_logging

_LOCK = Lock()
_RANDOM = RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers prints no warning about a new head, which is intended, and no progress bar."""
    with _LOCK:
        if _HUSHED.users == 0:
            _HUSHED.settings.enter_context(_hushed())
        _HUSHED.users += 1
    try:
        yield
    finally:
        with _LOCK:
            _HUSHED.users -= 1
            if _HUSHED.users == 0:
                _HUSHED.settings.close()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; modules that were training train again afterwards, once no thread evaluates them."""
    with _LOCK:
        held = _hold(model)
    try:
        yield
    finally:
        if held:
            with _LOCK:
                _let_go(held)


@contextmanager
def drawing(seed: int | None = None, devices: Iterable[int] = ()) -> Iterator[None]:
    """Torch's random numbers of the CPU, starting from `seed` or from the current state, which is restored afterwards.

    The state of the named CUDA devices is restored, too. For one thread at a time, since all draw from one generator:
    others wait on entry.
    """
    with _RANDOM, torch.random.fork_rng(devices=list(devices)):
        if seed is not None:
            # Not torch.manual_seed: that would also set the generators of other devices.
            torch.default_generator.manual_seed(seed)
        yield


@dataclass(slots=True)
class _Hushed:
    """How many contexts are quiet, and how to undo it."""

    settings: ExitStack
    users: int = 0


_HUSHED = _Hushed(ExitStack())
_TRAINING: dict[nn.Module, int] = {}
"""Modules that will train again, and in how many contexts they are evaluated."""


def _hold(model: nn.Module) -> Sequence[nn.Module]:
    """Modules in training mode, or that would be without other contexts; put into evaluation mode here."""
    if _TRAINING:
        held = [module for module in model.modules() if module.training or module in _TRAINING]
    else:
        held = [module for module in model.modules() if module.training]
    for module in held:
        _TRAINING[module] = _TRAINING.get(module, 0) + 1
        if module.training:
            module.training = False
    return held


def _let_go(held: Sequence[nn.Module]) -> None:
    for module in held:
        _TRAINING[module] -= 1
        if _TRAINING[module] == 0:
            del _TRAINING[module]
            module.training = True


@contextmanager
def _hushed() -> Iterator[None]:
    level, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # PEFT still asks transformers by the old name.
            warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
            yield
    finally:
        hf_logging.set_verbosity(level)
        if bars:
            hf_logging.enable_progress_bar()
