"""Actions of one thread around the calls of modules that all threads share.

A hook of torch belongs to its module: it is called in the passes of every thread. Here a hook is set once, by the first
thread that needs the module, and removed by the last. It only looks up the actions that the calling thread has open, in
a context variable that other threads do not share. So a thread finds its own actions in all of its passes, and passes
of other threads, including the caller's, run as if there were none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from torch import nn
from torch.utils.hooks import RemovableHandle

Args = tuple[Any, ...]
Keywords = dict[str, Any]
Before = Callable[[nn.Module, Args, Keywords], tuple[Args, Keywords] | None]
"""(module, args, kwargs) -> replacements of args and kwargs; None keeps them."""
After = Callable[[nn.Module, Args, Any], Any]
"""(module, args, output) -> a replacement of the output; None keeps it."""
HookPlace = Literal["first", "before", "inner", "after"]


@contextmanager
def hooked(
    modules: Iterable[nn.Module],
    *,
    first: Before | None = None,
    before: Before | None = None,
    inner: After | None = None,
    after: After | None = None,
) -> Iterator[None]:
    """Act on the calls of these modules that this thread makes inside the context.

    In order: `first`, pre-hooks that others have set, `before`, the module's forward, `inner`, hooks that others have
    set, `after`. In nested contexts, `first` and `inner` run innermost first, `before` and `after` outermost first,
    like torch's own hooks that are prepended or appended. Copies of a module are left alone.
    """
    given: dict[HookPlace, Before | After | None] = {
        "first": first,
        "before": before,
        "inner": inner,
        "after": after,
    }
    chosen = {id(module): module for module in modules}
    actions = {(place, key): action for place, action in given.items() if action is not None for key in chosen}
    opened = _HookActions(actions)
    keys = {key: chosen[key[1]] for key in actions}
    try:
        _install(opened, keys)
        _OPEN.set((*_OPEN.get(), opened))
        yield
    finally:
        try:
            _close(opened, keys)
        except KeyboardInterrupt:
            # Closing was interrupted: nothing may stay on the modules.
            _close(opened, keys)
            raise


def following(module: nn.Module) -> After:
    """A hook for a copy of a module: this thread's actions after the module's calls also act on the copy's calls."""

    def follow(_copy: nn.Module, args: Args, output: Any) -> Any:
        opened = _OPEN.get()
        return _changed_output("after", opened, module, args, output) if opened else None

    return follow


def acting_on(modules: Iterable[nn.Module]) -> bool:
    """Whether this thread has an action open on one of these modules."""
    opened = _OPEN.get()
    if not opened:
        return False
    known = {key for each in opened for _, key in each.actions}
    return any(id(module) in known for module in modules)


def without_own(hooks: Mapping[int, Callable[..., Any]]) -> list[int]:
    """The ids of other hooks in a module's table of hooks."""
    # Copied at once, because other threads may set and remove hooks meanwhile.
    return [number for number, hook in list(hooks.items()) if hook not in _OWN]


def foreign_hooks(module: nn.Module) -> list[Callable[..., Any]]:
    """The hooks around a module's passes that others have set."""
    tables = (module._forward_pre_hooks, module._forward_hooks)
    return [hook for hooks in tables for hook in list(hooks.values()) if hook not in _OWN]


def forget_own(module: nn.Module) -> None:
    """Remove this file's hooks from a copy of a module that was made while the module had them."""
    for hook in _OWN:
        _unset(module, hook)


@contextmanager
def held_still() -> Iterator[None]:
    """Inside, no hook is set or removed, so that modules can be copied with their hooks."""
    with _LOCK:
        yield


@dataclass(frozen=True, slots=True, eq=False)
class _HookActions:
    """The actions of one context, by place and the module's id."""

    actions: Mapping[tuple[HookPlace, int], Callable[..., Any]]


@dataclass(slots=True)
class _Installed:
    """A module that has a hook, and the open contexts that need it."""

    module: nn.Module
    users: set[_HookActions] = field(default_factory=set)
    is_set: bool = False
    """False while the hook is set or removed, which may be interrupted."""


