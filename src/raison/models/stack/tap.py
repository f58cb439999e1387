"""Read and edit the steps of a model's attention, through the attention registry of transformers.

Inside the context the model computes with its family's own eager attention function, called as it is: nothing is
rewritten, so outputs equal eager attention exactly, in every dtype. The function's few torch calls
(stack/attention_steps.py) are watched to record and edit the steps. A family that does not use the registry and
computes attention in its own modules (DeBERTa, MPNet, BigBird) is watched in the same way, while such a module runs.

Layers are counted in the order of computation. Where a model runs one module several times (ALBERT), each of these
passes is a layer.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from raison.core.dims import Attention, HeadStates
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.models.families import family_of
from raison.models.stack.attention_memory import check_attention_memory
from raison.models.stack.attention_steps import STEPS, AttentionStep, Steps, writes_out
from raison.models.stack.hooks import Args, Keywords, hooked
from raison.models.stack.mixing import other_mixing
from raison.models.stack.query_blocks import Heads, in_blocks
from raison.models.stack.shared_changes import SharedChanges

Edit = Callable[[AttentionStep, int, Tensor], Tensor]
"""(step, layer, tensor) -> the tensor to go on with: the same one, or another of the same shape."""

TAP = "raison_tap"
"""The attention implementation of a model while it is tapped."""
_WAY_OUT = "Use a method that does not read attention, such as integrated_gradients."


@dataclass
class Tap:
    """The steps that the attention layers computed in the latest pass, by layer; readable after the context.

    Tensors are the ones that the model continued with (after every edit) and stay in the graph: gradients with respect
    to them can be taken. If no parameter requires gradients, an edit that returns `t.detach().requires_grad_()` starts
    the graph there. A step that was not requested is empty.
    """

    query: dict[int, HeadStates] = field(default_factory=dict)
    """The queries, multiplied with the keys. In DeBERTa this product is one part of the scores; the others involve
    positions.
    """
    key: dict[int, HeadStates] = field(default_factory=dict)
    """The keys, multiplied with the queries; after repetition, so with the same number of heads."""
    value: dict[int, HeadStates] = field(default_factory=dict)
    """The values, after repetition: with the same number of heads as the queries."""
    scores: dict[int, Attention] = field(default_factory=dict)
    """The input of the softmax: scaled, with position bias and mask. Models with attention sinks have an additional
    key."""
    probabilities: dict[int, Attention] = field(default_factory=dict)
    """After the softmax, before dropout. Rows sum to 1, less the share of a sink."""
    output: dict[int, HeadStates] = field(default_factory=dict)
    """Per head, before the output projection."""

    def __getitem__(self, step: str) -> dict[int, Tensor]:
        """The records of one step, by layer."""
        if step not in STEPS:
            raise UnknownNameError("step of attention", step, STEPS)
        records: dict[int, Tensor] = getattr(self, step)
        return records


@contextmanager
def tap(
    model: nn.Module,
    record: Collection[str] = ("probabilities",),
    layers: Collection[int] | None = None,
    edit: Edit | None = None,
    first: int = 0,
) -> Iterator[Tap]:
    """Record and edit attention in the passes that this thread makes inside the context.

    `model` is a transformers model or a PEFT wrapper of one. `layers` counts the self-attention layers from 0 (all by
    default; in an encoder-decoder, those of the encoder). `edit` is called with every step of these layers. Taps can be
    nested: edits apply from the outermost to the innermost, records hold what came out. Other threads that run the
    model meanwhile are neither recorded nor edited. On leaving, also through an exception, the model is as before. If
    layers share a module and are called one by one instead of by the model, `first` is the number of the first.

    Raises UnsupportedError for a model whose attention cannot be tapped, UnknownNameError and InputError for a step
    or a layer that does not exist.
    """
    for step in record:
        if step not in STEPS:
            raise UnknownNameError("step of attention", step, STEPS)
    modules = attention_modules(model)
    chosen = set(range(len(modules)) if layers is None else layers)
    if not chosen <= set(range(len(modules))):
        raise InputError(f"layers {sorted(chosen)}: the model has {len(modules)} attention layers, numbered from 0.")
    records = Tap()
    configs = configs_of(model)
    inside = frozenset(id(part) for part in (*model.modules(), *configs))
    opened = _OpenTap(records, frozenset(record), frozenset(chosen), _Numbers(modules, first), inside, edit)
    with _SWITCHED.made(configs), ExitStack() as watching:
        try:
            _OPEN.set((*_OPEN.get(), opened))
            if opened.numbers.shared:
                watching.enter_context(hooked([_transformer(model).base_model], before=opened.numbers.restart))
            if untapped := [module for module in modules if not _dispatches(module)]:
                mode = watching.enter_context(_TapMode(opened))
                watching.enter_context(hooked(untapped, before=mode.begin, inner=mode.end))
            yield records
        finally:
            try:
                _close(opened)
            except KeyboardInterrupt:
                _close(opened)
                raise


def tapped(config: PreTrainedConfig) -> bool:
    """Whether a pass of this thread through a model with this config is recorded or edited now."""
    return any(id(config) in opened.inside for opened in _OPEN.get())


def implementation_of(config: PreTrainedConfig) -> str | None:
    """The attention implementation that a model was given, also while a tap is open, in this thread or another."""
    with _SWITCHED.before() as before:
        return _own(before(config))


def untapped_copy(config: PreTrainedConfig) -> PreTrainedConfig:
    """A copy of a config as it is while no tap is open."""
    copied = copy.deepcopy(config)
    with _SWITCHED.before() as before:
        for part, copied_part in zip(_with_sub_configs(config), _with_sub_configs(copied), strict=True):
            copied_part._attn_implementation_internal = _own(before(part))
    return copied


def attention_modules(model: nn.Module) -> list[nn.Module]:
    """The self-attention modules of a model in the order of computation; in an encoder-decoder, the encoder's.

    A module that is run several times is listed as often. Raises UnsupportedError if the attention cannot be tapped.
    """
    base = _transformer(model)
    root = base.get_encoder() if base.config.is_encoder_decoder else base
    modules = [module for module in root.modules() if _dispatches(module)]
    modules = modules or [module for module in root.modules() if writes_out(module)]
    family = family_of(base)
    reasons = []
    if not modules:
        reasons.append(
            family.hidden_attention or "its attention does not go through the attention interface of transformers"
        )
    groups = vars(base.config).get("num_hidden_groups")
    if groups is not None and groups < base.config.num_hidden_layers and not family.order:
        reasons.append("its layers share one attention module")
    if any(_dispatches(module) and _eager(module) is None for module in modules):
        reasons.append("its modeling file has no eager_attention_forward")
    reasons += filter(None, [other_mixing(root, modules)])
    if reasons:
        raise UnsupportedError(f"cannot read the attention of {type(base).__name__}", reasons, _WAY_OUT)
    return [modules[number] for number in family.order] or modules


class _Numbers:
    """Which layer a call of a module is."""

    def __init__(self, modules: list[nn.Module], first: int) -> None:
        self._places = {id(module): number for number, module in enumerate(modules)}
        self.layers = len(modules)
        self.shared = len(self._places) < len(modules)
        """Whether one module serves as several layers, so that calls are counted."""
        self._next = first

    def restart(self, _module: nn.Module, _args: Args, _kwargs: Keywords) -> None:
        """A pass of the whole model begins."""
        self._next = 0

    def of_call(self, module: nn.Module) -> int | None:
        """The layer of the current call; None for a module that is no layer."""
        number = self._places.get(id(module))
        if number is None or not self.shared:
            return number
        self._next += 1
        return self._next - 1


@dataclass(frozen=True, slots=True, eq=False)
class _OpenTap:
    """A tap while its context is open: what to record, of which layers, and the edit."""

    records: Tap
    steps: frozenset[str]
    layers: frozenset[int]
    numbers: _Numbers
    inside: frozenset[int]
    """Ids of all modules of the model and of their configs."""
    edit: Edit | None

    def watches(self, step: AttentionStep) -> bool:
        """Whether this tap records or edits the step."""
        return self.edit is not None or step in self.steps


def _name(config: PreTrainedConfig) -> str | None:
    name: str | None = config._attn_implementation_internal
    return name


def _set_name(config: PreTrainedConfig, name: str | None) -> None:
    # Not the public-looking setter: it would also overwrite the sub-configs, whose values may differ.
    config._attn_implementation_internal = name


# The open taps belong to a thread (or task); the configs that they switch belong to all.
_OPEN: ContextVar[tuple[_OpenTap, ...]] = ContextVar("raison_open_taps", default=())
_SWITCHED = SharedChanges[PreTrainedConfig, str | None](_name, lambda config: _set_name(config, TAP), _set_name)


def _close(opened: _OpenTap) -> None:
    _OPEN.set(tuple(other for other in _OPEN.get() if other is not opened))


def _own(name: str | None) -> str | None:
    # A copy that was made while the model was tapped has no record of its own implementation.
    return None if name == TAP else name


def _with_sub_configs(config: PreTrainedConfig) -> list[PreTrainedConfig]:
    held = [vars(config).get(name) for name in config.sub_configs]
    return [config, *(sub for sub in held if isinstance(sub, PreTrainedConfig))]


def configs_of(model: nn.Module) -> list[PreTrainedConfig]:
    """Every config that a module of the model holds: masks and attention look at different ones."""
    held = [vars(module).get("config") for module in model.modules()]
    return list({id(config): config for config in held if isinstance(config, PreTrainedConfig)}.values())


def _transformer(model: nn.Module) -> PreTrainedModel:
    """The outermost transformers model; a PEFT model wraps one."""
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            return module
    raise UnsupportedError(f"cannot read the attention of {type(model).__name__}", ["it is not a transformers model"])


def _dispatches(module: nn.Module) -> bool:
    """Whether the module's own forward looks up the attention interface; true of attention modules and no other."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)  # compiled modules have none
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]] | None:
    """The eager attention function of the module's family: that of the file which defines its class."""
    for cls in type(module).__mro__:
        function = vars(sys.modules[cls.__module__]).get("eager_attention_forward")
        if function is not None:
            return function
    return None


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """The registered function: what transformers calls for every attention module of a switched model."""
    inputs = (module, query, key, value, attention_mask)
    here = [opened for opened in _OPEN.get() if id(module) in opened.inside]
    if not here:
        return _elsewhere(module, attention_mask)(*inputs, **kwargs)
    steps = _steps(module, here)
    if steps is None:
        eager = _eager(module)
        assert eager is not None, "looked for when the tap was opened"
        # Only one block needs memory at a time.
        blocks = in_blocks(partial(eager, module), Heads(query, key, value), attention_mask, kwargs)
        if blocks is not None:
            return blocks, None
    check_attention_memory(query, (*query.shape[:3], key.shape[2]), here[0].numbers.layers)
    if steps is None:
        return _eager(module)(*inputs, **kwargs)  # type: ignore[misc]
    with steps:
        output = _eager(module)(*inputs, **kwargs)  # type: ignore[misc]
    steps.check(module)
    return output


