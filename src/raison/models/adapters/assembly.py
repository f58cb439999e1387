"""What a classifier is made of."""

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capability import Capability
from raison.models.adapters.capabilities import capabilities_of, withheld_from
from raison.models.adapters.uses import Use
from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.causal import CausalSteps
from raison.models.passes.causal_cache import CausalCache
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.network import Network
from raison.models.passes.removal import Removals


class Assembly:
    """One model's passes, removals and capabilities, put together once."""

    def __init__(
        self, core: PreTrainedModel, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str, use: Use
    ) -> None:
        causal = None if use.readout is None else use.cache or CausalCache.of(model)
        network = Network(core, model, tokenizer, use.readout, None if causal is None else causal.packed)
        budget = TokenBudget(default_budget(network.device)) if causal is None else causal.budget
        self.cache = causal
        self.passes = ForwardPasses(network, use.head, budget, name)
        self.removals = Removals(tokenizer, name, causal=causal is not None, in_place=use.head.in_place)
        self.steps = None if causal is None else CausalSteps(self.passes, causal.packed, self.removals)
        self.withheld = withheld_from(network.core, use.readout, use.head)
        right = {} if causal is None else causal.layers
        offered = capabilities_of(self.passes, self.removals, right, self.withheld)
        self.capabilities: tuple[Capability, ...] = offered if self.steps is None else (*offered, self.steps)
