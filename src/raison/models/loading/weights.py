"""Whether a model's weights are there: those on the device "meta" have shapes, but no numbers."""

from itertools import chain

from torch import nn

from raison.core.errors import LoadError


def check_weights(model: nn.Module, name: str) -> None:
    """Raise LoadError for weights or buffers on the device "meta", unless accelerate brings them for each pass."""
    brought: set[str] = set()
    for place, module in model.named_modules():
        # accelerate's hook may be that of a module around this one. Parents come before their children.
        if hasattr(module, "_hf_hook") or (place and place.rpartition(".")[0] in brought):
            brought.add(place)
            continue
        for weight, tensor in chain(module.named_parameters(recurse=False), module.named_buffers(recurse=False)):
            if tensor.is_meta:
                full = f"{place}.{weight}" if place else weight
                raise LoadError(
                    f"the weights of '{name}' have no numbers: {full} is on the device 'meta'. Load the model with "
                    "from_pretrained on another device, such as 'cpu'."
                )
