"""Time and memory of relevance propagation on a prompt, extrapolated from two short prompts."""

import time
from collections.abc import Callable
from functools import partial

import torch

from raison.core.capabilities.rules import BackwardRules
from raison.core.method import Method
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.registry import name_of
from raison.core.targets.target import Target
from raison.models.adapters.checks.forecast import CostCurve, Measured, Sample, prompted
from raison.models.adapters.checks.peak_memory import HELD, PeakMemory
from raison.models.adapters.checks.throughput import Speed
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.statements import Statements
from raison.models.gradients.rules.ruled_gradients import RuledPasses, computed_as
from raison.models.passes.batching import groups
from raison.models.stack import query_blocks

SHORT, LONGER = 32, 128
"""Lengths of the two prompts in tokens, if the explained prompt is long enough."""


def relevance_cost(model: Statements, method: Method, tokens: int, written: int) -> Speed:
    """The method's cost on a text of `tokens` tokens, `written` of which were written; each of these has its own
    backward pass.

    One token is explained after two short prompts, in the same way as after long ones. Time grows as c n + d n^2 with
    the length, and so does memory if all of a pass is kept. If layers are computed again, and attention in blocks,
    memory grows as c n plus one block.
    """
    assert isinstance(model.writer, Generator), "a server does not expose its layers"
    samples = [prompted(model.writer, min(tokens, most)) for most in (SHORT, LONGER)]
    with computed_as(tokens):
        _explain(method, samples[0])
        (less, low), (more, high) = (_measured(partial(_explain, method), sample) for sample in samples)
    one = CostCurve.through(low, high)
    points = method.cost(1).forwards
    # A text ends before the token that is predicted.
    lengths = [points * (tokens - number) for number in range(written)]
    together = max(map(len, groups(lengths, samples[0].model.budget.tokens)))
    squares = together * tokens**2
    ruled = samples[0].model.ask(BackwardRules)
    assert isinstance(ruled, RuledPasses), "only generative causal models use backward rules on prompts"
    if ruled.again(tokens):
        heads: int = model.writer.core.config.get_text_config().num_attention_heads
        squares = min(squares, query_blocks.NUMBERS // (points * heads))
    seconds = CostCurve.through(less, more).at(tokens)
    return Speed(0.0, seconds / tokens, 0, int(HELD * (together * one.linear * tokens + one.square * squares)))


def _explain(method: Method, sample: Sample) -> None:
    target = Target(torch.zeros(1, dtype=torch.long), None, "logit")
    removal = sample.model.removals[0]
    problem = Problem(sample.model, sample.text, target, removal, Ledger.empty(1), Evaluations())
    method.attribute(problem, problem.generators(name_of(method)))


def _measured(explain: Callable[[Sample], None], sample: Sample) -> tuple[Measured, Measured]:
    """Seconds and bytes."""
    started = time.perf_counter()
    with PeakMemory(sample.model.core.parameters()) as memory:
        explain(sample)
    return Measured(sample.tokens, time.perf_counter() - started), Measured(sample.tokens, float(memory.peak))
