"""A student that learns from a model's explanations, and the model's gradient through the student's step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from raison.core.inputs.encoding import Encoding
from raison.models.tokens.alignment import shared_characters
from raison.numerics.losses.interpretability import cross_entropy, divergence, smoothed
from raison.training.self_explaining.criterion import Simulated

Weights = Mapping[str, Tensor]
EMPTY = -1
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Imitation:
    """How the student imitates explanations: the weight of their divergence, and their smoothing."""

    weight: float
    smoothing: float


class Answered(Protocol):
    """Decisions and explanations of a batch."""

    @property
    def decisions(self) -> Float[Tensor, "batch parts choices"]: ...

    @property
    def shares(self) -> Float[Tensor, "batch tokens"]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """The texts that the student learns from, as the model and as the student read them, and the maps between the two.

    `bridges[i]` spreads a mass over the model's tokens of text i onto the student's: (tokens, student's tokens).
    """

    model: Encoding
    student: Encoding
    bridges: tuple[Float[Tensor, "_tokens _own"], ...]

    @classmethod
    def of(cls, model: Encoding, student: Encoding) -> "Lessons":
        """Both encodings are of the same texts, by token."""
        return cls(model, student, tuple(_bridge(model, student, row) for row in range(len(model))))

    def select(self, rows: Sequence[int]) -> "Lessons":
        """Some of the texts."""
        parts = self.model.select(rows), self.student.select(rows)
        return Lessons(*parts, tuple(self.bridges[row] for row in rows))

    def shown(self, shares: Float[Tensor, "batch tokens"]) -> Float[Tensor, "batch own"]:
        """The model's explanations on the student's tokens, differentiable. Mass on tokens that the student cuts off is
        lost."""
        width = self.student.input_ids.shape[1]
        rows = []
        for row, bridge in zip(shares, self.bridges, strict=True):
            shown = row[: len(bridge)] @ bridge.to(row)
            rows.append(nn.functional.pad(shown, (0, width - len(shown))))
        return torch.stack(rows)


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """How the student learns: its rate, its texts per step, and whether it repeats a step with the updated model."""

    learning_rate: float = 0.05
    batch_size: int = 8
    roll_back: bool = False


class Simulation(nn.Module):
    """A student's weights as buffers: saved with the module that holds them, and changed only by the student's own
    steps.

    `skeleton` is the student's network as an untrained SelfExplaining, called with these weights in place of its own;
    `read` is the model's pass over texts.
    """

    pending: Tensor

    def __init__(
        self, skeleton: nn.Module, lessons: Lessons, read: Callable[[Encoding], Answered], plan: SimulationPlan
    ) -> None:
        super().__init__()
        # In tuples, so that neither becomes a submodule: the skeleton's own weights are not the student's, and the
        # model's would be saved twice.
        self._held, self._reads = (skeleton,), (read,)
        self._lessons, self._plan = lessons, plan
        self._names = [name for name, parameter in skeleton.named_parameters() if parameter.requires_grad]
        for number, name in enumerate(self._names):
            self.register_buffer(f"weight{number}", skeleton.get_parameter(name).detach().clone())
        # With `roll_back`: the texts to learn from again once the model is updated.
        device = next(skeleton.parameters()).device
        self.register_buffer("pending", torch.full((plan.batch_size,), EMPTY, device=device))

    @property
    def skeleton(self) -> nn.Module:
        """The student's network, whose own weights are never trained."""
        return self._held[0]

    @property
    def weights(self) -> dict[str, Tensor]:
        """The student's weights by the skeleton's names."""
        return {name: self.get_buffer(f"weight{number}") for number, name in enumerate(self._names)}

    def learn(self, imitation: Imitation) -> Simulated:
        """One step of both levels on texts drawn from the student's share.

        Passes, each of `batch_size` texts: one forward pass of the model (and one backward, by the caller); two forward
        and two backward passes of the student; and one pass back through its first backward pass. With `roll_back`, the
        next call takes one more forward pass of the model and one more forward and backward pass of the student.
        """
        if self._plan.roll_back:
            self._learn_again(imitation)
        rows = torch.randint(len(self._lessons.model), (self._plan.batch_size,))
        lessons = self._lessons.select(rows.tolist())
        taught = self._reads[0](lessons.model)
        shares = taught.shares.detach().requires_grad_()
        before, inner = self._gradients(self.weights, lessons, _Fixed(taught.decisions, shares), imitation)
        rate = self._plan.learning_rate
        after = {name: (value - rate * inner[name]).detach() for name, value in before.items()}
        updated = {name: value.requires_grad_() for name, value in after.items()}
        loss, agreed = self._loss(updated, lessons, taught, imitation)
        slopes = torch.autograd.grad(loss, list(updated.values()), retain_graph=True, allow_unused=True)
        # d loss / d shares through the step: of the dot product of the step's gradient and the updated loss's.
        reached = [(inner[name], slope) for name, slope in zip(inner, slopes, strict=True) if slope is not None]
        along = torch.stack([(slope * later).sum() for slope, later in reached]).sum()
        (change,) = torch.autograd.grad(along, shares)
        through = -rate * (taught.shares * change).sum()
        if self._plan.roll_back:
            self.pending.copy_(rows)
        else:
            self._store(after)
        # Only the gradient of `through` is used: the loss is that of the updated student.
        return Simulated(loss + through - through.detach(), agreed)

    def judge(self, encoding: Encoding, taught: Answered, imitation: Imitation) -> Simulated:
        """The current student's results on other texts; nothing is learned."""
        student = self._student_encoding(encoding)
        with torch.no_grad():
            loss, agreed = self._loss(self.weights, Lessons.of(encoding, student), taught, imitation)
        return Simulated(loss, agreed)

    def _student_encoding(self, encoding: Encoding) -> Encoding:
        read: Encoding = self.skeleton.model.encode(encoding.texts, "token", True)  # type: ignore[union-attr, operator]
        return read

    def _learn_again(self, imitation: Imitation) -> None:
        """The step that was rolled back, from the updated model."""
        rows = self.pending[self.pending != EMPTY].tolist()
        if not rows:
            return
        lessons = self._lessons.select(rows)
        with torch.no_grad():
            taught = self._reads[0](lessons.model)
        before, slopes = self._gradients(self.weights, lessons, taught, imitation)
        self._store({name: value - self._plan.learning_rate * slopes[name] for name, value in before.items()})

    def _gradients(
        self, weights: Weights, lessons: Lessons, taught: Answered, imitation: Imitation
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The student's weights, and the gradient of its loss with respect to each (equation 14).

        If the taught explanations require gradients, these gradients can be differentiated with respect to them.
        """
        leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
        with torch.enable_grad():
            loss, _ = self._loss(leaves, lessons, taught, imitation)
            slopes = torch.autograd.grad(
                loss, list(leaves.values()), allow_unused=True, create_graph=taught.shares.requires_grad
            )
        gradients = {
            name: torch.zeros_like(value) if slope is None else slope
            for (name, value), slope in zip(leaves.items(), slopes, strict=True)
        }
        return {name: value.detach() for name, value in leaves.items()}, gradients

    def _loss(
        self, weights: Weights, lessons: Lessons, taught: Answered, imitation: Imitation
    ) -> tuple[Float[Tensor, ""], Tensor]:
        """Equation 7, averaged over the texts, and which texts the student agrees on."""
        predicted = taught.decisions.detach().argmax(-1)
        answered = functional_call(self.skeleton, dict(weights), (lessons.student,))
        shares = self._smooth(answered.shares, lessons, imitation.smoothing)
        shown = self._smooth(lessons.shown(taught.shares), lessons, imitation.smoothing)
        apart = divergence(shown, shares, self._present(lessons))
        loss = (cross_entropy(answered.decisions, predicted) + imitation.weight * apart).mean()
        return loss, (answered.decisions.detach().argmax(-1) == predicted).all(-1)

    def _present(self, lessons: Lessons) -> Tensor:
        return lessons.student.scored.to(self.pending.device)

    def _smooth(self, shares: Tensor, lessons: Lessons, smoothing: float) -> Tensor:
        """Shares of the student's units: positive, with sum 1. Mass on special tokens is lost."""
        present = self._present(lessons)
        inside = torch.where(present, shares, 0)
        total = inside.sum(1, keepdim=True)
        # If an explanation has mass on special tokens only, every token counts equally.
        inside = torch.where(total > 0, inside / total.clamp_min(_TINY), present / present.sum(1, keepdim=True))
        return smoothed(inside, present, smoothing)

    def _store(self, weights: Weights) -> None:
        with torch.no_grad():
            for name, value in self.weights.items():
                value.copy_(weights[name])


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Decisions and explanations without a graph."""

    decisions: Tensor
    shares: Tensor

    @classmethod
    def of(cls, answered: Answered) -> "_Fixed":
        return cls(answered.decisions.detach(), answered.shares.detach())


def _bridge(model: Encoding, student: Encoding, row: int) -> Float[Tensor, "tokens own"]:
    """Each token's mass split evenly among the student's tokens that share a character with it."""
    overlap = torch.from_numpy(shared_characters(model.units[row], student.units[row])).float()
    length, own_length = model.lengths[row], student.lengths[row]
    ids, own_ids = model.unit_ids[row, :length], student.unit_ids[row, :own_length]
    bridge = torch.zeros(length, own_length)
    scored, own_scored = ids >= 0, own_ids >= 0
    # Several positions can form one unit (the bytes of a character): they share its mass.
    per_unit = overlap[ids[scored]][:, own_ids[own_scored]]
    per_unit /= per_unit.sum(1, keepdim=True).clamp_min(1)
    bridge[scored.nonzero()[:, 0][:, None], own_scored.nonzero()[:, 0][None, :]] = per_unit
    return bridge


def chosen_rows(count: int, share: float, seed: int) -> Int[Tensor, " rows"]:
    """The texts that the student learns from: a share of them, drawn by the seed, in order; at least one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(count, generator=generator)[: max(1, round(share * count))].sort().values
