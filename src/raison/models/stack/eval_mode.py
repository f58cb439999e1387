"""Contexts for the duration of a task: evaluation mode, a model's own precision, and transformers without messages.

Modes and settings belong to all threads. The first thread that needs one sets it, the last one puts it back, even if
Ctrl-C arrives while it is set or put back. Autocast belongs to a thread.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock, RLock

import torch
from torch import nn
from transformers.utils import logging as hf_logging

from raison.models.stack.shared_changes import SharedChanges

_LOCK = Lock()
_RANDOM = RLock()
_AUTOCAST = ("cpu", "cuda", "mps", "xpu")
"""The kinds of devices that have a setting of autocast."""
_HALVED: ContextVar[bool] = ContextVar("halved", default=False)


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
    """Evaluation mode and the model's own precision inside; modules that were training train again afterwards, once no
    thread evaluates them."""
    with _MODES.made(model.modules()), own_precision():
        yield


@contextmanager
def own_precision() -> Iterator[None]:
    """Inside, a caller's `torch.autocast` does not apply: it would change explanations, without a word about it.

    That of `half_precision` does.
    """
    with ExitStack() as stack:
        for device in () if _HALVED.get() else _AUTOCAST:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def half_precision(device: str, enabled: bool) -> Iterator[None]:
    """Inside, a training computes with 16 bits where that is safe, models in evaluation mode included."""
    token = _HALVED.set(enabled)
    try:
        with torch.autocast(device, torch.bfloat16, enabled=enabled):
            yield
    finally:
        _HALVED.reset(token)


def is_halved() -> bool:
    """Whether a training of this thread computes with 16 bits."""
    return _HALVED.get()


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
