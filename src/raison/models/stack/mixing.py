"""What besides attention moves information between tokens: state spaces, linear attention, convolutions."""

from collections.abc import Sequence

from torch import nn
from transformers import PreTrainedModel

_STATE_SPACE = "mamba_"
"""How the settings of layers begin that have a state space beside their attention (Falcon-H1)."""


def other_mixing(root: nn.Module, attention: Sequence[nn.Module]) -> str | None:
    """Why the attention of these modules is not all that moves information between tokens; None if it may be.

    Hybrid models have attention in some layers only, or a state space next to it in each. What is read from their
    attention leaves out the rest.
    """
    attending = {id(module) for module in attention}
    for layers in (module for module in root.modules() if isinstance(module, nn.ModuleList)):
        having = [any(id(part) in attending for part in layer.modules()) for layer in layers]
        if any(having) and not all(having):
            lacking = having.count(False)
            return f"{lacking} of its {len(having)} layers have no attention weights: they mix tokens otherwise"
        if any(having):
            break
    if isinstance(root, PreTrainedModel) and any(name.startswith(_STATE_SPACE) for name in root.config.to_dict()):
        return "its layers have state spaces next to their attention"
    return None
