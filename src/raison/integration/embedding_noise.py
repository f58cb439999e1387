"""Random displacements of the word embeddings of a text's units."""

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Embeddings
from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.encoding import Encoding

NoiseScale = Literal["range", "deviation"]
"""The reference scale of a noise level: see `spreads`."""


def check_noise(method: str, samples: object, noise: object, scale: str) -> None:
    """Raise InputError or UnknownNameError for invalid noise."""
    if type(samples) is not int or samples < 1:
        raise InputError(
            f"samples of {method} cannot be {samples!r}: it is the number of random points. Give a whole number from 1 "
            "on."
        )
    if not isinstance(noise, (int, float)) or isinstance(noise, bool) or not 0 <= noise < float("inf"):
        raise InputError(
            f"noise of {method} cannot be {noise!r}: it is a share of the embeddings' {scale}. "
            "Give a number of at least 0, such as 0.15."
        )
    if scale not in get_args(NoiseScale):
        raise UnknownNameError(f"scale of {method}", scale, get_args(NoiseScale))


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
