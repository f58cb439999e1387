"""Models that tests have one after the other, as long as each leaves its model as it was.

A new model is tried out before it is first explained: whether its answers are steady, and which shortcuts its passes
can take. That costs more than most of what is tested. Tests of what a first use leaves behind are marked new_model.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import TypeVar

import pytest

from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator

M = TypeVar("M", Classifier, Generator)
_KEPT: dict[Hashable, tuple[Classifier | Generator, list[object]]] = {}


def reused(request: pytest.FixtureRequest, name: Hashable, load: Callable[[], M]) -> Iterator[M]:
    """The model of this name that an earlier test has left as it was, or a new one."""
    if request.node.get_closest_marker("new_model"):
        yield load()
        return
    model, before = _KEPT.pop(name, (None, []))
    if model is None:
        model = load()
        before = _state(model)
    yield model
    if _state(model) == before:
        _KEPT[name] = model, before


def _state(model: Classifier | Generator) -> list[object]:
    """What a test can change of a model: weights, modes, hooks, settings, and what is set on the adapter itself."""
    tensors = chain(model.model.parameters(), model.model.buffers())
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [
        [(id(t), t._version, t.dtype, t.requires_grad, t.grad is None) for t in tensors],
        [
            (id(module), module.training, "forward" in vars(module), *(len(getattr(module, name)) for name in hooks))
            for module in model.model.modules()
        ],
        {name: id(value) for name, value in vars(model).items() if not name.startswith("_") and name != "ranker"},
        repr(getattr(model, "budget", None)),
        repr(vars(model.model.config)),
        len(model.tokenizer),
        model.tokenizer.padding_side,
    ]
