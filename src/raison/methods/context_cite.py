"""ContextCite: a sparse linear model of the target under random removals of units."""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.capabilities.answer_lengths import AnswerLengths
from raison.core.inputs.unit import Unit, runs_of
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import CAUTION, GROUP_INTERVALS
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.core.targets.choices import Of
from raison.numerics.perturbation.lasso import lasso, lasso_resampled

BETWEEN = (2.5, 97.5)
"""Percentiles."""
ROUNDING = 1e-6
"""Values that differ by no more are the same."""
FEWEST = 8
"""With fewer ablations a bootstrap says nothing: two may give every resample the same coefficients."""


@dataclass(frozen=True)
class ContextCite(Method):
    """Coefficients of a sparse linear model of the target over random removals.

    w = argmin 1 / (2 m) sum_s (v(z_s) / T - b - x_s . w)^2 + alpha |w|_1, with z_s random keeps, x_s these scaled to
    mean 0 and variance 1 over the m samples, and T the number of tokens of what is explained (Cohen-Wang et al. 2024,
    section 3, with the settings of their code). The score of a unit is T w_i, divided by the scale of its column: what
    keeping it adds to the target. Returns (batch, units), signed, in units of the target; of="log_odds" is the paper's
    choice, the logit of the probability of the whole answer.

    - `ablations` is m; each keeps every unit with probability `keep`. At most `ablations` forward passes.
    - `alpha` is the strength of the penalty. None: sd(v) / (T sqrt(m)), which grows as ablations become fewer and is
      relative to the scale of v.
    - `resamples` bootstraps of the ablations, without further passes, give 95 % intervals: the note `intervals` has two
      numbers for each unit, `group_intervals` for the sum of each run of units with the same name, such as the
      sentences of a source. 0, or fewer than 8 ablations: no intervals.

    The note `r_squared` has the fit on the ablations.

    Guarantees no sum. Units of little effect score exactly 0, and the others are shrunk towards it. The fit says little
    about texts with few removals, which are rare among the samples.

    Differences from the paper: alpha=None, and other quantities than log-odds: on probabilities, which vary less, the
    paper's penalty of 0.01 sets more scores to 0. The note `caution` says so where none is left. The random numbers
    differ from the public code's.

    Reference: cohenwang2024contextcite.
    """

    ablations: Annotated[int, Setting(least=2)] = 64
    keep: Annotated[float, Setting(above=0, below=1, words="a probability above 0 and below 1")] = 0.5
    alpha: Annotated[
        float | None, Setting(least=0, words="0 for no penalty, or more; None fits it to the ablations")
    ] = 0.01
    resamples: Annotated[int, Setting(least=0)] = 200

    reference: ClassVar[str] = "cohenwang2024contextcite"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.LINEAR, Property.RANDOM})
    statement_value: ClassVar[Of] = "log_odds"
    passes: ClassVar[str] = "at most ablations forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts, model = problem.encoding.unit_counts, problem.model
        keeps = [rng.random((self.ablations, n)) < self.keep for n, rng in zip(counts, rngs, strict=True)]
        lengths = model.ask(AnswerLengths).answer_lengths(problem.encoding) if model.offers(AnswerLengths) else None
        computed = problem.values([torch.from_numpy(rows) for rows in keeps])
        scores, fits, intervals, grouped = [], [], [], []
        bootstrapped = self.resamples > 0 and self.ablations >= FEWEST
        for text, (rows, values, rng) in enumerate(zip(keeps, computed, rngs, strict=True)):
            tokens = 1 if lengths is None else lengths[text]
            each = values.numpy() / tokens
            alpha = float(each.std()) / sqrt(self.ablations) if self.alpha is None else self.alpha
            surrogate = lasso(rows, each, alpha)
            scores.append(torch.from_numpy(surrogate.coefficients * tokens))
            fits.append(surrogate.r_squared)
            if not surrogate.coefficients.any() and np.ptp(each) > ROUNDING:
                problem.ledger.notes[text][CAUTION] = self._all_zero(problem.target.of)
            if bootstrapped:
                draws = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=self.resamples)
                boots = tokens * lasso_resampled(rows, each, alpha, draws.astype(float))
                intervals.append(_between(boots))
                grouped.append(_between(_sums(boots, problem.encoding.units[text])))
        problem.note("r_squared", fits)
        if bootstrapped:
            problem.note("intervals", intervals)
            problem.note(GROUP_INTERVALS, grouped)
        return pad_sequence(scores, batch_first=True)

    def _all_zero(self, of: Of) -> str:
        """Why no score is left, and the ways out."""
        why = "all scores are 0, though removals change the value"
        if self.alpha is None:
            return f"{why}: no unit alone has an effect that so few ablations show; take more ablations"
        other = "" if of == "log_odds" else ", or of='log_odds', which varies more"
        return f"{why}: the penalty is too strong for it; use alpha=None{other}"

    def cost(self, units: int) -> Cost:
        return Cost(forwards=min(self.ablations, 2**units))


def _between(boots: Float[np.ndarray, "draws numbers"]) -> list[list[float]]:
    percentiles: list[list[float]] = np.percentile(boots, BETWEEN, axis=0).T.tolist()
    return percentiles


def _sums(boots: Float[np.ndarray, "draws units"], units: tuple[Unit, ...]) -> Float[np.ndarray, "draws groups"]:
    """The sums over runs of units with the same name."""
    return np.stack([boots[:, run].sum(1) for run in runs_of(units)], 1)
