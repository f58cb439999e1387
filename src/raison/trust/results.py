"""Records of randomised blocks and attacks for one model on one data set, in its folder. This file never needs torch.

    similarities.jsonl    one line per method, order, blocks, draw and text (raison.trust.records.BlockSimilarity)
    attacks.jsonl         one line per method, attack, objective and text (raison.trust.records.Attacked)
    substitutions.jsonl   the explanations before and after words were replaced, with their texts

Records are numbers, with no text in them, and are enough for every table and figure.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from raison.core.results.explanation import Explanation
from raison.core.settings.reading import Fields
from raison.core.settings.tables import read_written
from raison.jobs.store import RecordStore
from raison.runs.headers import Count, check_folder
from raison.runs.record import read_keyed
from raison.trust.records import (
    Attack,
    Attacked,
    AttackKey,
    AttackObjective,
    BlockSimilarity,
    Order,
    SimilarityKey,
    Substituted,
)

SIMILARITIES = "similarities.jsonl"
ATTACKS = "attacks.jsonl"
SUBSTITUTIONS = "substitutions.jsonl"


ATTACKED_BY = {"embedding": "shifted embeddings", "substitution": "exchanged words"}
"""Kinds of attacks, by how they are called in sentences."""


@dataclass(frozen=True, slots=True)
class AttackVariant:
    """One kind of attack: what is changed, and with which objective."""

    attack: Attack
    objective: AttackObjective


@dataclass(frozen=True, slots=True)
class VariantHead:
    """One way of attacking, and the methods that are attacked."""

    attack: Attack
    objective: AttackObjective
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RandomisedHead:
    """The randomisation; `left_out` gives the reasons for excluded methods."""

    texts: Count
    methods: tuple[str, ...]
    orders: tuple[Order, ...]
    draws: Count
    blocks: Count
    left_out: Mapping[str, str]

    @property
    def count(self) -> int:
        """The number of similarities, in total."""
        return len(self.methods) * len(self.orders) * self.blocks * self.draws * self.texts

    def has(self, key: SimilarityKey) -> bool:
        """Whether it is one of them."""
        named = key.method in self.methods and key.order in self.orders
        return named and 1 <= key.blocks <= self.blocks and key.draw < self.draws and key.text < self.texts


@dataclass(frozen=True, slots=True)
class AttackedHead:
    """What is attacked; texts on the `boundary` of two classes are not. `left_out` is by the kind of attack."""

    texts: Count
    boundary: tuple[int, ...]
    variants: tuple[VariantHead, ...]
    left_out: Mapping[str, Mapping[str, str]]

    @property
    def attacked(self) -> int:
        """The number of texts that are attacked."""
        return self.texts - sum(0 <= text < self.texts for text in {*self.boundary})

    @property
    def count(self) -> int:
        """The number of attacks, in total."""
        return self.attacked * sum(len(one.methods) for one in self.variants)

    def has(self, key: AttackKey) -> bool:
        """Whether it is one of them."""
        if key.text >= self.texts or key.text in self.boundary:
            return False
        made = (one.methods for one in self.variants if (one.attack, one.objective) == (key.attack, key.objective))
        return any(key.method in methods for methods in made)


@dataclass(frozen=True, slots=True)
class TrustHead:
    """The header's entry for one model on one data set, by their names in the study; `source` is the data set's own
    name."""

    name: str
    model: str
    data: str
    source: str
    randomisation: RandomisedHead | None = None
    attacks: AttackedHead | None = None

    def __post_init__(self) -> None:
        check_folder(self.name)

    @property
    def nothing_left(self) -> list[str]:
        """The parts in which no method is left, one line each."""
        reasons, randomised, attacked = [], self.randomisation, self.attacks
        if randomised is not None and not randomised.methods:
            reasons.append(("randomisation", randomised.left_out))
        if attacked is not None:
            empty = [variant.attack for variant in attacked.variants if not variant.methods]
            # The control of random changes leaves out the same methods as its attack.
            operations = ["substitution" if attack == "substitution" else "embedding" for attack in empty]
            reasons += [("attacks", attacked.left_out[operation]) for operation in operations]
        lines = [
            f"[{part}] leaves out every method; the reason for the first: {next(iter(why.values()))}"
            for part, why in reasons
        ]
        return [f"{self.name}: {line}" for line in dict.fromkeys(lines)]


@dataclass(frozen=True, slots=True)
class TrustRun:
    """One model on one data set. `header` is its entry in trust.json; `dropped` lines were broken."""

    header: TrustHead
    similarities: Mapping[SimilarityKey, BlockSimilarity]
    attacks: Mapping[AttackKey, Attacked]
    dropped: int = 0

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.header.name

    @property
    def blocks(self) -> int:
        """The model's number of blocks; 0 if nothing is randomised."""
        return 0 if self.header.randomisation is None else self.header.randomisation.blocks

    @property
    def randomised(self) -> tuple[str, ...]:
        """The methods whose dependence on the parameters is measured."""
        return () if self.header.randomisation is None else self.header.randomisation.methods

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders in which blocks are randomised."""
        return () if self.header.randomisation is None else self.header.randomisation.orders

    @property
    def variants(self) -> dict[AttackVariant, tuple[str, ...]]:
        """The methods that each kind of attack is made on."""
        variants = () if self.header.attacks is None else self.header.attacks.variants
        return {AttackVariant(one.attack, one.objective): one.methods for one in variants}

    def wanted_similarities(self) -> Iterator[SimilarityKey]:
        """The keys of all similarities of the finished run."""
        if (table := self.header.randomisation) is None:
            return
        for method in self.randomised:
            for order in self.orders:
                for blocks in range(1, self.blocks + 1):
                    for draw in range(table.draws):
                        for text in range(table.texts):
                            yield SimilarityKey(method, order, blocks, draw, text)

    def wanted_attacks(self) -> Iterator[AttackKey]:
        """The keys of all attacks of the finished run."""
        if (table := self.header.attacks) is None:
            return
        texts = [text for text in range(table.texts) if text not in table.boundary]
        for variant, methods in self.variants.items():
            for method in methods:
                yield from (AttackKey(method, variant.attack, variant.objective, text) for text in texts)

    @property
    def missing(self) -> int:
        """The number of records that the run still lacks."""
        randomised, attacked = self.header.randomisation, self.header.attacks
        similarities = 0 if randomised is None else sum(map(randomised.has, self.similarities))
        return self.wanted - similarities - (0 if attacked is None else sum(map(attacked.has, self.attacks)))

    @property
    def wanted(self) -> int:
        """The number of records of the finished run."""
        return sum(part.count for part in (self.header.randomisation, self.header.attacks) if part is not None)


def head_of(entry: Mapping[str, Any]) -> TrustHead:
    """A new entry of a header."""
    return read_written(TrustHead, entry, "a run of a study of trust", Path("trust.json"))


def read_run(folder: Path, entry: TrustHead) -> TrustRun:
    """The records of one run of a study so far. Raises DataError if its files cannot be read."""
    place = folder / entry.name
    similarities, first = read_keyed(RecordStore(place / SIMILARITIES), _similarity)
    attacks, second = read_keyed(RecordStore(place / ATTACKS), _attacked)
    return TrustRun(entry, similarities, attacks, first + second)


def store_of(folder: Path, run: str, name: str, shard: int | None = None) -> RecordStore:
    """Where a run's records of a kind are written: `name` is SIMILARITIES or ATTACKS."""
    return RecordStore(folder / run / name, shard)


