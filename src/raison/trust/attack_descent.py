"""Many attacks in embedding space as one batch: descent and random changes, one row per attack.

A row is computed from its own numbers alone, so that its result does not depend on the other rows, up to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.dims import Embeddings
from raison.core.errors import NonFiniteError
from raison.core.method import Method, Property
from raison.core.problem import Problem
from raison.core.registry import name_of
from raison.explaining.prediction_change import Predicted
from raison.integration.repeated_texts import repeated
from raison.numerics.measures.attacks import attack_loss
from raison.progress import steps_of
from raison.trust.attack_settings import EmbeddingAttack

Rows = Float[Tensor, " rows"]


@dataclass(frozen=True, slots=True, eq=False)
class AttackStart:
    """Rows that are attacked together, before any change. Numbers of rows are on the CPU."""

    problem: Problem
    method: Method
    embeds: Embeddings
    """Word embeddings, in at least single precision."""
    top: Bool[Tensor, "rows units"]
    """The units that the attack pushes down."""
    alpha: Rows
    beta: Rows
    predicted: Predicted
    radius: float
    """The maximum change of an entry of an embedding."""
    copies: Int[Tensor, "rows tokens"] | None = None
    """For each token, the first one for the same part of the text; None if no text is read twice."""

    def select(self, rows: Sequence[int]) -> "AttackStart":
        """Some of the rows, without the padding that they do not need."""
        index = torch.as_tensor(list(rows))
        problem = repeated(self.problem, rows)
        return replace(
            self,
            problem=problem,
            embeds=self.embeds[index.to(self.embeds.device), : problem.encoding.input_ids.shape[1]],
            top=self.top[index, : max(problem.encoding.unit_counts)],
            alpha=self.alpha[index],
            beta=self.beta[index],
            predicted=self.predicted.select(rows),
            copies=None if self.copies is None else self.copies[index, : problem.encoding.input_ids.shape[1]],
        )

    def alike(self, change: Embeddings) -> Embeddings:
        """The change of the first of several copies of a token, for all of them."""
        return change if self.copies is None else change.gather(1, self._places(change))

    def together(self, gradient: Embeddings) -> Embeddings:
        """The gradient with respect to a change that all copies of a token share."""
        if self.copies is None:
            return gradient
        return self.alike(torch.zeros_like(gradient).scatter_add_(1, self._places(gradient), gradient))

    def _places(self, change: Embeddings) -> Tensor:
        assert self.copies is not None
        return self.copies.to(change.device)[..., None].expand_as(change)

    @property
    def free(self) -> Bool[Tensor, "rows tokens 1"]:
        """Which tokens may be changed: those of units. Special tokens, prompts and padding are excluded."""
        return self.problem.encoding.scored.to(self.embeds.device)[..., None]


@dataclass(frozen=True, slots=True, eq=False)
class ChangedOutput:
    """The outputs of model and method at changed embeddings."""

    loss: Rows
    scores: Float[Tensor, "rows units"]
    value: Rows
    """The explained class's probability, or the number."""
    held: Bool[Tensor, " rows"]


@dataclass(slots=True, eq=False)
class BestChange:
    """The change with the lowest loss among those that keep the prediction; `held` is False if none keeps it."""

    loss: Rows
    change: Embeddings
    scores: Float[Tensor, "rows units"]
    value: Rows
    held: Bool[Tensor, " rows"]
    steps: list[int]

    @classmethod
    def unchanged(cls, start: AttackStart, seen: ChangedOutput) -> "BestChange":
        """The initial state: the text itself."""
        rows = len(start.embeds)
        return cls(
            seen.loss.detach().clone(),
            torch.zeros_like(start.embeds),
            seen.scores.detach().clone(),
            seen.value.clone(),
            torch.zeros(rows, dtype=torch.bool),
            [0] * rows,
        )

    def update(self, rows: Sequence[int], change: Embeddings, seen: ChangedOutput) -> None:
        """Keep better changes of some of the rows."""
        index = torch.as_tensor(list(rows))
        loss = seen.loss.detach()
        better = (seen.held & (loss < self.loss[index])).nonzero()[:, 0]
        self.held[index] |= seen.held
        places = index[better]
        self.loss[places] = loss[better]
        self.value[places] = seen.value[better]
        self.scores[places, : seen.scores.shape[1]] = seen.scores.detach()[better]
        device = change.device
        self.change[places.to(device), : change.shape[1]] = change.detach()[better.to(device)]


def explain(problem: Problem, method: Method, embeds: Embeddings) -> Float[Tensor, "rows units"]:
    """The method's scores of units at these embeddings, in the graph, in float64 on the CPU. Raises NonFiniteError."""
    scores = method.scores_at(problem, embeds).cpu().double()
    if Property.TOKENWISE in method.properties:
        scores = problem.encoding.sum_to_units(scores)
    if not torch.isfinite(scores).all():
        raise NonFiniteError(
            f"{name_of(method)} gave NaN or infinite scores under attack: load the model in float32 (dtype='float32'), "
            "or make epsilon smaller."
        )
    return scores


def classify(problem: Problem, embeds: Embeddings) -> Float[Tensor, "rows classes"]:
    """Logits at these embeddings, in the graph, in float64 on the CPU."""
    return problem.model.ask(WordEmbeddings).logits_at(problem.encoding, embeds).cpu().double()


