"""SP-PI: single-pass progressive inference."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem

Start = Literal["removed", "prior"]


@dataclass(frozen=True)
class SpPi(Method):
    """How much each unit changes a causal model's intermediate prediction.

    phi_i = p_i - p_{i-1} (Kariyappa et al. 2024, equation 6), with p_i the target's value as if the text ended after
    unit i, read at the unit's last token. Returns (batch, units), signed, in units of the target; the paper's are
    logits (of="logit").

    `start` defines p_0, which the paper leaves open and which affects only the first unit's score. "removed" is the
    value of the text with every unit removed. "prior" is what the model predicts before the first unit, from a prompt
    or a begin-of-text token (refused if it has neither). The note `start` holds that value.

    2 forward passes. The first is the prediction itself (the paper counts 0). The second is for p_0 and is shared if
    other methods evaluate the removed text; "prior" reads only what precedes the text.

    Guarantees the sum v(text) - p_0 (proposition 1): with "removed" the scores are complete. A unit is judged only
    after those before it, so the order of the text decides how redundant units share their effect. Heads are trained at
    the end of texts: their predictions in the middle of a sentence can be far from any training example.

    Reference: kariyappa2024progressive.
    """

    start: Start = "removed"

    reference: ClassVar[str] = "kariyappa2024progressive"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({StepLogits})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.COMPLETE})
    passes: ClassVar[str] = "2 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        steps = problem.step_values(problem.encoding.whole)
        if self.start == "prior":
            starts = problem.start_values()
        else:
            starts = torch.cat(problem.values([torch.zeros(1, n, dtype=torch.bool) for n in counts]))
        problem.note("start", starts.tolist())
        rows = [torch.diff(values[0], prepend=start[None]) for values, start in zip(steps, starts, strict=True)]
        return pad_sequence(rows, batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2)
