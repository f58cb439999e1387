"""How much of each token reaches the rows that a model predicts from, through all layers."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.decomposition import Anatomy
from raison.core.internals.anatomy import LayerWeights, Trace
from raison.core.problem import Problem
from raison.integration.distinct_texts import in_distinct_batches
from raison.numerics.attention.decomposition import followed

LayerMixing = Callable[[Trace, int, LayerWeights], Float[Tensor, "query key"]]
"""One layer's matrix: the share of each token in each row."""


def token_flow(problem: Problem, mixing: LayerMixing) -> Float[Tensor, "batch scored"]:
    """The prediction rows times the layers' matrices; one forward pass for all targets of a text."""
    scores = torch.zeros(problem.encoding.input_ids.shape, dtype=torch.float64)
    anatomy = problem.model.ask(Anatomy)

    def run(texts: list[int]) -> Tensor:
        traces = anatomy.traces(problem.encoding.select(texts))
        relevance = torch.zeros(len(texts), scores.shape[1], dtype=torch.float64)
        for trace, flow in zip(traces, followed(anatomy, traces, mixing), strict=True):
            relevance[trace.text, trace.tokens] = float(trace.rows.double().sum()) * flow.cpu()
        return relevance

    for texts, places, flows in in_distinct_batches(problem, run):
        scores[texts] = flows[places]
    problem.count_forward()
    return scores
