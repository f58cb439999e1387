"""ReAGent: importance updated by replacing random subsets, until the most important units suffice."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.core.targets.outputs import PROBABILITIES, Outputs
from raison.core.targets.target import Target
from raison.models.derived.mask_filling import filled_logits, filler_of
from raison.numerics.measures.ranking import Share
from raison.numerics.perturbation.recursive_replacement import Runs, Shares

Keeps = list[Bool[Tensor, "_masks _units"]]
LogitRows = list[Float[Tensor, "_masks classes"]]
Fills = Int[Tensor, "batch tokens"] | None


@dataclass(frozen=True)
class Reagent(Method):
    """The decrease of the target's probability when a unit is replaced, accumulated over random subsets.

    Repeat: replace a random share `replaced` of the units; c = p(text) - p(text with these replaced); s_i <- s_i +
    log((1 + c) / (1 - c)) for each replaced unit, minus the same for each other (Zhao and Shan 2024, algorithm 1; s
    starts uniform in [0, 1]). From step `min_steps` on, replace all units but the share `kept` with the highest s, and
    stop as soon as the target's class is still among the `tolerance` likeliest classes (or ranks no worse than in the
    text itself, if it is not among them there). After `max_steps`, stop anyway. score = softmax of s over the units,
    the mean of the `runs` runs that ended (of all, if none did). Returns (batch, units): shares that sum to 1, never
    negative. p is always the target's probability; for a pair of classes, half the difference of theirs.

    At most 1 + runs (2 max_steps - min_steps + 1) forward passes: one per step and run, and from step `min_steps` on
    one more while the run continues. All texts and runs are batched together. A `min_steps` above `max_steps` counts as
    `max_steps`. The notes `ended` and `steps` hold the share of runs that ended and their mean number of steps.

    With few classes the stopping rule is weak: random scores often pass it at once, and the scores then reflect little
    more than the first subset. Runs therefore make at least `min_steps` steps (1 is the paper's rule). s grows with the
    mean effect of a unit over random subsets; after many steps, the softmax gives nearly everything to one unit.
    Guarantees no sum, sign or zero; the score of a unit that changes nothing still varies at random.

    A replaced unit becomes the problem's removal. With `filler`, a masked language model with the model's own tokenizer
    (a folder or a Hub id), it becomes that model's likeliest other token in each place. These are found with the rest
    of the text in place, at one pass of the filler per token, which is not counted here.

    Differences from the paper: its filler is RoBERTa, whose vocabulary differs from most models' (its code draws tokens
    of the same part of speech instead). It explains the next token of a vocabulary and keeps it among the 3 likeliest.
    Here a text's removed share is exact, at least one unit; the paper allows thousands of steps. If no run ends, the
    published code divides by zero. Units may be words or sentences.

    Reference: zhao2024reagent.
    """

    runs: Annotated[int, Setting(least=1)] = 5
    replaced: Share = 0.3
    kept: Share = 0.3
    min_steps: Annotated[int, Setting(least=1)] = 10
    max_steps: Annotated[int, Setting(least=1)] = 100
    tolerance: Annotated[int, Setting(least=1)] = 1
    filler: Annotated[str | None, Setting(outside=True)] = None

    reference: ClassVar[str] = "zhao2024reagent"
    outputs: ClassVar[frozenset[Outputs]] = PROBABILITIES
    properties: ClassVar[frozenset[Property]] = frozenset({Property.UNSIGNED, Property.RANDOM, Property.ADAPTIVE})
    passes: ClassVar[str] = "at most runs (2 max_steps - min(min_steps, max_steps) + 1) + 1 forward"

    def check(self, model: LanguageModel) -> None:
        if self.filler is not None:
            filler_of(model, self.filler)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        shares = Shares(self.replaced, self.kept)
        runs = [Runs(n, self.runs, shares, rng) for n, rng in zip(counts, rngs, strict=True)]
        fills = None if self.filler is None else filler_of(problem.model, self.filler).fill(problem.encoding)
        whole = _logits(problem, None, problem.encoding.whole)
        before = _probabilities(problem, whole)
        ranks = [max(self.tolerance, rank.item()) for rank in _ranks(problem, whole)]
        for step in range(1, self.max_steps + 1):
            if all(run.ended.all() for run in runs):
                break
            after = _probabilities(problem, _logits(problem, fills, [torch.from_numpy(run.draw()) for run in runs]))
            for run, original, replaced in zip(runs, before, after, strict=True):
                run.update((original - replaced).numpy())
            if step >= self._least:
                tried = _logits(problem, fills, [torch.from_numpy(run.best()) for run in runs])
                for run, rank, reached in zip(runs, ranks, _ranks(problem, tried), strict=True):
                    run.end((reached <= rank).numpy())
        problem.note("ended", [float(run.ended.mean()) for run in runs])
        problem.note("steps", [float(run.steps.mean()) for run in runs])
        return pad_sequence([torch.from_numpy(run.importance()) for run in runs], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1 + self.runs * (2 * self.max_steps - self._least + 1))

    @property
    def _least(self) -> int:
        """The first step after which a run may end."""
        return min(self.min_steps, self.max_steps)


def _logits(problem: Problem, fills: Fills, keeps: Keeps) -> LogitRows:
    """Class logits of each text under each of its keeps; absent units are removed, or filled in where `fills` says."""
    model, target = problem.model, problem.target
    if fills is not None:
        for text, some in enumerate(keeps):
            problem.ledger.evaluations[text] += len(some)
        return filled_logits(model, problem.encoding, fills, keeps, problem.removal)
    columns = []
    for number in range(len(model.classes)):
        # One class after another: each keep is evaluated once, for the first of them.
        index = torch.full_like(target.index, number)
        columns.append(replace(problem, target=Target(index, None, "logit", target.multi_label)).values(keeps))
    return [torch.stack(some, -1) for some in zip(*columns, strict=True)]


def _probabilities(problem: Problem, logits: LogitRows) -> list[Float[Tensor, " _masks"]]:
    """The target class's probability; for a pair, half the difference of the two, so that no change exceeds 1."""
    target = replace(problem.target, of="probability")
    scale = 1.0 if target.against is None else 0.5
    return [scale * target.row(text, len(some)).scalar(some) for text, some in enumerate(logits)]


def _ranks(problem: Problem, logits: LogitRows) -> list[Int[Tensor, " _masks"]]:
    """The place of the target's class among all classes, 1 for the likeliest."""
    index = problem.target.index
    return [1 + (some > some[:, index[text], None]).sum(1) for text, some in enumerate(logits)]
