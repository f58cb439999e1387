"""The parts of a classifier."""

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.models.adapters.offered.classifiers import capabilities_of, withheld_from
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.encoder_decoder import EncoderDecoder
from raison.models.passes.encoder_decoder_rows import EncoderDecoderRows
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.network import Network
from raison.models.passes.outputs.multi_input_outputs import Reads
from raison.models.passes.prefixes.causal import CausalSteps
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.passes.removal import Removals, placeholder_id


class Assembly:
    """One model's passes, removals and capabilities, put together once."""

    def __init__(
        self, core: PreTrainedModel, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str, use: TaskSetup
    ) -> None:
        causal = None if use.readout is None or use.border is not None else use.cache or CausalCache.of(model)
        stacks = None if use.border is None else EncoderDecoder(core, use.border)
        network = Network(core, model, tokenizer, use.readout, stacks if causal is None else causal.packed)
        budget = TokenBudget(default_budget(network.device)) if causal is None else causal.budget
        self.cache = causal
        reads = None if use.join is None else Reads(use.join, placeholder_id(tokenizer))
        self.passes = ForwardPasses(network, use.head, budget, name, reads)
        self.removals = Removals(tokenizer, name, causal=causal is not None, in_place=use.head.in_place)
        self.withheld = withheld_from(network.core, use)
        right = {} if causal is None else causal.layers
        self.capabilities: tuple[Capability, ...] = capabilities_of(self.passes, self.removals, right, self.withheld)
        self.rows: CausalSteps | EncoderDecoderRows | None = (
            None if stacks is None else EncoderDecoderRows(self.passes, stacks)
        )
        """Masked predictions of a decoder, whose rows share their beginnings."""
        if causal is not None and network.takes_types:
            self.withheld[StepLogits] = "its tokens have types, and the beginnings of texts that rows share have none"
        elif causal is not None and reads is None:
            steps = CausalSteps(self.passes, causal.packed, self.removals)
            self.rows, self.capabilities = steps, (*self.capabilities, steps)
