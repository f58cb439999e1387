"""Randomized Path-Integration over attention."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.method import Rngs
from raison.core.note_names import CAUTION
from raison.core.problem import Problem
from raison.integration.randomized import RandomPaths

_CAUTION = (
    "the mean of maps by equation 4 as printed tends to point against the gradient (see the method's description): "
    "choose a map by a metric, or use the default variant='signed'"
)


@dataclass(frozen=True)
class Rpi(RandomPaths):
    """Integrates gradient times attention along paths from random attention to the model's own.

    m^r = phi(a / (n + 1) . sum_{j=0}^n dv/da(v_j) . v_j), v_j = b^r + j / n (a - b^r), with elementwise products. This
    is the formula of the published code of Barkan et al. 2024 (equations 3 and 4). a are the attention probabilities of
    a layer, (heads, tokens, tokens), and v is the target's logit with v_j in their place. phi takes the mean over heads
    and the row that the prediction is made from: the first token's for a model that reads it, the last one's for a
    decoder, all by their shares where a mean is pooled. Each of R = `baselines` starts is b^r = sqrt(A_T) a + (1 - A_T)
    times unit noise, with A_t = prod_{s <= t} (1 - beta_s), at T = `timesteps` or at the step `t`; `schedule` gives the
    beta.

    Returns (batch, tokens), signed by the product of gradient and attention, in units of the target's logit. Without a
    metric: the mean of the R maps, the expected map. With one (`select=`): the best map of each text, among R times the
    number of layers (equation 5).

    `layers` is J: "last" (the paper's J = {L}, the default), "third_last" (the layer L - 2), a number, "3 to 5", "top
    3" (top-down) or "bottom 3" (bottom-up), or a tuple. The paper's tables 2, 5 and 6 are really those of "third_last":
    their row equals that of L - 2 in its table 7.

    R (n + 1) forward and backward passes per layer (R n with variant="paper"), and 1 whole forward pass per layer. The
    former run only the layers from the lowest of J to the top (one row, if one is read in the last layer), but count as
    whole passes.

    `variant` is what is computed:

    - "signed" is the code's formula in the last layer, unless `layers` names another. Without selection, its mean map
      is the most faithful of the three on encoders (docs/rpi.md).
    - "code" is the published code itself, which explains the third-last layer.
    - "paper" is equation 4 as printed: the factor a - b^r in place of a, j from 1 and the mean over n points, the
      target itself in place of its logit, t uniform on 1 ... T and the standard deviation sqrt(1 - A_t) (3.2.1). Its
      mean has the wrong sign where the gradient g changes little: with unit noise far above attention, E[(a - b) v] is
      about (1 - A_t) (a^2 - 1) / 2, which is negative, so the expected map is about -g. Single maps keep their
      differences, so a metric can choose among them. The note `caution` says so.

    If the input follows a prompt, the published code puts noise only into the input's rows, and so do "signed" and
    "code" (the other rows' attention is multiplied by sqrt(A_t) + 1 - A_t).

    At equal passes, more baselines with fewer steps find better maps for a metric (benchmarks/results/rpi_sampling.md).

    Guarantees nothing about sums: paths run through attention that no text has, including rows that do not sum to 1,
    negative entries, and the attention of a decoder to later tokens. Compare the best of many maps by a metric with the
    best of as many random maps (`random(draws=24)`).

    Differences from the paper: the default variant. T and the beta, which it does not print, are those of its code
    (500; 1e-4 to 0.02).

    Reference: barkan2024rpi.
    """

    multiply: ClassVar[bool] = True
    passes: ClassVar[str] = (
        "(baselines (steps + 1) + 1) |layers| forward + baselines (steps + 1) |layers| backward, upper layers only"
    )

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        if self.variant == "paper":
            problem.note(CAUTION, [_CAUTION] * len(rngs))
        return self.drawn_maps(problem, rngs)
