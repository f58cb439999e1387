"""Adversarial texts for explanations: words replaced by their neighbours, for any method.

Not in the thesis, whose attack needs gradients of the explanation and yields embeddings that are not words.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from raison.core.draws import generator_for
from raison.core.errors import UnsupportedError
from raison.core.inputs.parts import Given, again
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting, check
from raison.core.targets.target import TargetSpec
from raison.explaining.attribution import run
from raison.explaining.batch import Batch, prepare
from raison.explaining.prediction_change import explained_values, predicted
from raison.explaining.settings import Settings
from raison.numerics.measures.attacks import (
    probability_change,
    rank_change,
    top_sum_change,
    top_units,
)
from raison.trust.attack_settings import OWNER, CountSetting, ShareSetting
from raison.trust.attack_start import checked_count
from raison.trust.neighbours import Neighbours, replaced, unchanged_shape
from raison.trust.records import Attacked, AttackKey, Substituted

_IN_PLACE = "it predicts a part of the text or at a position in it, which the attack could replace"


@dataclass(frozen=True, slots=True)
class Substitution:
    """Up to `swaps` words are replaced, one per round, by one of their `neighbours` nearest in the embedding table.

    A round tries `tries` texts, drawn by `seed`. Those that keep the prediction, and the explained class's probability
    up to `tolerance`, are explained; for a model of one number, those that move the number by at most this share (and
    by at most 0.05) of how far the whole text moves it. The one in which the scores of the k original top units fall
    most is kept, if they fall at all. k = floor(`share` * units), at least 1, or `k` itself.
    """

    neighbours: CountSetting = 8
    swaps: CountSetting = 3
    tries: CountSetting = 24
    tolerance: Annotated[float, Setting(above=0)] = 0.05
    share: ShareSetting = 0.15
    k: Annotated[int | None, Setting(least=1)] = None
    seed: int = 0

    def __post_init__(self) -> None:
        check(self, OWNER)


@dataclass(frozen=True, slots=True)
class _Changed:
    """A text and the tokens that were replaced in it."""

    text: Given
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A changed text with its explanation; `sum` is that of the original top units' scores."""

    explanation: Explanation
    value: float
    """The explained class's probability, or the number."""
    sum: float
    rank_change: float
    positions: tuple[int, ...]
    """The tokens that were replaced."""


def substitutions(
    model: LanguageModel,
    texts: Sequence[Given],
    methods: Sequence[Method],
    settings: Settings,
    plan: Substitution,
    *,
    done: Collection[AttackKey] = (),
    only: range | None = None,
) -> Iterator[list[Substituted]]:
    """Attack every method's explanation of every text; yields one text's results at a time.

    Every method is tried with the same texts in its first round. `plan.tries` predictions, and at most as many
    explanations, per round. A random method's scores also change with the text's draws. Texts on the boundary (see
    attacks.boundary) are left out. `done` are keys of records that exist. `only` limits the work to the texts of these
    numbers.

    Raises InputError, UnsupportedError (no embedding table; a model that answers with a part of the text).
    """
    known = Neighbours.of(model)
    numbers = range(len(texts)) if only is None else only
    some = settings if only is None else settings.of_texts(only)
    batch = prepare(model, [texts[number] for number in numbers], some)
    if batch.answers or batch.places:
        raise UnsupportedError(
            f"words cannot be replaced for {model.name}", [_IN_PLACE], "Attack it in embedding space."
        )
    counts = [
        checked_count(text, units, plan.share, plan.k)
        for text, units in zip(batch.encoding.texts, batch.encoding.unit_counts, strict=True)
    ]
    undecided = predicted(batch).undecided()
    missing = {
        row: [m for m in methods if AttackKey(label_of(m), "substitution", "constrained", number) not in done]
        for row, number in enumerate(numbers)
        if not undecided[row]
    }
    return _run(_Search(model, batch, known, plan, numbers), counts, missing)


def irreplaceable(model: LanguageModel, text: Given, settings: Settings) -> str:
    """The reason why no word of the texts can be replaced; "" if words can be. One pass over one text."""
    batch = prepare(model, [text], settings.of_texts([0]))
    return _IN_PLACE if batch.answers or batch.places else ""


def kept_tries(model: LanguageModel, texts: Sequence[Given], settings: Settings, plan: Substitution) -> list[int]:
    """The number of tries of each text's first round that keep the prediction, which is the same for all methods.

    `plan.tries` predictions per text and no explanation. Raises what `substitutions` raises.
    """
    search = _Search(model, prepare(model, texts, settings), Neighbours.of(model), plan, range(len(texts)))
    return [
        len(search.tries(number, search.start(number), _Changed(text), search.rng(number)))
        for number, text in enumerate(search.batch.encoding.given)
    ]


