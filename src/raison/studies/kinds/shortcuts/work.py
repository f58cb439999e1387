"""A study of shortcuts: its requirements, and its jobs, one per seed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import torch
from scipy.special import softmax

from raison.core.errors import InputError, UnknownNameError
from raison.data.digest import dataset_digest
from raison.explaining.explain import explain
from raison.jobs.engine import Job
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of
from raison.jobs.origins import Origins
from raison.models.loading.load import load
from raison.progress import ProgressCallback
from raison.report.tables.records import Cell, Table
from raison.runs.words import Decisive, decisive
from raison.studies import kind
from raison.studies.data_loading import load_rows
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of, versions
from raison.studies.kind import EstimateTable
from raison.studies.kinds.shortcuts.results import (
    BOTH,
    FOUND,
    PLANTED,
    RANDOM,
    Found,
    read,
    row_of,
    rows_of,
    store_of,
)
from raison.studies.kinds.shortcuts.spec import Shortcuts
from raison.training.recipes.classifier import labels_of

REUSED = (FOUND,)
"""Stores whose records can be taken over from other folders."""
HELD_OUT = 500
"""Maximum number of rows for measuring a model's accuracy."""
PENALTY, STEPS = 0.1, 200
"""For the logistic regression: half the weight of its L2 penalty, and the maximum number of steps."""


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts with the numbers of their classes."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]

    def of(self, places: Sequence[int]) -> "LabelledTexts":
        """Some of them."""
        return LabelledTexts(
            tuple(self.texts[place] for place in places), tuple(self.labels[place] for place in places)
        )


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """A study that can be run."""

    rows: LabelledTexts
    classes: tuple[str, ...]

    @property
    def planting(self) -> dict[str, list[int]]:
        """The classes that get the word, by the names of the table's rows."""
        return {PLANTED: [self.classes.index(self.study.spec.label)], BOTH: list(range(len(self.classes)))}


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Logistic regression on word counts; words are lower-cased and separated by spaces."""

    places: dict[str, int]
    weights: np.ndarray

    @classmethod
    def learned(cls, rows: LabelledTexts, classes: int) -> "WordCounts":
        """Trained on the rows, with a penalty; deterministic."""
        words = sorted({word for text in rows.texts for word in text.casefold().split()})
        places = {word: place for place, word in enumerate(words)}
        counts, labels = torch.tensor(_counts(places, rows.texts)), torch.tensor(rows.labels)
        weights = torch.zeros(counts.shape[1], classes, dtype=counts.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss() -> torch.Tensor:
            optimiser.zero_grad()
            value = torch.nn.functional.cross_entropy(counts @ weights, labels, reduction="sum")
            value = value + PENALTY / 2 * weights[:-1].square().sum()
            value.backward()
            return value

        with torch.enable_grad():
            optimiser.step(loss)
        return cls(places, weights.detach().numpy())

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """The classes' probabilities."""
        return np.asarray(softmax(_counts(self.places, texts) @ self.weights, axis=1))


def _counts(places: Mapping[str, int], texts: Sequence[str]) -> np.ndarray:
    """Texts x words, and a last column of ones; unknown words are ignored."""
    counts = np.zeros((len(texts), len(places) + 1))
    counts[:, -1] = 1
    for row, text in enumerate(texts):
        for word in text.casefold().split():
            if word in places:
                counts[row, places[word]] += 1
    return counts


