"""Whether a model's weights are there: those on the device "meta" have shapes, but no numbers."""

from torch import nn

from raison.core.errors import LoadError


def check_weights(model: nn.Module, name: str) -> None:
    """Raise LoadError for a model with weights on the device "meta", unless accelerate brings them for each pass."""
    for place, module in model.named_modules():
        for weight, parameter in module.named_parameters(recurse=False):
            if parameter.is_meta and not hasattr(module, "_hf_hook"):
                raise LoadError(
                    f"the weights of '{name}' have no numbers: {place}.{weight} is on the device 'meta'. Load the "
                    "model on another device, such as 'cpu', or fill it with model.to_empty(device='cpu') and "
                    "load_state_dict."
                )
