"""What is made of a causal model alone, whatever is read of it."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.packing import PackedReader
from raison.models.passes.precision import ReducedModel
from raison.models.stack.transformer import inner_model


@dataclass(frozen=True, slots=True, eq=False)
class Workings:
    """Trials, stored prompts, the size of batches and a twin of 16 bits: one output's serve the next."""

    budget: TokenBudget
    packed: PackedReader
    reduced: ReducedModel[Any]

    @classmethod
    def of(cls, model: nn.Module) -> "Workings":
        """Nothing is run or copied yet. `model` has embeddings of ids, and its base is a causal transformer."""
        core = inner_model(model)
        budget = TokenBudget(default_budget(core.get_input_embeddings().weight.device))
        return cls(budget, PackedReader(core.base_model, budget), ReducedModel(model, core))
