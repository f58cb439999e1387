"""Actions around the calls of modules: of one thread, in order among the hooks of others, and gone afterwards."""

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count, takewhile
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from raison.models.stack import hooks
from raison.models.stack.fingerprint import fingerprint
from raison.models.stack.hooks import hooked
from raison.models.stack.layers import ReachedError
from tests.interruptions import interrupted_at
from tests.patience import PATIENCE
from tests.threads import in_another


class Sum(nn.Module):
    """Adds its number to what it is given."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = nn.Parameter(torch.tensor(number))

    def forward(self, value: Tensor, times: int = 1) -> Tensor:
        return value + times * self.number


def before(name: str, said: list[str]) -> Callable[..., Any]:
    return lambda _module, args, kwargs: said.append(name) or ((args[0] + 1, *args[1:]), kwargs)


def after(name: str, said: list[str]) -> Callable[..., Any]:
    return lambda _module, _args, output: said.append(name) or output * 2


def bare(module: nn.Module) -> bool:
    return not (module._forward_hooks or module._forward_pre_hooks or module._forward_pre_hooks_with_kwargs)


def test_in_order_around_the_hooks_of_others() -> None:
    module, said = Sum(1.0), list[str]()
    with ExitStack() as others:
        for setter, name in (
            (module.register_forward_pre_hook, "other before"),
            (module.register_forward_hook, "other"),
        ):
            others.callback(setter(lambda *_, name=name: said.append(name)).remove)
        places = {"first": before, "before": before, "inner": after, "after": after}
        outer = {place: make(f"outer {place}", said) for place, make in places.items()}
        inner = {place: make(f"inner {place}", said) for place, make in places.items()}
        with hooked([module], **outer), hooked([module], **inner):
            found = module(torch.tensor(0.0))
    assert said == [
        *("inner first", "outer first", "other before", "outer before", "inner before"),
        *("inner inner", "outer inner", "other", "outer after", "inner after"),
    ]
    assert found == (4 + 1) * 16
    assert bare(module)


def test_none_leaves_a_call_as_it_is_and_keywords_are_changed() -> None:
    module = Sum(1.0)
    with hooked([module], before=lambda *_: None, after=lambda *_: None):
        assert module(torch.tensor(1.0), times=2) == 3
    with hooked([module], before=lambda _module, args, kwargs: (args, kwargs | {"times": 5})):
        assert module(torch.tensor(1.0), times=2) == 6


def test_left_through_an_exception_and_in_another_order_than_entered() -> None:
    module = Sum(1.0)
    with pytest.raises(RuntimeError, match="on purpose"), hooked([module], after=after("a", [])):
        raise RuntimeError("on purpose")
    assert bare(module)
    one, two = hooked([module], after=lambda _m, _a, output: output + 1), hooked([module], after=after("b", []))
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert module(torch.tensor(0.0)) == 2
    two.__exit__(None, None, None)
    assert module(torch.tensor(0.0)) == 1
    assert bare(module)


def test_nothing_is_kept_of_a_module() -> None:
    module = Sum(1.0)
    with hooked([module], before=before("a", []), after=after("a", [])):
        module(torch.tensor(0.0))
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_a_module_twice_is_acted_on_once_and_copies_are_left_alone() -> None:
    module = Sum(1.0)
    with hooked([module, module], after=after("a", [])):
        twin = copy.deepcopy(module)
        read = pickle.loads(pickle.dumps(module))
        assert module(torch.tensor(0.0)) == 2
        assert (twin(torch.tensor(0.0)), read(torch.tensor(0.0))) == (1, 1)
    assert twin._forward_hooks
    hooks.forget_own(twin)
    assert bare(twin)


def test_other_threads_pass_untouched_and_with_their_own_actions() -> None:
    module, said = Sum(1.0), list[str]()

    def elsewhere() -> None:
        assert module(torch.tensor(0.0)) == 1
        with hooked([module], after=lambda _m, _a, output: output + 10):
            assert module(torch.tensor(0.0)) == 11

    with hooked([module], before=before("mine", said), after=after("mine", said)):
        in_another(elsewhere)
        assert said == []
        assert hooks.acting_on([Sum(2.0), module])
        in_another(lambda: said.append("elsewhere") if hooks.acting_on([module]) else None)
        assert said == []
        assert module(torch.tensor(0.0)) == 4
        assert len(module._forward_hooks) == 1
    assert bare(module)
    assert not hooks.acting_on([module])


def test_the_first_sets_a_hook_and_the_last_takes_it_away() -> None:
    module = Sum(1.0)
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with hooked([module], after=after("other", [])):
            entered.set()
            assert leave.wait(PATIENCE)

    thread = threading.Thread(target=stay)
    with hooked([module], after=after("mine", [])):
        thread.start()
        assert entered.wait(PATIENCE)
        hook = list(module._forward_hooks)
    assert list(module._forward_hooks) == hook
    assert module(torch.tensor(0.0)) == 1
    leave.set()
    thread.join()
    assert bare(module)


def test_another_thread_between_a_hook_and_the_note_that_it_takes_keywords() -> None:
    """Torch sets the hook first and the note second; a call in between comes without keywords."""
    module = Sum(1.0)

    class Paused(OrderedDict[int, bool]):
        def __setitem__(self, key: int, value: bool) -> None:
            in_another(lambda: found.append(module(torch.tensor(0.0), times=2)))
            super().__setitem__(key, value)

    found: list[Tensor] = []
    module._forward_pre_hooks_with_kwargs = Paused()
    with hooked([module], before=before("mine", [])):
        assert module(torch.tensor(0.0)) == 2
    assert found == [2]


def test_own_hooks_are_no_change_of_the_model_and_those_of_others_are() -> None:
    module = Sum(1.0)
    plain = fingerprint(module)
    with hooked([module], first=before("mine", []), inner=after("mine", [])):
        assert fingerprint(module) == plain
        handle = module.register_forward_hook(lambda *_: None)
        assert fingerprint(module) != plain
        handle.remove()


def test_an_exception_of_a_pass_is_not_lost_where_hooks_come_and_go() -> None:
    """Torch looks through a module's hooks at every Exception; leaving a layer on purpose must not meet that."""
    assert not issubclass(ReachedError, Exception)


def test_an_interruption_at_any_moment_leaves_nothing() -> None:
    modules = [Sum(1.0), Sum(2.0)]

    def act() -> None:
        with hooked(modules, before=before("a", []), after=after("b", [])):
            pass

    for moment in count():
        with hooked(modules[:1], after=after("another", [])):
            interrupted = interrupted_at(moment, act, hooks)
            assert modules[0](torch.tensor(0.0)) == 2
            assert bare(modules[1])
        assert all(map(bare, modules))
        assert not hooks._INSTALLED
        if not interrupted:
            break
    assert moment > 40


@pytest.mark.parametrize("leaving", [False, True])
def test_whoever_comes_between_an_interruption_and_its_clean_up_has_its_hook(leaving: bool) -> None:
    """The lock is free then, so that another thread may find a hook that is only half set or removed."""

    def found(moment: int) -> bool:
        module = Sum(1.0)
        opened, keys = hooks._HookActions({}), {("after", id(module)): module}
        if leaving:
            hooks._install(opened, keys)
        change = partial(hooks._close if leaving else hooks._install, opened, keys)
        interrupted = interrupted_at(moment, change, hooks)
        with hooked([module], after=lambda _m, _a, output: output + 10):
            hooks._close(opened, keys)
            assert module(torch.tensor(0.0)) == 11
        assert bare(module)
        return interrupted

    assert len(list(takewhile(found, count()))) > 3
