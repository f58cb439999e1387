"""The blocks of a transformer, a module tree that shares a model's tensors, and other values for a block.

A block is one unit of the depth of a model: attention and what follows it (MLP, norms, adapters inside them).
"""

import copy
import hashlib
from collections.abc import Mapping
from types import MethodType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from raison.core.errors import UnknownNameError, UnsupportedError
from raison.models.stack.eval_mode import drawing
from raison.models.stack.hooks import forget_own
from raison.models.stack.tap import untapped_copy

NewValues = Literal["initial", "permuted"]
HOWS: tuple[NewValues, ...] = get_args(NewValues)

Values = dict[int, nn.Parameter]
"""Replacements of a block's parameters, by the id of the original."""


def find_stacks(core: PreTrainedModel) -> list[list[nn.Module]]:
    """The blocks in the order of computation; in an encoder-decoder, the encoder's and then the decoder's.

    The blocks of a reader are its outermost list of modules of one type that holds more than half of the parameters
    outside its embedding tables, so nothing needs to be known about its attention. Raises UnsupportedError if there is
    no such list, or if blocks share parameters, so that none can be changed alone.
    """
    readers = [core.get_encoder(), core.get_decoder()] if core.config.is_encoder_decoder else [core.base_model]
    stacks = [_stack(reader) for reader in readers]
    blocks = [block for stack in stacks for block in stack]
    held = [{id(parameter) for parameter in block.parameters()} for block in blocks]
    reasons = []
    if not all(stacks):
        reasons.append("its layers are not one list of modules of the same type")
    # ALBERT runs one module in several layers.
    elif core.config.num_hidden_layers > len(stacks[0]) or sum(map(len, held)) > len(set().union(*held)):
        reasons.append("its layers share parameters")
    if reasons:
        raise UnsupportedError(
            f"{type(core).__name__} has no separate blocks",
            reasons,
            "Randomisation of blocks works on BERT, RoBERTa, GPT-2, Llama, T5 and others with a list of layers.",
        )
    return stacks


def find_blocks(core: PreTrainedModel) -> list[nn.Module]:
    """The same as one list, the first block first."""
    return [block for stack in find_stacks(core) for block in stack]


def twin(module: nn.Module, twins: dict[int, nn.Module]) -> nn.Module:
    """A copy of a module tree: new modules and configs, but the same parameters and buffers.

    `twins` collects each module's twin by the module's id. Takes no memory for tensors. Changes in the twin (modes,
    hooks, settings, replaced parameters) do not affect the module. Raises UnsupportedError for a module whose forward
    was replaced by a function that knows the module itself, as device_map does.
    """
    return _twin(module, twins, {})


def put(tree: nn.Module, values: Mapping[int, nn.Parameter]) -> None:
    """Replace parameters of a twin by others."""
    for module in tree.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = values.get(id(parameter), parameter)


def drawn_values(core: PreTrainedModel, block: nn.Module, how: str, seed: tuple[int, ...]) -> Values:
    """Random values for all parameters of one block, from the seed alone; the process's random state is unchanged.

    "initial" is the model's own initialisation before training (`_init_weights`), drawn in single precision on the CPU
    whatever the model's dtype and device, so that the draw is the same everywhere. "permuted" shuffles the values of
    each parameter, which keeps their distribution; a parameter of equal values stays as it is. Memory: one copy of the
    block. Raises UnsupportedError for weights that are not plain floating point parameters, and for those that the
    initialisation does not set.
    """
    check_how(how)
    named = dict(block.named_parameters())
    if why := why_fixed(block):
        what = f"cannot randomise a block of {type(core).__name__}"
        raise UnsupportedError(what, [why], "Load the model unquantised, on one device.")
    number = int.from_bytes(hashlib.blake2b(repr(seed).encode(), digest_size=8).digest(), "little")
    with torch.inference_mode(False), torch.no_grad():
        drawn = _permuted(named, number) if how == "permuted" else _initialised(core, block, number)
        return {
            id(parameter): nn.Parameter(
                drawn[id(parameter)].to(parameter.device, parameter.dtype), requires_grad=parameter.requires_grad
            )
            for parameter in named.values()
        }


