"""Harmless change: does an explanation stay the same when the text is slightly reworded?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float

from raison.core.inputs.unit import Unit
from raison.core.metric import Evidence, Metric, Need, Reworded, Rewording
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.agreement import relative, spearman
from raison.text.edits import EDITS, Edited, check_edits, edit

DECIMALS = 5
"""Scores that agree to this many decimals, as shares of the largest, are equal."""


@dataclass(frozen=True)
class HarmlessChange(Metric):
    """Mean rank correlation between the scores of a text and those of the same text after harmless edits.

    1/|E| sum_{e in E} Spearman(s(x), s(e(x))) over the units of x that e(x) still has (scores that differ only by
    rounding tie), in -1..1, higher is better. The edits are `casing` (the first letter of one word), `contraction` (it
    is <-> it's), `synonym` (film <-> movie) and `neutral` (a sentence that says nothing about the topic is appended),
    each at one place that depends only on the text; see raison.text.edits. E holds the edits that the text allows and
    that are harmless to this model: they move the probability of the explained class by at most `tolerance`, and change
    the model's input tokens (for an uncased model, a change of case is none). A model's one number may move by that
    share of |f(x) - f(empty)|, how far the whole text moves it; two ranked documents also keep their order. Units that
    an edit joins or splits count with the sum of their scores; units that it creates do not count. The edited text is
    explained by the same method, seed, target, unit and removal. In a pair or a ranking, the first string that allows
    an edit is edited.

    NaN if E is empty, for fewer than two units or equal scores, for maps that a metric chose, and for answers to
    questions, whose place an edit would move. A text that becomes too long for the model is cut. A method whose draws
    depend on the text also loses by its own noise: compare with more samples. A method that ignores the text's words is
    perfectly robust: read it together with faithfulness.

    For a statement that a language model wrote after sources, one of the sources is edited, or two change places with
    their labels (`order`); which ones depends only on the prompt. Units correspond by their source and their place in
    it. The statement's log-probability counts like a number, and scores as multiples of `tolerance` of the largest:
    smaller differences tie. NaN without sources. A prompt that becomes too long does not count.

    Cost: one forward pass and at most one explanation for each edit.

    The thesis attacks explanations by optimised changes; harmless ones are this library's own counterpart.
    """

    edits: Annotated[tuple[str, ...] | list[str], Setting(words="a list of names, such as ('casing', 'order')")] = (
        "casing",
        "contraction",
        "synonym",
        "neutral",
        "order",
    )
    tolerance: Annotated[float, Setting(least=0, most=1, words="a number from 0 to 1, such as 0.05")] = 0.05
    reference: ClassVar[str] = "oxford2022assessing"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.METHOD})
    ordered: ClassVar[bool] = False

    def consistent(self) -> None:
        check_edits(tuple(self.edits))

    def rewordings(self, explanation: Explanation) -> Sequence[Rewording]:
        if explanation.outputs == "statement":
            return self._of_sources(explanation)
        return tuple(self._rewording(explanation, edited) for edited in self._edited(explanation))

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        similarities = []
        if explanation.outputs == "statement":
            for rewording in self._of_sources(explanation):
                reworded = evidence.reworded(rewording)
                if reworded is not None:
                    similarities.append(self._similarity_by_names(explanation, reworded))
        for edited in self._edited(explanation):
            reworded = evidence.reworded(self._rewording(explanation, edited))
            if reworded is not None:
                similarities.append(_similarity(explanation, edited, reworded))
        known = [value for value in similarities if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")

    def _of_sources(self, explanation: Explanation) -> tuple[Rewording, ...]:
        """Edits of the prompt of a statement."""
        return tuple(Rewording(explanation.text, self.tolerance, name) for name in self.edits)

    def _similarity_by_names(self, explanation: Explanation, reworded: Reworded) -> float:
        """Spearman's correlation over the units that have a name and a number within their source in common."""
        before = _by_name(explanation.units, _steps(np.array(explanation.scores), self.tolerance))
        after = _by_name(reworded.units, _steps(reworded.scores, self.tolerance))
        both = [name for name in before if name in after]
        return spearman(np.array([before[name] for name in both]), np.array([after[name] for name in both]))

    def _rewording(self, explanation: Explanation, edited: Edited) -> Rewording:
        return Rewording(edited.given(explanation.units, explanation.unit), self.tolerance)

    def _edited(self, explanation: Explanation) -> list[Edited]:
        if explanation.answer is not None or explanation.place is not None:
            return []
        edits = [edit(name, explanation.text) for name in self.edits if name in EDITS]
        return [edited for edited in edits if edited is not None]


def _similarity(explanation: Explanation, edited: Edited, reworded: Reworded) -> float:
    """Spearman's correlation over the groups of units that correspond."""
    before = relative(np.array(explanation.scores, dtype=np.float64), DECIMALS)
    after = relative(reworded.scores, DECIMALS)
    groups = edited.groups(explanation.units, reworded.units)
    was = np.array([before[list(old)].sum() for old, _ in groups])
    now = np.array([after[list(new)].sum() for _, new in groups])
    # Once more, for sums of the same numbers in another order.
    return spearman(was.round(DECIMALS), now.round(DECIMALS))


def _by_name(units: Sequence[Unit], scores: Float[np.ndarray, " units"]) -> dict[tuple[str, int], float]:
    """Scores by the name of each unit's source, and the unit's number among those of that source."""
    by_name: dict[tuple[str, int], float] = {}
    for place, (unit, score) in enumerate(zip(units, scores.tolist(), strict=True)):
        by_name[unit.name, sum(one.name == unit.name for one in units[:place])] = score
    return by_name


def _steps(scores: Float[np.ndarray, " units"], step: float) -> Float[np.ndarray, " units"]:
    """Shares of the largest magnitude, as whole numbers of steps; without steps only rounding errors tie."""
    shares = relative(scores, DECIMALS)
    return np.round(shares / step) if step > 0 else shares
