"""The state that all readouts of one causal model share."""

import weakref
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.precision import ReducedModel
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.stack.transformer import inner_model


@dataclass(slots=True, eq=False, weakref_slot=True)
class CausalCache:
    """Trial results, stored prompts, batch size and 16-bit twin, reused from one output to the next.

    `layers` records for which layers re-running was found to be exact (passes/rerun.py).
    """

    model: nn.Module
    budget: TokenBudget
    packed: PackedReader
    reduced: ReducedModel[Any]
    layers: dict[int, bool] = field(default_factory=dict)
    _twin: "weakref.ref[CausalCache] | None" = None

    @classmethod
    def of(cls, model: nn.Module) -> "CausalCache":
        """The cache of a model, which runs and copies nothing yet. `model` embeds ids, and its base is a causal
        transformer."""
        core = inner_model(model)
        weight: Tensor = core.get_input_embeddings().weight  # type: ignore[assignment]
        base: PreTrainedModel = core.base_model  # type: ignore[assignment]
        budget = TokenBudget(default_budget(weight.device))
        return cls(model, budget, PackedReader(base, budget), ReducedModel(model, core))

    def of_twin(self, tree: nn.Module) -> "CausalCache":
        """The cache of the model's 16-bit twin, kept as long as that twin is in use."""
        known = None if self._twin is None else self._twin()
        if known is None or known.model is not tree:
            known = CausalCache.of(tree)
            self._twin = weakref.ref(known)
        return known