def examine(study: Study, limit: int | None = None, _sources: Sequence[Path] = ()) -> Examined:
    """Load the data. Raises StudyError with every problem found."""
    spec, data = study.spec, load_rows(study.spec.data, limit)
    classes, reasons = labels_of(data), []
    if spec.label not in classes:
        reasons.append(f"label: {UnknownNameError('label', spec.label, classes)}")
    if not all(isinstance(text, str) for text in data.texts):
        reasons.append(f"{data.name} has pairs of texts: name one of them as text in [data].")
    elif any(spec.word.casefold() in str(text).casefold().split() for text in data.texts):
        reasons.append(f"word: {spec.word} occurs in {data.name}; choose one that does not.")
    if reasons:
        raise StudyError(study.path, reasons)
    labels = data.class_indices(classes)
    about = {
        "rows": rows_of(spec.shares),
        "seeds": spec.seeds,
        "draws": spec.draws,
        "majority": max(Counter(labels).values()) / len(labels),
        "claims": [one.to_dict() for one in spec.claims],
        IDENTITY: {DATA: dataset_digest(data), SETTINGS: study.digest},
    }
    rows = LabelledTexts(tuple(map(str, data.texts)), labels)
    return Examined(study=study, header={**header_of(study, limit), **about}, rows=rows, classes=classes)


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Take over records."""
    _origins(examined).take_over(store_of(folder), sources)


def _origins(examined: Examined) -> Origins:
    """The origin of each record."""
    spec, head = examined.study.spec, examined.header
    shared = [head[IDENTITY][DATA], spec.word, spec.label, spec.rows, examined.classes, versions()]
    keys = [(row, seed, 0) for seed in spec.seeds for row in head["rows"]]
    # The explanations of the last model are reused with random scores.
    last = [*shared, head["rows"][-1]]
    drawn = [key for seed in spec.seeds for key in _drawn(spec, seed)]
    digests = {key: digest_of([shared, key]) for key in keys} | {key: digest_of([last, key]) for key in drawn}
    return Origins(("row", "seed", "draw"), digests)


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """All models and draws of one seed."""
    written, spec, listed = _written(folder), examined.study.spec, []
    for seed in spec.seeds:
        keys = [*((row, seed, 0) for row in examined.header["rows"]), *_drawn(spec, seed)]
        size, done = len(keys), written.issuperset(keys)
        run = partial(_look, examined, folder, shard, seed)
        listed.append(Job(f"seed {seed}", "shortcuts", run, partial(bool, done), size, size))
    return listed


def _drawn(spec: Shortcuts, seed: int) -> list[tuple[str, int, int]]:
    """The random rows of a seed, by row, seed and draw."""
    return [(RANDOM, seed, draw) for draw in range(spec.draws)]


def _written(folder: Path) -> set[tuple[str, int, int]]:
    """What has been written, by row, seed and draw."""
    return {(row, *key) for row, records in read(folder).found.items() for key in records}


def _look(examined: Examined, folder: Path, shard: int | None, seed: int, advance: ProgressCallback) -> None:
    spec, every = examined.study.spec, examined.rows
    order = Random(f"shortcuts {seed}").sample(range(len(every.texts)), len(every.texts))
    rows, held_out = every.of(order[: spec.rows]), every.of(order[spec.rows :][:HELD_OUT])
    records, explained = [], []
    for share, (name, classes) in product(spec.shares, examined.planting.items()):
        labelled = planted(rows, spec.word, classes, round(share * len(rows.texts)), seed)
        model = WordCounts.learned(labelled, len(examined.classes))
        loaded = load(model, classes=examined.classes)
        explained = explain(loaded, labelled.texts, "occlusion", removal="delete", progress=False)
        about = Found(row_of(name, share), seed, accuracy=_accuracy(model, held_out))
        records.append(_found(about, spec.word, decisive(explained)))
        advance(1)
    rng = np.random.default_rng(seed)
    for draw in range(spec.draws):
        drawn = (replace(e, scores=tuple(rng.normal(size=len(e.units)).tolist())) for e in explained)
        words = len(decisive(drawn))
        records.append(Found(RANDOM, seed, draw, found=words > 0, words=words))
        advance(1)
    # Some may be taken over from another folder.
    written = _written(folder)
    new = [asdict(one) for one in records if (one.row, one.seed, one.draw) not in written]
    store_of(folder, shard).append(map(_origins(examined).stamped, new))


def planted(rows: LabelledTexts, word: str, classes: Sequence[int], count: int, seed: int) -> LabelledTexts:
    """The rows with the word at the end of `count` texts, evenly from the classes.

    Raises InputError if a class has too few texts.
    """
    rng, texts = Random(f"plant {seed}"), list(rows.texts)
    for number, label in enumerate(classes):
        of_class = [place for place, of in enumerate(rows.labels) if of == label]
        wanted = count // len(classes) + (number < count % len(classes))
        if wanted > len(of_class):
            raise InputError(
                f"seed {seed}: {wanted} rows of one class should have the word, and {len(of_class)} of the "
                f"{len(rows.texts)} rows are of that class: lower shares, or raise rows."
            )
        for place in rng.sample(of_class, wanted):
            texts[place] = f"{texts[place].rstrip()} {word}"
    return LabelledTexts(tuple(texts), rows.labels)


def _found(about: Found, word: str, deciding: Sequence[Decisive]) -> Found:
    names = [one.word for one in deciding]
    if word.casefold() not in names:
        return replace(about, words=len(names))
    rank = names.index(word.casefold())
    one = deciding[rank]
    return replace(
        about,
        found=True,
        words=len(names),
        rank=rank + 1,
        decided=one.decided,
        expected=one.expected,
        p=one.corrected,
    )


def _accuracy(model: WordCounts, rows: LabelledTexts) -> float | None:
    if not rows.texts:
        return None
    return float((model(rows.texts).argmax(axis=1) == np.array(rows.labels)).mean())


def estimate(examined: Examined) -> EstimateTable:
    """The number of models, and of draws of random scores."""
    spec = examined.study.spec
    cells = tuple(Cell(f"{count * len(spec.seeds):,}") for count in (2 * len(spec.shares), spec.draws))
    head = ("rows", "models", "draws of random scores")
    return EstimateTable(Table("", head, ((f"{spec.rows:,} of {len(examined.rows.texts):,}", cells),)), (), {})
