"""What is made of a causal model alone, whatever is read of it."""

import weakref
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.packing import PackedReader
from raison.models.passes.precision import ReducedModel
from raison.models.stack.transformer import inner_model


@dataclass(slots=True, eq=False, weakref_slot=True)
class Workings:
    """Trials, stored prompts, the size of batches and a twin of 16 bits: one output's serve the next.

    `layers` says for which layers re-running was found to be right (raison.models.rerun).
    """

    model: nn.Module
    budget: TokenBudget
    packed: PackedReader
    reduced: ReducedModel[Any]
    layers: dict[int, bool] = field(default_factory=dict)
    _twin: "weakref.ref[Workings] | None" = None

    @classmethod
    def of(cls, model: nn.Module) -> "Workings":
        """Nothing is run or copied yet. `model` has embeddings of ids, and its base is a causal transformer."""
        core = inner_model(model)
        budget = TokenBudget(default_budget(core.get_input_embeddings().weight.device))
        return cls(model, budget, PackedReader(core.base_model, budget), ReducedModel(model, core))

    def of_twin(self, tree: nn.Module) -> "Workings":
        """Those of the model's twin of 16 bits, the same for as long as somebody reads that twin."""
        known = None if self._twin is None else self._twin()
        if known is None or known.model is not tree:
            known = Workings.of(tree)
            self._twin = weakref.ref(known)
        return known