def why_fixed(block: nn.Module) -> str:
    """Why a block cannot be filled with other values; "" if it can."""
    for name, parameter in block.named_parameters():
        if not _is_plain(parameter):
            return f"its parameter {name} is quantised, offloaded or of another type"
    for name, module in block.named_modules():
        # Every library's linear layers have their input width as an attribute.
        is_linear = isinstance(getattr(module, "in_features", None), int)
        if is_linear and not any(parameter.dim() > 1 for parameter in module.parameters()):
            return f"the weights of its layer {name} are no parameters: they are quantised, or of another type"
    return ""


def check_how(how: str) -> None:
    """UnknownNameError unless it is a way of drawing values."""
    if how not in HOWS:
        raise UnknownNameError("way to randomise (how=)", how, HOWS)


def _stack(reader: nn.Module) -> list[nn.Module]:
    """The reader's blocks; none if no list of modules holds most of its parameters."""
    tables = {id(p) for m in reader.modules() if isinstance(m, nn.Embedding) for p in m.parameters(recurse=False)}
    lists = _outermost(reader)
    sizes = [_size(module_list, tables) for module_list in lists]
    if not lists or 2 * max(sizes) <= _size(reader, tables):
        return []
    stack = list(lists[sizes.index(max(sizes))])
    return stack if len({type(block) for block in stack}) == 1 else []


def _outermost(module: nn.Module) -> list[nn.ModuleList]:
    """Lists of modules that are not inside another one."""
    if isinstance(module, nn.ModuleList):
        return [module]
    return [inner for child in module.children() for inner in _outermost(child)]


def _size(module: nn.Module, leave_out: set[int]) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if id(parameter) not in leave_out)


def _is_plain(parameter: Tensor) -> bool:
    return type(parameter) is nn.Parameter and parameter.is_floating_point() and not parameter.is_meta


def _permuted(named: Mapping[str, nn.Parameter], seed: int) -> dict[int, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    permuted = {}
    for parameter in named.values():
        order = torch.randperm(parameter.numel(), generator=generator)
        permuted[id(parameter)] = parameter.detach().flatten()[order.to(parameter.device)].view(parameter.shape)
    return permuted


def _initialised(core: PreTrainedModel, block: nn.Module, seed: int) -> dict[int, Tensor]:
    """The block's parameters as the model's class draws them."""
    initialised = twin(block, {})
    fresh: Values = {}
    for module in initialised.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                # NaN until it is drawn; a new parameter, without transformers' flag of a loaded one.
                blank = torch.full(parameter.shape, torch.nan)
                module._parameters[name] = fresh.setdefault(id(parameter), nn.Parameter(blank, requires_grad=False))
        # The initialisation writes some buffers, too (rotary frequencies): never those of the model.
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.clone()
    with drawing(seed):
        for module in reversed(list(initialised.modules())):
            core._init_weights(module)
    for name, parameter in initialised.named_parameters():
        if parameter.isnan().any():
            raise UnsupportedError(
                f"cannot initialise a block of {type(core).__name__}",
                [f"its own initialisation leaves out the parameter {name}"],
                "Use how='permuted'.",
            )
    return dict(fresh)


def _twin(module: nn.Module, twins: dict[int, nn.Module], configs: dict[int, PreTrainedConfig]) -> nn.Module:
    if id(module) in twins:
        return twins[id(module)]
    if "forward" in vars(module):
        raise UnsupportedError(
            f"cannot share the weights of a {type(module).__name__}",
            ["its forward function was replaced (device_map, offloading or a patch)"],
            "Load the model on one device, without device_map.",
        )
    copied: nn.Module = object.__new__(type(module))
    twins[id(module)] = copied
    # Compiled code belongs to the module that it was compiled for.
    state = {name: _attribute(value, configs) for name, value in vars(module).items() if name != "_compiled_call_impl"}
    state["_modules"] = {
        name: None if child is None else _twin(child, twins, configs) for name, child in module._modules.items()
    }
    for name, value in state.items():
        if isinstance(value, MethodType) and id(value.__self__) in twins:
            state[name] = MethodType(value.__func__, twins[id(value.__self__)])
    vars(copied).update(state)
    forget_own(copied)
    return copied


def _attribute(value: Any, configs: dict[int, PreTrainedConfig]) -> Any:
    """A setting for the twin: containers are copied, not their contents; configs are copied once, because a tap writes
    to them."""
    if isinstance(value, PreTrainedConfig):
        if id(value) not in configs:
            configs[id(value)] = untapped_copy(value)
        return configs[id(value)]
    return copy.copy(value) if isinstance(value, dict | list | set) else value
