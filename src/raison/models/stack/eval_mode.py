"""Contexts for the duration of a task: models in evaluation mode, and transformers without messages.

Modes and settings belong to all threads. The first thread that needs one sets it, the last one puts it back, even if
Ctrl-C arrives while it is set or put back.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock, RLock

import torch
from torch import nn
from transformers.utils import logging as hf_logging

from raison.models.stack.shared_changes import SharedChanges

_LOCK = Lock()
_RANDOM = RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers prints no warning about a new head, which is intended, and no progress bar."""
    user = object()
    try:
        with _LOCK:
            if not _HUSHED.users:
                _HUSHED.settings.enter_context(_hushed())
            _HUSHED.users.add(user)
        yield
    finally:
        try:
            _speak(user)
        except KeyboardInterrupt:
            _speak(user)
            raise


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; modules that were training train again afterwards, once no thread evaluates them."""
    with _MODES.made(model.modules()):
        yield


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
    """Which contexts are quiet, and how to undo it."""

    settings: ExitStack
    users: set[object] = field(default_factory=set)


_HUSHED = _Hushed(ExitStack())


def _speak(user: object) -> None:
    with _LOCK:
        if _HUSHED.users <= {user}:
            _HUSHED.settings.close()
        _HUSHED.users.discard(user)


def _train(module: nn.Module, trains: bool) -> None:
    module.training = trains


_MODES = SharedChanges[nn.Module, bool](
    read=lambda module: module.training,
    change=lambda module: _train(module, False),
    restore=_train,
    is_changed=lambda module: not module.training,
)


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