def _steps(module: nn.Module, here: list[_OpenTap]) -> Steps | None:
    """The steps of a call of an attention module; None if no tap watches this layer."""
    numbers = [(opened, opened.numbers.of_call(module)) for opened in here]
    taps = [(opened, layer) for opened, layer in numbers if layer is not None and layer in opened.layers]
    if not taps:
        return None

    def visit(step: AttentionStep, tensor: Tensor) -> Tensor:
        for opened, layer in taps:
            if opened.edit is None:
                continue
            edited = opened.edit(step, layer, tensor)
            if edited.shape != tensor.shape:
                raise InputError(f"an edit of {step} returned shape {tuple(edited.shape)}, not {tuple(tensor.shape)}.")
            tensor = edited
        for opened, layer in taps:
            if step in opened.steps:
                opened.records[step][layer] = tensor
        return tensor

    watched = frozenset(step for step in STEPS if any(opened.watches(step) for opened, _ in taps))
    return Steps(visit, watched, vars(module).get("num_attention_heads"))


class _TapMode(TorchFunctionMode):
    """Follows modules that compute attention themselves, while one of them runs.

    In nested taps, the outermost one follows for all of them.
    """

    def __init__(self, opened: _OpenTap) -> None:
        super().__init__()
        self._opened = opened
        self._steps: Steps | None = None

    def begin(self, module: nn.Module, args: Args, kwargs: Keywords) -> None:
        """A module is called."""
        here = [opened for opened in _OPEN.get() if id(module) in opened.inside]
        states: Tensor = args[0] if args else kwargs["hidden_states"]
        texts, tokens = states.shape[:2]
        heads: int = vars(module)["num_attention_heads"]
        check_attention_memory(states, (texts, heads, tokens, tokens), self._opened.numbers.layers)
        self._steps = _steps(module, here) if here[0] is self._opened else None

    def end(self, module: nn.Module, _args: Args, _output: Any) -> None:
        """It returns."""
        if self._steps is not None:
            self._steps.check(module)
        self._steps = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._steps is None:
            return func(*args, **(kwargs or {}))
        try:
            return self._steps.call(func, args, kwargs or {})
        except BaseException:
            # The module is left here, without an end.
            self._steps = None
            raise


def _elsewhere(module: nn.Module, mask: Tensor | None) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The attention of another thread's pass over the switched config: the implementation that it started with.

    Its mask was made for that implementation, so eager is called only where it was the implementation, or where the
    mask is its own kind and the implementation would not take it: a second model in this thread, over a tapped config.
    """
    name = implementation_of(module.config)  # type: ignore[arg-type]
    additive = mask is not None and mask.dim() == 4 and mask.is_floating_point()
    if name in (None, "eager") or (additive and name != "sdpa"):
        return _eager(module)  # type: ignore[return-value]
    return ALL_ATTENTION_FUNCTIONS[name]


def _mask(*args: Any, config: PreTrainedConfig, **kwargs: Any) -> Any:
    """The registered mask function: eager's mask if this thread has a tap open, otherwise that of the model's own
    implementation.

    A model without its own mask function gets no mask, as without a tap.
    """
    if tapped(config):
        return eager_mask(*args, config=config, **kwargs)
    create_mask = ALL_MASK_ATTENTION_FUNCTIONS.get(implementation_of(config) or "eager")
    return None if create_mask is None else create_mask(*args, config=config, **kwargs)


AttentionInterface.register(TAP, _attention)
AttentionMaskInterface.register(TAP, _mask)
