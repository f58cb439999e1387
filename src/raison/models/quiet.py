"""Models and transformers for the duration of a task: in evaluation mode, and without chatter."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from transformers.utils import logging as hf_logging


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, no word of transformers about a new head (it is meant to be new), and no progress bar of its own."""
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


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; modules that were training train again afterwards."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
