"""Noise of a served model: how much its values change when requests are repeated."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.asked_again import AskedAgain
from raison.core.inputs.encoding import Encoding
from raison.core.note_names import NOISE, SERVED
from raison.core.problem import Evaluations, Problem
from raison.core.targets.target import Target

REPEATED = 8
"""Number of masked texts that are requested again, including the full and the empty one."""
LEAST = 1e-6
"""Where a probability may be 0, its logarithm is taken here instead."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one text: the largest and the mean difference of values requested twice, over several masked texts.

    The largest is at least what `bound` can change in what is explained.
    """

    largest: float
    mean: float
    count: int
    bound: float
    """Error bound of the probabilities if the server omits some numbers (AskedAgain.bounds)."""

    def to_note(self) -> dict[str, object]:
        """The note of an explanation; scores within `value` are not ranked."""
        return {"value": self.largest, "repeated": self.count, "mean": self.mean, "bound": self.bound}


def noise_notes(problem: Problem) -> list[dict[str, object]]:
    """Notes of a problem's explanations about the server's answers; empty for other models.

    A few of the masked texts that were evaluated are requested again, in the opposite order.
    """
    model = problem.model
    if not model.offers(AskedAgain):
        return [{}] * len(problem.encoding)
    server = model.ask(AskedAgain)
    known, texts = problem.evaluations, range(len(problem.encoding))
    keeps = [_chosen(known, problem.encoding, text, problem.removal) for text in texts]
    again = server.again(problem.encoding, keeps, problem.removal)
    bounds = server.bounds(problem.encoding, keeps, problem.removal)
    once = problem.values(keeps)
    noted: list[dict[str, object]] = []
    for text, logits in enumerate(again):
        target = problem.target.row(text, len(logits))
        moved = (once[text] - target.scalar(logits.double())).abs()
        least = _on_scale(bounds[text], target, logits.double())
        noise = Noise(max(least, float(moved.max())), float(moved.mean()), len(moved), bounds[text])
        noted.append({SERVED: server.description, NOISE: noise.to_note()})
    return noted


def _on_scale(bound: float, target: Target, logits: Float[Tensor, "masks classes"]) -> float:
    """The largest error of what is explained if a probability may be wrong by `bound`."""
    if target.of == "probability" or not bound:
        return bound
    shares, wrong = logits.softmax(-1), torch.zeros(len(logits), dtype=logits.dtype)
    for index in (target.index,) if target.against is None else (target.index, target.against):
        share = shares.gather(1, index[:, None])[:, 0]
        ends = torch.stack([share - bound, share, share + bound]).clamp(LEAST, 1 - LEAST)
        ends = ends.logit() if target.of == "log_odds" else ends.log()
        wrong = wrong + ends.diff(dim=0).amax(0)
    return float(wrong.max())


def _chosen(known: Evaluations, encoding: Encoding, text: int, removal: str) -> Bool[Tensor, "masks units"]:
    """Masked versions of a text that were evaluated, evenly from the least to the most removed; both ends included."""
    count = encoding.unit_counts[text]
    rows = {key.bits for key in known.logits if key.text == text and key.removal in ("", removal)}
    ends = {bytes([kept]) * count for kept in (0, 1)}
    between = sorted(rows - ends, key=lambda bits: (sum(bits), bits))
    places = np.linspace(0, len(between) - 1, min(len(between), REPEATED - 2)).round().astype(int) if between else ()
    chosen = [*ends, *(between[place] for place in places)]
    return torch.tensor([list(bits) for bits in chosen], dtype=torch.bool)
