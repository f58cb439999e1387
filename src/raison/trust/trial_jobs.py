"""The jobs of a trial on one model and its texts, in a study's folder, and records copied from other folders."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from raison.core.inputs.parts import Given
from raison.core.model import LanguageModel
from raison.jobs.engine import Job
from raison.jobs.identity import Identity
from raison.jobs.origins import Origins
from raison.progress import ProgressCallback
from raison.trust.operations import Operation, TrustOperations, TrustRequest
from raison.trust.origins import origins_of
from raison.trust.records import CHUNK, Attacked, BlockSimilarity, Substituted
from raison.trust.results import ATTACKS, SIMILARITIES, SUBSTITUTIONS, TrustHead, TrustRun, read_run, store_of
from raison.trust.trial import TrustTrial

FEW = 8
"""Number of texts per job of substitution; a job of randomisation has a CHUNK."""
DEAR = 10.0
"""Approximate cost of an attack, in explanations."""


@dataclass(frozen=True)
class TrialJobs:
    """A trial on one model and its texts, in a study's folder; `entry` is its entry in the header.

    `model` is called if there is work. `identity` is the model's, with the versions of libraries. Records are written
    to the files of `shard`.
    """

    trial: TrustTrial
    operations: TrustOperations
    model: Callable[[], LanguageModel]
    texts: Sequence[Given]
    entry: TrustHead
    identity: Identity
    folder: Path
    shard: int | None = None

    @cached_property
    def origins(self) -> Mapping[str, Origins]:
        """The origin of each record, by the store's name."""
        return origins_of(self.trial, self.texts, self.identity, TrustRun(self.entry, {}, {}))

    def take_over(self, sources: Sequence[Path]) -> None:
        """Copy the records that other folders have. Raises DataError."""
        # Explanations first, so that a text with a record has both.
        for name in (SUBSTITUTIONS, ATTACKS, SIMILARITIES):
            self.origins[name].take_over(store_of(self.folder, self.entry.name, name), sources)

    def jobs(self) -> list[Job]:
        """All jobs, done or not. A record is written as soon as its part of the work is finished."""
        known = read_run(self.folder, self.entry)
        return [*self._randomising(known), *self._attacking(known), *self._exchanging(known)]

    def _randomising(self, known: TrustRun) -> Iterator[Job]:
        for part, keys in _parts(known.wanted_similarities(), lambda key: key.text // CHUNK):
            run = partial(self._randomise, known, CHUNK * part)
            yield self._job("randomisation", keys, known.similarities, run)

    def _attacking(self, known: TrustRun) -> Iterator[Job]:
        wanted = (key for key in known.wanted_attacks() if key.attack != "substitution")
        for method, keys in _parts(wanted, lambda key: key.method):
            yield self._job("attacks", keys, known.attacks, partial(self._attack, known, method))

    def _exchanging(self, known: TrustRun) -> Iterator[Job]:
        wanted = (key for key in known.wanted_attacks() if key.attack == "substitution")
        for part, keys in _parts(wanted, lambda key: key.text // FEW):
            methods = tuple(dict.fromkeys(key.method for key in keys))
            run = partial(self._exchange, known, methods, FEW * part)
            yield self._job("substitution", keys, known.attacks, run)

    def _job(
        self, title: str, keys: Sequence[Any], known: Collection[Any], run: Callable[[ProgressCallback], None]
    ) -> Job:
        name = self.entry.name
        left = sum(key not in known for key in keys)
        # The cost of everything, done or not: all processes that share the work must choose the same shares.
        cost = len(keys) * (1.0 if title == "randomisation" else DEAR)
        key = f"{title} {name} {tuple(keys[0])}"
        return Job(key, f"{title}, {name}", run, lambda: not left, cost=cost, size=max(left, 1))

    def _randomise(self, known: TrustRun, first: int, advance: ProgressCallback) -> None:
        """The texts of one job, of which `first` is the first."""
        assert self.trial.randomisation is not None, "no randomisation without its table"
        request = self._request("randomisation")
        only = range(len(request.texts))[first : first + CHUNK]
        request = replace(request, methods=known.randomised, only=only)
        plan = self.trial.randomisation.plan
        self._write(self.operations.similarities(request, plan, known.similarities), SIMILARITIES, advance)

    def _attack(self, known: TrustRun, method: str, advance: ProgressCallback) -> None:
        assert self.trial.attacks is not None, "no attack without its table"
        request = replace(self._request("embedding"), methods=(method,))
        self._write(self.operations.attacked(request, self.trial.attacks.plans, known.attacks), ATTACKS, advance)

    def _exchange(self, known: TrustRun, methods: tuple[str, ...], first: int, advance: ProgressCallback) -> None:
        """The texts of one job, of which `first` is the first."""
        assert self.trial.attacks is not None, "no attack without its table"
        request = self._request("substitution")
        only = range(len(request.texts))[first : first + FEW]
        request = replace(request, methods=methods, only=only)
        parts = self.operations.substituted(request, self.trial.attacks.substitution, known.attacks)
        self._write(self._kept(parts), ATTACKS, advance)

    def _request(self, operation: Operation) -> TrustRequest:
        return self.trial.request(self.model(), self.texts, operation)

    def _write(
        self, parts: Iterable[list[BlockSimilarity]] | Iterable[list[Attacked]], name: str, advance: ProgressCallback
    ) -> None:
        store, origins = store_of(self.folder, self.entry.name, name, self.shard), self.origins[name]
        for records in parts:
            store.append(origins.stamped(record.to_dict()) for record in records)
            advance(len(records))

    def _kept(self, parts: Iterable[list[Substituted]]) -> Iterator[list[Attacked]]:
        """The records. Their explanations are written first, so that a text with a record has both."""
        store = store_of(self.folder, self.entry.name, SUBSTITUTIONS, self.shard)
        for part in parts:
            changed = [one.to_dict() for one in part if one.record.steps]
            store.append(self.origins[SUBSTITUTIONS].stamped(line) for line in changed)
            yield [one.record for one in part]


def _parts(keys: Iterable[Any], part: Callable[[Any], Any]) -> Iterable[tuple[Any, list[Any]]]:
    """The keys of each part of the work, in the order in which the parts first appear."""
    groups: dict[Any, list[Any]] = {}
    for key in keys:
        groups.setdefault(part(key), []).append(key)
    return groups.items()
