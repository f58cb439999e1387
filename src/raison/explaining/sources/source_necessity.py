"""Whether a statement needs a source: compares the effect of removing it with that of removing random text of the same
length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from raison.core.results.citations import Check, Origin, SourceLight
from raison.models.adapters.writing.forced_answer import ForcedAnswer
from raison.models.tokens.sourced import Sourced
from raison.text.duplicates import near_duplicates

LEAST: Final = 0.1
"""In nats: a smaller drop, of a tenth of the probability, never counts as used."""
BEYOND: Final = 3.0
"""How far a drop must exceed the median of the noise, in standard deviations (from the median absolute deviation)."""
NEAR: Final = 0.5
"""A source with at least this share of the largest drop is never called unused."""
SIMILAR: Final = 0.25
"""Tolerance for the length of random text, as a share of the source's length."""
ENOUGH: Final = 3
"""Minimum number of draws for an estimate of the noise."""

Keeps = Bool[np.ndarray, "masks pieces"]


@dataclass(frozen=True, slots=True)
class Lit:
    """The lights of all statements, and what each depends on."""

    checks: tuple[tuple[Check, ...], ...]
    origins: tuple[Origin | None, ...]

    @classmethod
    def off(cls, statements: int) -> "Lit":
        """No light for any statement."""
        return cls((), (None,) * statements)


@dataclass(frozen=True, slots=True)
class RandomRemovals:
    """Random texts that each source is compared with."""

    count: int
    seed: int


def lit(answer: ForcedAnswer, statements: Sequence[range], removal: str, draws: RandomRemovals) -> Lit:
    """Remove each source, all of them, and random text: for each source, `draws` runs of pieces of its length.

    Near-duplicates (raison.text.duplicates) are removed together: without one of them, the other still says it. Random
    text is a run of pieces of the other sources. One draw serves every source that it has nothing of, and whose length
    it has (SIMILAR).
    """
    source = answer.answered.source
    removals = _removals(source, draws)
    homes, count = np.array(source.of_source), len(source.sources)
    keeps = np.concatenate(
        [np.ones((1, len(homes)), bool), np.zeros((1, len(homes)), bool), ~removals.pieces, removals.random]
    )
    values = answer.log_probabilities(keeps, statements, removal)
    drops = values[0] - values[1:]
    whole, by_source, noise = drops[0], drops[1 : 1 + count], drops[1 + count :]
    serves = np.stack([_serves(removals.random, one) for one in removals.pieces])
    alike = [
        tuple(source.sources[n].name for n in group if n != number) for number, group in enumerate(removals.duplicates)
    ]
    checks, origins = [], []
    for statement in range(len(statements)):
        heard = [noise[serves[number], statement] for number in range(count)]
        lights = _checks(by_source[:, statement], heard)
        named_checks = tuple(replace(check, alike=names) for check, names in zip(lights, alike, strict=True))
        checks.append(named_checks)
        origins.append(_origin(named_checks, heard, float(whole[statement])))
    return Lit(tuple(checks), tuple(origins))


def passes_of(source: Sourced, draws: RandomRemovals) -> int:
    """The masked prompts that `lit` runs: whole, without sources, without each source, and without random text."""
    removals = _removals(source, draws)
    return 2 + len(removals.pieces) + len(removals.random)


@dataclass(frozen=True, slots=True)
class _Removals:
    """Of each source, the numbers of its near-duplicates and their pieces; and keeps without random text."""

    duplicates: tuple[tuple[int, ...], ...]
    pieces: Keeps
    random: Keeps


def _removals(source: Sourced, draws: RandomRemovals) -> _Removals:
    groups = near_duplicates([one.text for one in source.sources])
    homes = np.array(source.of_source)
    owns = np.stack([np.isin(homes, group) for group in groups])
    return _Removals(groups, owns, _random_keeps(owns, draws.count, np.random.default_rng(draws.seed)))


def _random_keeps(owns: Keeps, draws: int, rng: np.random.Generator) -> Keeps:
    """Runs of pieces, at random places, until `draws` of them serve every source."""
    keeps: list[np.ndarray] = []
    for source in owns:
        others = np.flatnonzero(~source)
        length = int(source.sum())
        if (1 - SIMILAR) * length > len(others):
            continue
        served = sum(bool(_serves(keep[None], source)[0]) for keep in keeps)
        for start in rng.permutation(len(others))[: max(0, draws - served)]:
            keep = np.ones(owns.shape[1], dtype=bool)
            keep[others[(start + np.arange(min(length, len(others)))) % len(others)]] = False
            keeps.append(keep)
    return np.stack(keeps) if keeps else np.ones((0, owns.shape[1]), dtype=bool)


def _serves(keeps: Keeps, source: Bool[np.ndarray, " pieces"]) -> Bool[np.ndarray, " masks"]:
    """Which draws are random text for a source: they contain nothing of the source, and are about as long."""
    gone = (~keeps).sum(1)
    return keeps[:, source].all(1) & (np.abs(gone - source.sum()) <= SIMILAR * source.sum())


def _checks(drops: Float[np.ndarray, " sources"], heard: Sequence[np.ndarray]) -> tuple[Check, ...]:
    largest = float(drops.max())
    checks = []
    for drop, noise in zip(drops.tolist(), heard, strict=True):
        bar = None if len(noise) < ENOUGH else max(LEAST, _middle(noise) + BEYOND * _spread(noise))
        checks.append(Check(drop, bar, _light(drop, bar, largest)))
    return tuple(checks)


def _light(drop: float, bar: float | None, largest: float) -> SourceLight:
    if bar is not None and drop > bar:
        return "used"
    if drop < LEAST:
        return "not used"
    return "undecided" if bar is None or drop >= NEAR * largest else "not used"


def _origin(checks: Sequence[Check], heard: Sequence[np.ndarray], whole: float) -> Origin:
    """From the lights and the effect of removing all sources, with noise that adds up like independent errors."""
    lights = {check.light for check in checks}
    if "used" in lights:
        return "sources"
    if any(len(noise) < ENOUGH for noise in heard):
        decided = whole < LEAST
    else:
        middle = sum(_middle(noise) for noise in heard)
        spread = math.sqrt(sum(_spread(noise) ** 2 for noise in heard))
        if whole > max(LEAST, middle + BEYOND * spread):
            return "together"
        decided = True
    # Sources for and against a statement may cancel out: then all of them together say nothing of each.
    return "memory" if decided and "undecided" not in lights else "undecided"


def _middle(noise: np.ndarray) -> float:
    return float(np.median(noise))


def _spread(noise: np.ndarray) -> float:
    """A robust standard deviation: a few draws that hit a used source do not change it."""
    return 1.4826 * float(np.median(np.abs(noise - np.median(noise))))