def look(start: AttackStart, embeds: Embeddings) -> ChangedOutput:
    """Explain and predict at these embeddings; scores and, if it is penalised, the prediction stay in the graph."""
    scores = explain(start.problem, start.method, embeds)
    with torch.set_grad_enabled(bool(start.beta.any())):
        logits = classify(start.problem, embeds)
        lost = start.predicted.lost(logits)
    sums = (scores * start.top).sum(1)
    loss = attack_loss(sums, lost, start.alpha, start.beta)
    seen = logits.detach()
    return ChangedOutput(loss, scores, start.predicted.value(seen), start.predicted.same(seen))


def descend(start: AttackStart, plan: EmbeddingAttack) -> BestChange:
    """Minimise the loss of every row by `plan`. A row leaves the batch when it stops.

    A step is a forward pass, and a differentiable pass of the method with its second derivative.
    """
    live, part = list(range(len(start.embeds))), start
    change = torch.zeros_like(start.embeds)
    ends, quiet = torch.zeros_like(start.embeds), torch.zeros(len(live), dtype=torch.long)
    walker = _Walker(plan, torch.zeros_like(change), torch.zeros_like(change))
    best: BestChange | None = None
    with steps_of("steps of the attack", plan.steps) as advance:
        for number in range(plan.steps):
            seen, gradient = slope(part, change)
            if best is None:
                best = BestChange.unchanged(start, seen)
            else:
                best.update(live, change, seen)
            moved = (change - walker.step(gradient, number)).clamp(-start.radius, start.radius)
            still = (moved - change).abs().flatten(1).amax(1).cpu() < plan.tolerance
            quiet, change = torch.where(still, quiet + 1, 0), moved
            for row in live:
                best.steps[row] += 1
            goes_on = (quiet < plan.patience).nonzero()[:, 0].tolist()
            if len(goes_on) < len(live):
                # For all rows: those that continue are written again when they stop.
                ends[live, : change.shape[1]] = change
                if not goes_on:
                    break
                live, quiet = [live[place] for place in goes_on], quiet[goes_on]
                part = start.select(live)
                width = part.embeds.shape[1]
                change, walker = change[goes_on, :width], walker.select(goes_on, width)
            advance(1)
        else:
            ends[live, : change.shape[1]] = change
    assert best is not None  # a plan has at least one step
    best.update(range(len(start.embeds)), ends, look(start, start.embeds + ends))
    return best


def disturb(start: AttackStart, plan: EmbeddingAttack, radii: Rows, rngs: Sequence[np.random.Generator]) -> BestChange:
    """The best of `plan.draws` random changes of every row: the control.

    The draws alternate between uniform in the ball, a corner of it, and a corner of the smaller ball whose radius, in
    `radii`, is the largest number of the change that an attack found. Unlike an attack, a control always changes
    something, so the best change may raise the loss.
    """
    best: BestChange | None = None
    lengths, hidden = start.problem.encoding.lengths, start.embeds.shape[2]
    for number in range(plan.draws):
        change = torch.zeros_like(start.embeds)
        for row, (length, rng) in enumerate(zip(lengths, rngs, strict=True)):
            drawn = rng.uniform(-1, 1, (length, hidden))
            if number % 3:
                drawn = np.sign(drawn)
            size = float(radii[row]) if number % 3 == 2 and radii[row] > 0 else start.radius
            change[row, :length] = torch.from_numpy(size * drawn).to(change)
        change = start.alike(change * start.free)
        seen = look(start, start.embeds + change)
        if best is None:
            best = BestChange.unchanged(start, seen)
            best.loss.fill_(torch.inf)
        best.update(range(len(start.embeds)), change, seen)
        best.steps = [number + 1] * len(start.embeds)
    assert best is not None  # a plan has at least one draw
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Walker:
    """Turns gradients into steps; Adam remembers means of the gradient and of its square."""

    plan: EmbeddingAttack
    mean: Embeddings
    square: Embeddings

    def step(self, gradient: Embeddings, number: int) -> Embeddings:
        rate = self.plan.learning_rate * 0.5 ** (number // self.plan.halve_every)
        if self.plan.optimiser == "descent":
            return rate * gradient
        if self.plan.optimiser == "sign":
            return rate * gradient.sign()
        self.mean.mul_(0.9).add_(gradient, alpha=0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        mean = self.mean / (1 - 0.9 ** (number + 1))
        square = self.square / (1 - 0.999 ** (number + 1))
        return rate * mean / (square.sqrt() + 1e-8)

    def select(self, rows: Sequence[int], width: int) -> "_Walker":
        return replace(self, mean=self.mean[rows, :width], square=self.square[rows, :width])


def slope(start: AttackStart, change: Embeddings) -> tuple[ChangedOutput, Embeddings]:
    """The outputs at a change, and the loss's gradient with respect to it; zero for fixed tokens."""
    point = (start.embeds + change).requires_grad_()
    with torch.enable_grad():
        seen = look(start, point)
        # Adding zero gives a graph to scores that do not depend on the embeddings, such as saliency of a linear model.
        (gradient,) = torch.autograd.grad(seen.loss.sum() + 0 * point.sum().cpu(), point)
    if not torch.isfinite(gradient).all():
        raise NonFiniteError(
            f"the scores of {name_of(start.method)} have a NaN or infinite gradient under attack: load the model in "
            "float32 (dtype='float32'), or make epsilon smaller."
        )
    return seen, start.together(torch.where(start.free, gradient, 0))
