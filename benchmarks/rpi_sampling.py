"""Randomized Path-Integration: which way to draw baselines finds the best map with equal passes?

A metric chooses among the maps of one text, and the chosen map's value is compared. Every sampler may spend what
R = 24 baselines of n = 30 steps and the scoring of their 24 maps take. A pass is a point on a path (forward and
backward) or a masked text that a candidate is scored by, each candidate's counted as if no other had asked for it; the
column "new passes" counts equal masked texts once, as raison does.

uniform         as `rpi` draws: t uniform in the paper's formula, t = T in the code's; R and n vary
spread t        t evenly spaced over 1 ... T (van der Corput's sequence: fewer are the first ones)
mixture         zero, uniform attention, the attention to the fully masked text, then spread t
cross-entropy   4 rounds; from the second on, t and noise near those of the best so far (a quarter of a round as elite):
                t + N(0, 20^2) and 0.7 noise + sqrt(1 - 0.7^2) fresh noise, which keeps the law of the noise
halving         1 step for all, 2 for the better half, then 4, then 8; the best of all maps scored
random          no path at all: as many random maps as uniform scores with 30, 3 and 1 steps

All of it in the last layer, token by token. Cross-entropy and halving draw anew for each metric, and are left out for
sufficiency. The mean over shares, which looks at the most masked texts, is measured on every third text. The tables
say how many of the sampled texts were reached. The t of cross-entropy starts uniform in both formulas.

All draw from one stream per text, so that their first baselines are the same. "best uniform" is the R and n with the
best mean of the metric on the very same texts, which favours it a little: no sampler is to be credited with what more
baselines alone give.

`python benchmarks/rpi_sampling.py [MINUTES [FILE]]` from the repository's root, where ../shared/data is found (or with
RAISON_DATA set), goes on where FILE ends (lines of numbers, no text), and tabulates it.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from common import RESULTS, save
from rpi_sampling_tables import FINDINGS, METRICS, Record, cells_of, markdown, paired, tabulated
from torch import Tensor

import raison
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.internals.attention import AttentionSite
from raison.core.internals.layers import Layers
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.problem import Ledger, Problem
from raison.core.results.explanation import Explanation
from raison.data import load
from raison.explaining.attribution import run
from raison.explaining.batch import Batch, prepare
from raison.explaining.measuring import create_metrics, measure
from raison.explaining.settings import Settings
from raison.integration.randomized import Variant
from raison.methods import CATALOGUE
from raison.methods.rpi import Rpi
from raison.numerics.gradients.diffusion import draw_noise, draw_times, signal_shares

BASELINES, STEPS, TIMESTEPS = 24, 30, 500
ROUNDS, KEPT_NOISE, TIME_SPREAD = 4, 0.7, 20
LAST = Layers.of("last", "rpi").among
RARELY = 3
SETS = (
    ("SST-2, up to 16 words", "demo/sst2", "sst2", "dev", (1, 16), 200),
    ("Rotten Tomatoes, up to 16 words", "demo/rotten_tomatoes", "mr", "test", (1, 16), 200),
    ("Rotten Tomatoes, 17 to 30 words", "demo/rotten_tomatoes", "mr", "test", (17, 30), 100),
)


@dataclass(frozen=True)
class Judge:
    """Scores maps of one text by one metric. What was once measured is known."""

    batch: Batch
    template: Explanation
    metric: Metric
    known: dict[bytes, float] = field(default_factory=dict)

    @property
    def masks(self) -> int:
        """Different masked texts that one map is scored by."""
        return len(self.masked(self.template))

    def masked(self, explanation: Explanation) -> set[bytes]:
        return {row.tobytes() for rows in self.metric.keeps(explanation).values() for row in rows if not row.all()}

    def __call__(self, maps: Tensor) -> tuple[np.ndarray, list[set[bytes]]]:
        """How good each map is, above is better, and the masked texts that say so."""
        explained = [replace(self.template, scores=tuple(scores)) for scores in maps.tolist()]
        masked = [self.masked(explanation) for explanation in explained]
        names = [b"".join(sorted(rows)) for rows in masked]
        new = {name: e for name, e in zip(names, explained, strict=True) if name not in self.known}
        if new:
            values = measure(self.batch, list(new.values()), [self.metric])
            sign = 1 if self.metric.higher_is_better else -1
            self.known.update({name: sign * float(value) for name, (value,) in zip(new, values, strict=True)})  # type: ignore[arg-type]
        return np.array([self.known[name] for name in names]), masked


@dataclass
class Tally:
    """What a sampler has found and spent on one text by one metric."""

    judge: Judge
    best: float = -np.inf
    points: int = 0
    candidates: int = 0
    masked: set[bytes] = field(default_factory=set)

    def score(self, maps: Tensor, points: int) -> np.ndarray:
        values, masked = self.judge(maps)
        self.best = max(self.best, float(values.max()))
        self.points += points * len(maps)
        self.candidates += len(maps)
        self.masked |= set().union(*masked)
        return values


@dataclass(frozen=True)
class Trial:
    """One text under one formula."""

    problem: Problem
    site: AttentionSite
    masked_site: AttentionSite
    variant: Variant
    number: int
    maps: dict[tuple[str, int], Tensor] = field(default_factory=dict)

    def points(self, steps: int) -> int:
        return steps + (self.variant == "code")

    def affordable(self, judge: Judge, steps: int, spent: int = 0) -> int:
        """Baselines of so many steps for the passes of the published 24 of 30."""
        budget = BASELINES * (self.points(STEPS) + judge.masks) - spent
        return budget // (self.points(steps) + judge.masks)

    def integrate(self, starts: Tensor, steps: int) -> Tensor:
        paths = Rpi(len(starts), steps, timesteps=TIMESTEPS, variant=self.variant)
        return paths.integrate(self.problem, 0, self.site, starts)[:, self.problem.encoding.scored[0]]

    def drawn(self, count: int) -> tuple[Tensor, Tensor]:
        """Uniform timesteps and noise, in the order of RandomPaths; fewer are the first ones."""
        rng = np.random.default_rng([0, self.number])
        shape = tuple(self.site.probabilities.shape)
        draws = [(draw_times(rng, 1, TIMESTEPS, None), draw_noise(rng, shape)) for _ in range(count)]
        return torch.cat([t for t, _ in draws]), torch.stack([noise for _, noise in draws])

    def diffused(self, times: Tensor, noise: Tensor) -> Tensor:
        own = self.site.probabilities
        if self.variant == "paper":
            kept = signal_shares(TIMESTEPS, "linear").to(own)[times - 1][:, None, None, None]
            return kept.sqrt() * own + (1 - kept).sqrt() * noise.to(own)
        kept = signal_shares(TIMESTEPS + 1, "linear").to(own)[times][:, None, None, None]
        return kept.sqrt() * own + (1 - kept) * noise.to(own)


def spread_times(count: int) -> Tensor:
    """Van der Corput's sequence over 1 ... T."""
    shares = [sum((i >> bit & 1) / 2 ** (bit + 1) for bit in range(16)) for i in range(1, count + 1)]
    return torch.tensor([1 + int(share * TIMESTEPS) for share in shares])


