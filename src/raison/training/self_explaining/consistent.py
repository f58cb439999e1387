"""The score of the consistency losses: the metric consistency."""

import math

import numpy as np
from scipy.stats import spearmanr

from raison.numerics.measures.distances import padded_distances, positionwise_distances
from raison.training.self_explaining.criterion import TrainingStep

FEWEST, FEWEST_SCORED = 2, 3
"""Two texts make one pair, which has a loss; a rank correlation needs more pairs."""


def consistency_score(step: TrainingStep) -> list[float]:
    """Spearman's rho between distances of hidden states and of explanations, over the pairs of the batch.

    A list of one number; empty if rho is undefined (fewer than three texts, or equal distances).
    """
    lengths = step.encoding.lengths
    states = [rows[:length].double().cpu().numpy() for rows, length in zip(step.states, lengths, strict=True)]
    shares = [row.double().cpu().numpy() for row in step.shares]
    between = positionwise_distances(states, "l2"), padded_distances(shares, "l2")
    if len(states) < FEWEST_SCORED or any(np.ptp(distances) == 0 for distances in between):
        return []
    rho = float(spearmanr(*between).statistic)
    return [] if math.isnan(rho) else [rho]
