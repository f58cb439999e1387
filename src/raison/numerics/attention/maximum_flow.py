"""Maximum flow through the layers of a network whose edges are attention."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

RESOLUTION = 2**30
"""Capacities are rounded down to whole parts of one over this: the library's algorithm takes 32-bit integers."""


def token_flows(
    layers: Float[np.ndarray, "layers query key"], source: Float[np.ndarray, " query"], sinks: Sequence[int]
) -> Float[np.ndarray, " sinks"]:
    """The maximum flow to each sink alone: from the rows of the last layer's output to a token of the input.

    `layers` are capacities from a position of a layer's output (query) to one of its input (key), the first layer
    first; `source` is the supply at each position of the last output, 1 in total. The flow through a cut of k edges is
    found to within k / RESOLUTION. Dinic's algorithm, once per sink; edges that the source cannot reach are left out.
    """
    count, width = layers.shape[:2]
    start = (count + 1) * width
    # Nodes are numbered from the input up: layer * width + position, and then the source.
    (entries,) = source.nonzero()
    heads, tails = [np.full(len(entries), start)], [count * width + entries]
    capacities = [source[entries]]
    reached = source > 0
    for level in range(count, 0, -1):
        capacity = layers[level - 1] * reached[:, None]
        above, below = capacity.nonzero()
        heads.append(level * width + above)
        tails.append((level - 1) * width + below)
        capacities.append(capacity[above, below])
        reached = capacity.any(0)
    parts = np.floor(np.concatenate(capacities) * RESOLUTION).astype(np.int32)
    graph = csr_matrix((parts, (np.concatenate(heads), np.concatenate(tails))), shape=(start + 1, start + 1))
    return np.array([maximum_flow(graph, start, sink).flow_value / RESOLUTION for sink in sinks], dtype=np.float64)
