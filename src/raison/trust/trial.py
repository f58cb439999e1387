"""Randomised blocks and attacks on a model's explanations of some texts: the plan, what is left out, the jobs."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError
from raison.core.inputs.parts import Given, written
from raison.core.model import LanguageModel
from raison.explaining.attribution import Settings
from raison.jobs.engine import Job
from raison.jobs.store import RecordStore
from raison.progress import Told
from raison.trust.records import Attacked, BlockSimilarity, Substituted
from raison.trust.results import ATTACKS, SIMILARITIES, SUBSTITUTIONS, TrustHead, TrustRun, plain, read_run, store_of
from raison.trust.works import TrustRequest, Work, Works

CHUNK, FEW = 16, 8
"""Number of texts per job of randomisation, as explained together by raison.trust.randomisation, and of substitution.
"""
DEAR = 10.0
"""Approximate cost of an attack, in explanations."""


@dataclass(frozen=True, slots=True)
class RandomisationAsked:
    """`plan` is a raison.trust.randomisation.Randomisation."""

    texts: int
    plan: Any


@dataclass(frozen=True, slots=True)
class AttacksAsked:
    """`plans`: a raison.trust.attacks.EmbeddingAttack for each objective. `substitution` may be None."""

    texts: int
    plans: tuple[Any, ...]
    substitution: Any

    @property
    def works(self) -> list[Work]:
        """The kinds of attacks to make."""
        wanted: list[Work] = ["embedding"] if self.plans else []
        return [*wanted, "substitution"] if self.substitution is not None else wanted


@dataclass(frozen=True, slots=True)
class TrustTrial:
    """How explanations by `methods`, named as in the records, are tested."""

    methods: tuple[str, ...]
    settings: Settings
    randomisation: RandomisationAsked | None
    attacks: AttacksAsked | None

    @property
    def texts(self) -> int:
        """The maximum number of texts that is needed."""
        return max(part.texts for part in (self.randomisation, self.attacks) if part is not None)

    def request(self, model: LanguageModel, texts: Sequence[Given], work: Work) -> TrustRequest:
        """The texts that a kind of work uses, with all methods."""
        part = self.randomisation if work == "randomisation" else self.attacks
        some = texts[: part.texts if part is not None else 0]
        return TrustRequest(model, some, self.methods, self.settings.of_texts(range(len(some))))


def refused(trial: TrustTrial, works: Works, model: LanguageModel, texts: Sequence[Given]) -> list[str]:
    """Reasons to refuse attacks before they begin: a k above a text's units, a model without word embeddings."""
    attacks, refusals = trial.attacks, []
    if attacks is None:
        return []
    for work in attacks.works:
        request = trial.request(model, texts, work)
        left_out = works.unable[work](request)
        some = replace(request, methods=tuple(method for method in trial.methods if method not in left_out))
        try:
            if work == "embedding" and some.methods:
                works.attacked(some, attacks.plans, ())
            elif work == "substitution":
                works.substituted(some, attacks.substitution, ())
        except RaisonError as error:
            refusals.append(str(error))
    return list(dict.fromkeys(refusals))


def entry_of(trial: TrustTrial, works: Works, model: LanguageModel, texts: Sequence[Given]) -> dict[str, Any]:
    """Its entry in a header: the work with its methods, and exclusions with reasons."""
    return {
        "texts": hashlib.sha256("\n".join(str(written(text)) for text in texts).encode()).hexdigest()[:16],
        "randomisation": _randomisation(trial, works, model, texts),
        "attacks": _attacks(trial, works, model, texts),
    }


def _randomisation(
    trial: TrustTrial, works: Works, model: LanguageModel, texts: Sequence[Given]
) -> dict[str, Any] | None:
    if trial.randomisation is None:
        return None
    request = trial.request(model, texts, "randomisation")
    left_out = works.unable["randomisation"](request)
    return {
        **asdict(trial.randomisation.plan),
        "texts": len(request.texts),
        "blocks": works.blocks(model),
        "methods": [method for method in trial.methods if method not in left_out],
        "left_out": left_out,
    }


def _attacks(trial: TrustTrial, works: Works, model: LanguageModel, texts: Sequence[Given]) -> dict[str, Any] | None:
    attacks = trial.attacks
    if attacks is None:
        return None
    request = trial.request(model, texts, "embedding")
    left_out = {work: works.unable[work](request) for work in attacks.works}
    able = {work: [method for method in trial.methods if method not in out] for work, out in left_out.items()}
    variants = [
        {"attack": attack, "objective": plan.objective, "methods": able["embedding"]}
        for plan in attacks.plans
        for attack in ("embedding", "noise")
    ]
    if attacks.substitution is not None:
        variants.append({"attack": "substitution", "objective": "constrained", "methods": able["substitution"]})
    return {
        "texts": len(request.texts),
        "boundary": works.boundary(request),
        "variants": variants,
        "left_out": left_out,
        "plans": [asdict(plan) for plan in attacks.plans],
        "substitution": None if attacks.substitution is None else asdict(attacks.substitution),
    }


