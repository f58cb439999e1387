"""Parts without a gradient: most linear layers of integers, embeddings with a scale of their own, and layers that only
take one in training."""

import copy

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.models.stack.transformer import embedding_tables

_WRONG = 0.1
"""A relative tolerance: a linear layer rounded to four or eight bits is linear to within a few percent."""


def without_gradient(model: PreTrainedModel) -> str | None:
    """Why the model has no gradients, or wrong ones; None if it has them all."""
    return _without_linear(model) or _without_vectors(model) or _in_training_alone(model)


def _in_training_alone(model: nn.Module) -> str | None:
    """Why layers give no gradient here: those of a Reformer compute it anew from their outputs, in training mode."""
    if any(hasattr(module, "backward_pass") for module in model.modules()):
        return "its reversible layers have a gradient in training mode alone"
    return None


def _without_linear(model: nn.Module) -> str | None:
    """Why a kind of linear layer has no gradient. None if all layers have one.

    torch's own linear layer over plain weights is not tested. One layer of every other kind (dynamic int8 layers,
    weights stored as integers) is tested: its gradient at one input has to predict the change to another. Costs two
    rows through one layer per kind, and no pass of the model.
    """
    tried: dict[tuple[type, type], bool] = {}
    for module in model.modules():
        weight = module._parameters.get("weight")
        if not _is_linear(module) or (type(module) is nn.Linear and type(weight) is nn.Parameter):
            continue
        # A wrapper of a layer (an adapter) is as differentiable as that layer.
        if any(_is_linear(child) for child in module.children()):
            continue
        kind = type(module), type(weight)
        if kind not in tried:
            tried[kind] = _follows(module, weight)
        if not tried[kind]:
            bits = "int8 " if "int8" in repr(module) else ""
            return f"quantised: its {bits}linear layers have no gradient"
    return None


@torch.no_grad()
def _without_vectors(model: PreTrainedModel) -> str | None:
    """Why word embeddings cannot be changed: a table looks up more than vectors. None if all look up vectors."""
    for table in embedding_tables(model):
        weight: Tensor = table.weight  # type: ignore[assignment]
        if weight.is_meta:
            # Offloaded weights come only for a pass.
            continue
        if not isinstance(table.forward(torch.zeros(1, 1, dtype=torch.long, device=weight.device)), Tensor):
            return f"quantised: {type(table).__name__} looks up numbers with their scale, not vectors"
    return None


def _is_linear(module: nn.Module) -> bool:
    """Every library's linear layers have their input width as an attribute."""
    return isinstance(getattr(module, "in_features", None), int)


@torch.inference_mode(False)
@torch.enable_grad()
def _follows(module: nn.Module, weight: Tensor | None) -> bool:
    """Whether the gradient at one input, towards another, predicts the change between the two."""
    dtype = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
    device = next((tensor.device for tensor in (*module.parameters(), *module.buffers())), "cpu")
    places = torch.arange(1, getattr(module, "in_features") + 1, dtype=torch.float64)  # noqa: B009
    rows = torch.stack([places.cos(), (1.7 * places).sin()]).to(device, dtype).requires_grad_()
    copied = _evaluated(module, rows.detach())
    try:
        # Without the hooks, because this is no pass of the model.
        outputs = (module if copied is None else copied).forward(rows)
    except (RuntimeError, TypeError, ValueError):
        # If it could not be evaluated either, it has another call signature: `raison doctor` checks it.
        return copied is None
    if not isinstance(outputs, Tensor) or len(outputs) != len(rows):
        # A router over experts is a linear layer by its class, and returns its choices.
        return True
    change = (outputs[1] - outputs[0]).detach().double()
    try:
        (gradient,) = torch.autograd.grad((outputs[0].double() * change).sum(), rows)
    except RuntimeError:
        return False
    wanted = change.square().sum()
    towards = (gradient[0] * (rows[1] - rows[0])).sum().double()
    return bool((towards - wanted).abs() <= _WRONG * wanted)


@torch.no_grad()
def _evaluated(module: nn.Module, rows: Tensor) -> nn.Module | None:
    """A copy after its first evaluation; None if it cannot be copied or evaluated.

    A 4-bit layer of bitsandbytes packs its weights again when a CPU first evaluates it, and has no gradient from then
    on.
    """
    try:
        copied = copy.deepcopy(module).eval()
        copied.forward(rows)
    except (RuntimeError, TypeError, ValueError):
        return None
    return copied