def substituted(folder: Path, run: TrustRun, method: str) -> Substituted | None:
    """The replacement of words that changed the method's explanation most.

    None if no words were replaced, or if the folder has no explanations.
    """
    known = {(line["method"], line["text"]): line for line in store_of(folder, run.name, SUBSTITUTIONS).read().records}
    replaced = [
        record
        for key, record in run.attacks.items()
        if key.method == method and key.attack == "substitution" and (method, key.text) in known
    ]
    if not replaced:
        return None
    worst = max(replaced, key=lambda record: (record.rank_change, record.sum_change))
    line = known[method, worst.text]
    return Substituted(worst, Explanation.from_dict(line["before"]), Explanation.from_dict(line["after"]))


def _similarity(line: dict[str, Any]) -> BlockSimilarity:
    return BlockSimilarity(**_values(line, BlockSimilarity, ("spearman", "kendall", "overlap")))


def _attacked(line: dict[str, Any]) -> Attacked:
    return Attacked(**_values(line, Attacked, ("rank_change", "sum_change", "probability_change")))


def _values(line: dict[str, Any], cls: type, measures: tuple[str, ...]) -> dict[str, Any]:
    values = Fields(line, "a record")
    for field in fields(cls):
        if field.name in measures and line[field.name] is None:
            continue
        if field.type in (int, bool):
            (values.whole if field.type is int else values.flag)(field.name)
        elif field.type is float:
            values.number(field.name)
        else:
            values.string(field.name)
    known = {field.name: line[field.name] for field in fields(cls)}
    return known | {name: math.nan if line[name] is None else float(line[name]) for name in measures}