@dataclass(frozen=True, slots=True)
class Bench:
    """A trial on one model and its texts, in a study's folder; `entry` is its entry in the header.

    `model` is called when there is something to do. Records go to the files of `shard`.
    """

    trial: TrustTrial
    works: Works
    model: Callable[[], LanguageModel]
    texts: Sequence[Given]
    entry: TrustHead
    folder: Path
    shard: int | None = None

    def jobs(self) -> list[Job]:
        """All jobs, done or not. A record is written as soon as its part of the work is finished."""
        known = read_run(self.folder, self.entry)
        return [*self._randomising(known), *self._attacking(known), *self._exchanging(known)]

    def _randomising(self, known: TrustRun) -> Iterator[Job]:
        wanted = list(known.wanted_similarities())
        for keys in _parts(wanted, lambda key: key.text // CHUNK):
            run = partial(self._randomise, known, keys, set(wanted).difference(keys))
            yield self._job("randomisation", keys, known.similarities, run)

    def _attacking(self, known: TrustRun) -> Iterator[Job]:
        wanted = [key for key in known.wanted_attacks() if key.attack != "substitution"]
        for keys in _parts(wanted, lambda key: key.method):
            yield self._job("attacks", keys, known.attacks, partial(self._attack, known, keys[0].method))

    def _exchanging(self, known: TrustRun) -> Iterator[Job]:
        wanted = [key for key in known.wanted_attacks() if key.attack == "substitution"]
        for keys in _parts(wanted, lambda key: key.text // FEW):
            run = partial(self._exchange, known, keys, set(wanted).difference(keys))
            yield self._job("substitution", keys, known.attacks, run)

    def _job(self, title: str, keys: Sequence[Any], known: Collection[Any], run: Callable[[Told], None]) -> Job:
        name = self.entry.name
        left = sum(key not in known for key in keys)
        # The cost of everything, done or not: all processes that share the work must choose the same shares.
        cost = len(keys) * (1.0 if title == "randomisation" else DEAR)
        key = f"{title} {name} {tuple(keys[0])}"
        return Job(key, f"{title}, {name}", run, lambda: not left, cost=cost, size=max(left, 1))

    def _randomise(self, known: TrustRun, keys: Sequence[Any], others: Collection[Any], advance: Told) -> None:
        assert self.trial.randomisation is not None, "no randomisation without its table"
        request = replace(self._request("randomisation"), methods=known.randomised)
        done = {*others, *(key for key in keys if key in known.similarities)}
        similarities = self.works.similarities(request, self.trial.randomisation.plan, done)
        self._write(similarities, SIMILARITIES, advance)

    def _attack(self, known: TrustRun, method: str, advance: Told) -> None:
        assert self.trial.attacks is not None, "no attack without its table"
        request = replace(self._request("embedding"), methods=(method,))
        self._write(self.works.attacked(request, self.trial.attacks.plans, known.attacks), ATTACKS, advance)

    def _exchange(self, known: TrustRun, keys: Sequence[Any], others: Collection[Any], advance: Told) -> None:
        assert self.trial.attacks is not None, "no attack without its table"
        methods = tuple(dict.fromkeys(key.method for key in keys))
        request = replace(self._request("substitution"), methods=methods)
        done = {*others, *(key for key in keys if key in known.attacks)}
        parts = self.works.substituted(request, self.trial.attacks.substitution, done)
        store = store_of(self.folder, known.name, SUBSTITUTIONS, self.shard)
        self._write(_kept(parts, store), ATTACKS, advance)

    def _request(self, work: Work) -> TrustRequest:
        return self.trial.request(self.model(), self.texts, work)

    def _write(
        self, parts: Iterable[list[BlockSimilarity]] | Iterable[list[Attacked]], name: str, advance: Told
    ) -> None:
        store = store_of(self.folder, self.entry.name, name, self.shard)
        for records in parts:
            store.append(plain(record) for record in records)
            advance(len(records))


def _parts(keys: Sequence[Any], part: Callable[[Any], Any]) -> list[list[Any]]:
    """The keys by what they share, in the order in which each first appears."""
    groups: dict[Any, list[Any]] = {}
    for key in keys:
        groups.setdefault(part(key), []).append(key)
    return list(groups.values())


def _kept(parts: Iterable[list[Substituted]], store: RecordStore) -> Iterator[list[Attacked]]:
    """The records. Their explanations are written first, so that a text with a record has both."""
    for part in parts:
        store.append(one.to_dict() for one in part if one.record.steps)
        yield [one.record for one in part]
