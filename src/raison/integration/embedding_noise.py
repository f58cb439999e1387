"""Random displacements of the word embeddings of a text's units."""

from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.settings.fields import Setting

NoiseScale = Literal["range", "deviation"]
"""The reference scale of a noise level: see `spreads`."""
Noise = Annotated[float, Setting(least=0, words="a share of the embeddings' spread, at least 0, such as 0.15")]
"""The standard deviation of a displacement, as a share of the scale."""


def spreads(encoding: Encoding, embeds: Embeddings, scale: NoiseScale) -> list[float]:
    """The spread of the features of each text's word embeddings, over its units: range or standard deviation."""
    sizes = []
    for rows, scored in zip(embeds, encoding.scored.to(embeds.device), strict=True):
        features = rows[scored].double()
        size = features.amax() - features.amin() if scale == "range" else features.std(correction=0)
        sizes.append(size.item())
    return sizes


def gaussian(seed: int, number: int, encoding: Encoding, text: int, features: int) -> Float[Tensor, "tokens hidden"]:
    """Standard normal numbers at a text's units and zeros elsewhere, determined by a seed and a number.

    Drawn again whenever they are needed, so that only one batch of them is in memory.
    """
    scored = encoding.scored[text]
    drawn = np.random.default_rng([seed, number]).standard_normal((int(scored.sum()), features), dtype=np.float32)
    noise = torch.zeros(len(scored), features)
    noise[scored] = torch.from_numpy(drawn)
    return noise