def starts(trial: Trial, kind: str, count: int) -> Tensor:
    """The first `count` baselines of a sampler that does not look at scores."""
    times, noise = trial.drawn(count)
    if kind == "uniform":
        return trial.diffused(times if trial.variant == "paper" else torch.full_like(times, TIMESTEPS), noise)
    if kind == "spread t":
        return trial.diffused(spread_times(count), noise)
    own = trial.site.probabilities
    fixed = torch.stack(
        [torch.zeros_like(own), torch.full_like(own, 1 / own.shape[-1]), trial.masked_site.probabilities]
    )
    return torch.cat([fixed, trial.diffused(spread_times(count), noise)])[:count]


def plain(kind: str, steps: int, trial: Trial, judge: Judge) -> Tally:
    """Maps that do not depend on scores are integrated once for all metrics."""
    spent = int(kind == "mixture")
    if (kind, steps) not in trial.maps:
        most = (BASELINES * (trial.points(STEPS) + 1)) // (trial.points(steps) + 1)
        trial.maps[kind, steps] = trial.integrate(starts(trial, kind, most), steps)
    tally = Tally(judge, points=spent)
    tally.score(trial.maps[kind, steps][: trial.affordable(judge, steps, spent)], trial.points(steps))
    return tally


def cross_entropy(steps: int, trial: Trial, judge: Judge) -> Tally:
    size, tally = trial.affordable(judge, steps) // ROUNDS, Tally(judge)
    times, noise = trial.drawn(size)
    rng = np.random.default_rng([1, trial.number])
    pool: list[tuple[float, int, Tensor]] = []
    for _ in range(ROUNDS):
        values = tally.score(trial.integrate(trial.diffused(times, noise), steps), trial.points(steps))
        pool += zip(values.tolist(), times.tolist(), noise, strict=True)
        elite = sorted(pool, key=lambda one: -one[0])[: max(2, size // 4)]
        parents = [elite[i] for i in rng.integers(len(elite), size=size)]
        moved = [t + rng.normal() * TIME_SPREAD for _, t, _ in parents]
        times = torch.tensor(moved).round().long().clamp(1, TIMESTEPS)
        fresh = torch.from_numpy(rng.standard_normal(tuple(noise.shape)))
        noise = KEPT_NOISE * torch.stack([noise for _, _, noise in parents]) + (1 - KEPT_NOISE**2) ** 0.5 * fresh
    return tally


def halving(trial: Trial, judge: Judge) -> Tally:
    rungs = [(2**i, 2**i) for i in range(4)]
    budget = BASELINES * (trial.points(STEPS) + judge.masks)
    count, tally = 8, Tally(judge)
    while sum((count + 8) // part * (trial.points(steps) + judge.masks) for part, steps in rungs) <= budget:
        count += 8
    left = starts(trial, "uniform", count)
    for part, steps in rungs:
        left = left[: count // part]
        values = tally.score(trial.integrate(left, steps), trial.points(steps))
        left = left[torch.from_numpy(np.argsort(-values, kind="stable"))]
    return tally


def control(steps: int, trial: Trial, judge: Judge) -> Tally:
    """The same maps under both formulas: as many as the paper's can score."""
    rng, tally = np.random.default_rng([2, trial.number]), Tally(judge)
    count = replace(trial, variant="paper").affordable(judge, steps)
    tally.score(torch.from_numpy(rng.standard_normal((count, len(judge.template.units)))), 0)
    return tally


SAMPLERS: dict[str, Callable[[Trial, Judge], Tally]] = {
    **{f"uniform, n = {n}": partial(plain, "uniform", n) for n in (STEPS, 10, 3, 1)},
    **{f"spread t, n = {n}": partial(plain, "spread t", n) for n in (STEPS, 3)},
    **{f"mixture, n = {n}": partial(plain, "mixture", n) for n in (STEPS, 10, 3, 1)},
    **{f"cross-entropy, n = {n}": partial(cross_entropy, n) for n in (3, 1)},
    "halving, n = 1 to 8": halving,
    **{f"random, as many as n = {n}": partial(control, n) for n in (STEPS, 3, 1)},
}
ADAPTIVE = ("cross", "halving")


def examined(model: LanguageModel, text: str, number: int) -> Iterator[Record]:
    """Every formula, sampler and metric on one text."""
    batch = prepare(model, [text], Settings(unit="token"))
    (template,) = run(batch, CATALOGUE.create("random"))
    problem = Problem(model, batch.encoding, batch.target, batch.removal, Ledger.empty(1), batch.evaluations)
    (site,) = problem.attention_sites(0, LAST)
    (masked,) = model.ask(ReplaceableAttention).attention_sites(
        model.ask(WordEmbeddings).removed(batch.encoding, batch.removal), LAST
    )
    judges = {
        name: Judge(batch, template, metric)
        for name, metric in zip(METRICS, create_metrics(METRICS), strict=True)
        if isinstance(metric, Metric) and (number % RARELY == 0 or not name.startswith("aopc"))
    }
    for variant in ("paper", "code"):
        trial = Trial(problem, site, masked, variant, number)
        for name, sampler in SAMPLERS.items():
            for metric, judge in judges.items():
                if name.startswith(ADAPTIVE) and metric == "sufficiency":
                    continue
                tally = sampler(trial, judge)
                budget = BASELINES * (trial.points(STEPS) + judge.masks)
                passes = tally.points + tally.candidates * judge.masks
                assert passes <= budget
                yield {
                    "formula": variant,
                    "sampler": name,
                    "metric": metric,
                    "good": tally.best,
                    "maps": tally.candidates,
                    "passes": passes,
                    "new": tally.points + len(tally.masked),
                }


def sampled(source: str, split: str, words: tuple[int, int], count: int) -> list[str]:
    texts = [str(row.text) for row in load(source, split=split).rows]
    texts = [text for text in texts if words[0] <= len(text.split()) <= words[1]]
    random.Random(0).shuffle(texts)
    return texts[:count]


def collect(path: Path, minutes: float) -> None:
    """The sets' texts in turn, so that whenever it stops all have been gone through about as far."""
    until = time.monotonic() + 60 * minutes
    done = {(record["set"], record["text"]) for record in recorded(path)}
    models = {name: raison.load(name) for name in {one[1] for one in SETS}}
    texts = {name: sampled(source, split, words, count) for name, _, source, split, words, count in SETS}
    turns = sorted((number / len(texts[one[0]]), one[0], one[1], number) for one in SETS for number in range(one[-1]))
    for _, name, model, number in turns:
        if time.monotonic() > until:
            return
        if (name, number) not in done:
            lines = [{"set": name, "text": number} | r for r in examined(models[model], texts[name][number], number)]
            with path.open("a") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines))


def recorded(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    path = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.gettempdir() + "/rpi_sampling.jsonl")
    collect(path, minutes)
    cells = cells_of(recorded(path))
    save("rpi_sampling", tabulated(cells))
    page = RESULTS / "rpi_sampling.md"
    page.write_text(f"{FINDINGS}\n{markdown(paired(cells))}\n\n{page.read_text()}")


if __name__ == "__main__":
    main()