_OPEN: ContextVar[tuple[_HookActions, ...]] = ContextVar("raison_open_hooks", default=())
_INSTALLED: dict[tuple[HookPlace, int], _Installed] = {}
_LOCK = Lock()


def _install(opened: _HookActions, keys: Mapping[tuple[HookPlace, int], nn.Module]) -> None:
    with _LOCK:
        for key, module in keys.items():
            # Known before it is set: if interrupted in between, it is removed all the same.
            installed = _INSTALLED.setdefault(key, _Installed(module))
            installed.users.add(opened)
            if not installed.is_set:
                # Another thread may have been interrupted while it set or removed the hook.
                _unset(module, _HOOKS[key[0]])
                _SETTERS[key[0]](module)
                installed.is_set = True


def _close(opened: _HookActions, keys: Iterable[tuple[HookPlace, int]]) -> None:
    """Undo as much of a context as was done, in any order of contexts; may be repeated after an interruption."""
    # Generators may be left in another order than they were entered, and in another context.
    _OPEN.set(tuple(other for other in _OPEN.get() if other is not opened))
    with _LOCK:
        for key in keys:
            installed = _INSTALLED.get(key)
            if installed is None:
                continue
            if installed.users - {opened}:
                installed.users.discard(opened)
            else:
                installed.is_set = False
                _unset(installed.module, _HOOKS[key[0]])
                del _INSTALLED[key]


def _unset(module: nn.Module, hook: Callable[..., Any]) -> None:
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for number in [number for number, other in list(hooks.items()) if other is hook]:
            # The keywords' table first: it alone would change the calls of a later hook of this number.
            module._forward_pre_hooks_with_kwargs.pop(number, None)
            hooks.pop(number, None)


def _changed_call(
    place: HookPlace, opened: Iterable[_HookActions], module: nn.Module, args: Args, kwargs: Keywords | None
) -> tuple[Args, Keywords] | None:
    # Another thread may call the hook before torch notes that it takes keywords: that thread has no action here.
    if kwargs is None:
        return None
    changed = None
    for each in opened:
        action = each.actions.get((place, id(module)))
        new_inputs = None if action is None else action(module, args, kwargs)
        if new_inputs is not None:
            args, kwargs = changed = new_inputs
    return changed


def _changed_output(
    place: HookPlace, opened: Iterable[_HookActions], module: nn.Module, args: Args, output: Any
) -> Any:
    for each in opened:
        action = each.actions.get((place, id(module)))
        new_output = None if action is None else action(module, args, output)
        if new_output is not None:
            output = new_output
    return output


# Plain functions, the same for all modules: a copy made meanwhile refers to no thread's actions.
def _first(module: nn.Module, args: Args, kwargs: Keywords | None = None) -> tuple[Args, Keywords] | None:
    opened = _OPEN.get()
    return _changed_call("first", reversed(opened), module, args, kwargs) if opened else None


def _before(module: nn.Module, args: Args, kwargs: Keywords | None = None) -> tuple[Args, Keywords] | None:
    opened = _OPEN.get()
    return _changed_call("before", opened, module, args, kwargs) if opened else None


def _inner(module: nn.Module, args: Args, output: Any) -> Any:
    opened = _OPEN.get()
    return _changed_output("inner", reversed(opened), module, args, output) if opened else None


def _after(module: nn.Module, args: Args, output: Any) -> Any:
    opened = _OPEN.get()
    return _changed_output("after", opened, module, args, output) if opened else None


_HOOKS: dict[HookPlace, Callable[..., Any]] = {"first": _first, "before": _before, "inner": _inner, "after": _after}
_OWN = tuple(_HOOKS.values())
_SETTERS: dict[HookPlace, Callable[[nn.Module], RemovableHandle]] = {
    "first": lambda module: module.register_forward_pre_hook(_first, prepend=True, with_kwargs=True),
    "before": lambda module: module.register_forward_pre_hook(_before, with_kwargs=True),
    "inner": lambda module: module.register_forward_hook(_inner, prepend=True),
    "after": lambda module: module.register_forward_hook(_after),
}
