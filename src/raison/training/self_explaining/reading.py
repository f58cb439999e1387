"""A model that explains itself, for training: one pass gives its decisions and its explanation."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.models.adapters.classifier import Classifier
from raison.models.derived.attention_explainer import HeadMixture, InterpretableAttention, places_of, read_map
from raison.models.passes.hidden_states import watched_layers
from raison.training.self_explaining.criterion import Simulated
from raison.training.self_explaining.simulation import Imitation, Simulation


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts by token with the right decisions: (texts, parts)."""

    encoding: Encoding
    labels: Int[Tensor, "texts parts"]

    def select(self, rows: Sequence[int]) -> "Labelled":
        """Some of the texts."""
        return Labelled(self.encoding.select(rows), self.labels[list(rows)])


@dataclass(frozen=True, slots=True)
class ReaderOutput:
    """The output of one pass: decisions, explanations, and hidden states if requested."""

    decisions: Float[Tensor, "batch parts choices"]
    shares: Float[Tensor, "batch tokens"]
    states: Float[Tensor, "batch tokens hidden"] | None = None


class SelfExplaining(nn.Module):
    """A model and an explainer of its attention. The parameters are those of both.

    Dropout is off. Gradients flow to all parameters that require them.
    """

    def __init__(self, model: Classifier, explainer: InterpretableAttention | HeadMixture, over: str) -> None:
        super().__init__()
        self.core = model.core
        self.explainer = explainer
        self.over = over
        self.model = model

    def forward(self, encoding: Encoding, states: bool = False) -> ReaderOutput:
        """One pass of the model that also reads its attention."""
        watched: AbstractContextManager[list[Tensor]] = watched_layers(self.core) if states else nullcontext([])
        with self.model.ask(ReadableAttention).tap(record=self.explainer.steps) as tap, watched as layers:
            decisions = self.model.ask(Passes).decisions(encoding)
        shares = read_map(self.explainer, tap, places_of(encoding, self.over, self.model.device))
        return ReaderOutput(decisions, shares, _mean_state(layers, encoding) if states else None)

    def kept(self, encoding: Encoding, keep: Float[Tensor, "batch tokens"]) -> Float[Tensor, "batch parts choices"]:
        """Decisions on embeddings that are mixed with those of removed tokens; see criterion.TrainingStep.kept."""
        model, words = self.model, self.model.ask(WordEmbeddings)
        embeds, removed = words.embed(encoding), words.embed(words.removed(encoding, _in_place(model)))
        removable = encoding.scored.to(keep.device)
        stays = torch.where(removable, keep, 1).to(embeds)[..., None]
        return model.ask(Passes).decisions(encoding, stays * embeds + (1 - stays) * removed)


class BatchStep:
    """One batch of a run: implements criterion.TrainingStep. One pass gives decisions and explanations."""

    def __init__(
        self,
        module: SelfExplaining,
        texts: Labelled,
        simulation: Simulation | None,
        states: bool,
    ) -> None:
        self.encoding = texts.encoding
        device = module.model.device
        self.training = module.training
        self._module, self._simulation = module, simulation
        self._read = module(self.encoding, states)
        self.decisions, self.shares = self._read.decisions, self._read.shares
        self.labels = texts.labels.to(device)
        self.scored = self.encoding.scored.to(device)
        self.explained = places_of(self.encoding, module.over, device).explained
        self.predicted = self.decisions.detach().argmax(-1)
        self._known: dict[bytes, Tensor] = {}

    @property
    def states(self) -> Float[Tensor, "batch tokens hidden"]:
        """See criterion.TrainingStep."""
        if self._read.states is None:
            raise RuntimeError("a criterion that reads hidden states must say so (Criterion.reads_states)")
        return self._read.states

    def kept(self, keep: Float[Tensor, "batch tokens"]) -> Float[Tensor, "batch parts choices"]:
        """See criterion.TrainingStep. Outside of training, equal keeps are evaluated once for loss and score."""
        if self.training:
            return self._module.kept(self.encoding, keep)
        key = keep.detach().cpu().numpy().tobytes()
        if key not in self._known:
            self._known[key] = self._module.kept(self.encoding, keep)
        return self._known[key]

    def portions(self, shares: Sequence[float]) -> list[Float[Tensor, " batch"]]:
        """See TrainingStep. Draws from torch's generator, which the trainer seeds and its checkpoints hold."""
        known, count = torch.tensor(shares, device=self.shares.device), len(self.encoding)
        if not self.training:
            return [share.expand(count) for share in known]
        return [known[torch.randint(len(shares), (count,)).to(known.device)]]

    def simulate(self, weight: float, smoothing: float) -> Simulated:
        """See criterion.TrainingStep."""
        if self._simulation is None:
            raise RuntimeError("a criterion that needs a student must say so (Criterion.trains_student)")
        if self.training:
            return self._simulation.learn(Imitation(weight, smoothing))
        return self._simulation.judge(self.encoding, self._read, Imitation(weight, smoothing))


def _mean_state(layers: Sequence[Tensor], encoding: Encoding) -> Float[Tensor, "batch tokens hidden"]:
    mean = torch.stack([layer.float() for layer in layers]).mean(0)
    # States at padding are arbitrary.
    return mean * encoding.attention_mask.to(mean)[..., None]


def _in_place(model: Classifier) -> str:
    return next(name for name in model.removals if name != "delete")
