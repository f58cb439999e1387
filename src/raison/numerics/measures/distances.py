"""Distances between all pairs of sequences of different lengths."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import pdist

Distance = Literal["l2", "l1"]
DISTANCES: dict[Distance, Literal["euclidean", "cityblock"]] = {"l2": "euclidean", "l1": "cityblock"}
"""Name -> scipy's name."""


def positionwise_distances(sequences: Sequence[Float[np.ndarray, "_steps features"]], distance: Distance) -> np.ndarray:
    """Mean over positions of the distance between two sequences' features there, for all pairs i < j in row order.

    The shorter sequence counts as zero after its end; the mean is over the positions of the longer one. Memory holds
    one position of all sequences at a time.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    first, second = np.triu_indices(len(sequences), 1)
    total = np.zeros(len(first))
    for position in range(int(lengths.max(initial=0))):
        rows = np.zeros((len(sequences), sequences[0].shape[1]))
        for i in np.flatnonzero(lengths > position).tolist():
            rows[i] = sequences[i][position]
        total += pdist(rows, DISTANCES[distance])
    return total / np.maximum(lengths[first], lengths[second])


def padded_distances(vectors: Sequence[Float[np.ndarray, " _features"]], distance: Distance) -> np.ndarray:
    """Distance between two vectors, the shorter filled up with zeros, for all pairs i < j in row order."""
    rows = np.zeros((len(vectors), max((len(vector) for vector in vectors), default=0)))
    for row, vector in zip(rows, vectors, strict=True):
        row[: len(vector)] = vector
    return pdist(rows, DISTANCES[distance])