def _run(
    search: "_Search", counts: Sequence[int], missing: Mapping[int, Sequence[Method]]
) -> Iterator[list[Substituted]]:
    for text, methods in missing.items():
        if methods:
            yield [search.attack(text, method, counts[text]) for method in methods]


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    model: LanguageModel
    batch: Batch
    known: Neighbours
    plan: Substitution
    numbers: Sequence[int]
    """The number of each text of the batch."""

    def attack(self, text: int, method: Method, k: int) -> Substituted:
        """One method on one text."""
        start = self.start(text)
        before = run(start, method)[0]
        scores = np.array(before.scores)
        first = _Attempt(before, float(explained_values(start)[0]), float(scores[top_units(scores, k)].sum()), 0.0, ())
        best, held = first, False
        rng = self.rng(text)
        for _ in range(self.plan.swaps):
            tried = self._round(text, start, method, best, rng)
            held |= bool(tried)
            ranked = [_judged(first, attempt, k) for attempt in tried]
            better = min(ranked, key=lambda attempt: (attempt.sum, -attempt.rank_change), default=best)
            if better.sum >= best.sum:
                break
            best = better
        after = np.array(best.explanation.scores)
        record = Attacked(
            method=label_of(method),
            attack="substitution",
            objective="constrained",
            text=self.numbers[text],
            k=k,
            rank_change=rank_change(scores, after, k),
            sum_change=top_sum_change(scores, after, k),
            probability_change=probability_change(first.value, best.value),
            steps=len(best.positions),
            held=held,
        )
        return Substituted(record, before, best.explanation)

    def _round(
        self, text: int, start: Batch, method: Method, best: _Attempt, rng: np.random.Generator
    ) -> list[_Attempt]:
        """Texts in which one more word is replaced and which keep the prediction, explained."""
        e = best.explanation
        tries = self.tries(text, start, _Changed(again(e.text, e.units, e.unit), best.positions), rng)
        if not tries:
            return []
        kept = self._prepare(text, [changed.text for changed in tries])
        return [
            _Attempt(explanation, value, 0.0, 0.0, changed.positions)
            for changed, value, explanation in zip(
                tries, explained_values(kept).tolist(), run(kept, method), strict=True
            )
        ]

    def tries(self, text: int, start: Batch, best: _Changed, rng: np.random.Generator) -> list[_Changed]:
        """The texts that a round draws from the best one, if they keep the prediction of the original, `start`."""
        current = self.model.encode([best.text], start.settings.unit, start.settings.truncate)
        choices = [
            (place, word)
            for place in self.known.places(current)
            if place.position not in best.positions
            for word in self.known.nearest(place.word, self.plan.neighbours)
        ]
        drawn = [choices[i] for i in rng.permutation(len(choices))[: self.plan.tries]]
        texts = [replaced(best.text, place, word) for place, word in drawn]
        if not texts:
            return []
        batch = self._prepare(text, texts)
        before, logits = predicted(start).select([0] * len(texts)), batch.full.double()
        same = (before.same(logits) & before.within(logits, self.plan.tolerance)).tolist()
        return [
            _Changed(texts[row], (*best.positions, drawn[row][0].position))
            for row in range(len(texts))
            if same[row] and unchanged_shape(current, batch.encoding, row)
        ]

    def rng(self, text: int) -> np.random.Generator:
        """For a text's tries: the same for all methods."""
        return generator_for(self.plan.seed, "substitution", self.batch.encoding.texts[text])

    def start(self, text: int) -> Batch:
        """The original text alone."""
        return self._prepare(text, [self.batch.encoding.given[text]])

    def _prepare(self, text: int, changed: Sequence[Given]) -> Batch:
        """Versions of a text, with the target of the original."""
        target, index = self.batch.target, int(self.batch.target.index[text])
        spec: TargetSpec = [index] * len(changed)
        if target.against is not None:
            spec = (index, int(target.against[text]))
        return prepare(self.model, changed, replace(self.batch.settings, target=spec))


def _judged(first: _Attempt, attempt: _Attempt, k: int) -> _Attempt:
    original, changed = np.array(first.explanation.scores), np.array(attempt.explanation.scores)
    total = float(changed[top_units(original, k)].sum())
    return replace(attempt, sum=total, rank_change=rank_change(original, changed, k))
