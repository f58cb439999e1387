"""Facts about made-up people and places, which no model can know without the sources."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, get_args

from raison.core.errors import UnknownNameError
from raison.data.sourced.question import KnownSources, Passage

PlantedKind = Literal["single", "combined", "contradicting"]

_STARTS = (
    "Bral", "Cor", "Dun", "Els", "Far", "Gor", "Hal", "Ist", "Jor", "Kel", "Lom", "Mar",
    "Nor", "Ost", "Pel", "Quin", "Ral", "Sel", "Tor", "Ul", "Var", "Wen", "Yar",
)  # fmt: skip
_MIDDLES = ("a", "e", "i", "o", "u", "an", "el", "in", "or", "ul", "")
_TOWNS = ("dan", "mere", "ria", "stad", "vik", "tov", "lund", "bury", "gard")
_FIRST_NAMES = ("na", "ric", "lia", "mund", "tha", "vin", "ra", "dor", "la", "bert")
_FAMILIES = ("sen", "field", "mann", "wick", "holm", "berg", "stone", "ova", "ley", "quist")
_THINGS = ("lighthouse", "library", "bridge", "observatory", "windmill", "theatre", "harbour", "museum", "abbey")
_TRADES = ("clockmaker", "botanist", "sailor", "glassblower", "printer", "surgeon", "beekeeper", "mason", "weaver")
_FILLERS = (
    "The streets there are narrow.",
    "Visitors come mostly in spring.",
    "The winters are long and quiet.",
    "A market is held every second week.",
    "Few photographs of it have survived.",
    "Local guides tell the story differently each year.",
    "The nearest railway station is an hour away.",
    "The archives were moved to a new building.",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with its question, in which "{about}" is its subject, and two ways of stating it."""

    about: str
    asked: str
    answer: str
    said: str
    paraphrase: str

    @property
    def question(self) -> str:
        """The question about it."""
        return self.asked.format(about=self.about)

    def with_answer(self, answer: str) -> "Fact":
        """The same fact with another answer."""
        sentence, paraphrase = (text.replace(self.answer, answer) for text in (self.said, self.paraphrase))
        return replace(self, answer=answer, said=sentence, paraphrase=paraphrase)


@dataclass(frozen=True, slots=True)
class _Case:
    """A question, its answer, and the facts that its sources have."""

    question: str
    answer: str
    gold: list[Fact]
    rest: list[Fact]
    against: list[Fact]


def planted(kind: PlantedKind, others: int = 4, seed: int = 0) -> Iterator[KnownSources]:
    """An endless sequence of questions about made-up facts, each with its sources, drawn from the seed and the
    question's number.

    - "single": one source has the fact, and `others` sources have similar facts about other subjects.
    - "combined": one source says who built a thing, and a second one has the requested fact about that person. Other
      sources say the same about other places and people.
    - "contradicting": two sources state the fact with different answers. The answer is that of `gold`, and `against`
      is the other one.

    The order of the sources is drawn. Raises UnknownNameError.
    """
    if kind not in get_args(PlantedKind):
        raise UnknownNameError("kind of planted facts", kind, get_args(PlantedKind))
    number = 0
    while True:
        random = Random(f"planted {kind} {seed} {number}")
        yield _known(_CASES[kind](random, others), random)
        number += 1


def _single(random: Random, others: int) -> _Case:
    fact, *rest = _distinct(random, random.choice(_RELATIONS), others + 1)
    return _Case(fact.question, fact.answer, [fact], rest, [])


def _contradicting(random: Random, others: int) -> _Case:
    fact, contradiction, *rest = _distinct(random, random.choice(_RELATIONS), others + 1)
    return _Case(fact.question, fact.answer, [fact], rest, [fact.with_answer(contradiction.answer)])


def _combined(random: Random, others: int) -> _Case:
    """Sources come in pairs, so that neither source alone reveals the pair in question."""
    relation = random.choice((_birth, _trade))
    thing = random.choice(_THINGS)
    people = _distinct(random, relation, (others + 1) // 2 + 1)
    places = _distinct_names(random, _town, len(people))
    builders = [_builder(thing, place, fact.about) for place, fact in zip(places, people, strict=True)]
    question = people[0].asked.format(about=f"the person who built {builders[0].about}")
    rest = [fact for pair in zip(builders[1:], people[1:], strict=True) for fact in pair]
    return _Case(question, people[0].answer, [builders[0], people[0]], rest[: others - 1], [])


def _known(case: _Case, random: Random) -> KnownSources:
    facts = [*case.gold, *case.against, *case.rest]
    order = random.sample(range(len(facts)), len(facts))
    sources: dict[str, str] = {}
    passages: dict[int, Passage] = {}
    for place, number in enumerate(order, 1):
        fillers = random.sample(_FILLERS, 2)
        first = random.randint(0, 2)
        start = sum(len(filler) + 1 for filler in fillers[:first])
        fillers.insert(first, facts[number].said)
        sources[f"s{place}"] = " ".join(fillers)
        passages[number] = Passage(f"s{place}", start, start + len(facts[number].said))
    gold_end, against_end = len(case.gold), len(case.gold) + len(case.against)
    return KnownSources(
        question=case.question,
        sources=sources,
        answer=case.answer,
        gold=tuple(passages[number].source for number in range(gold_end)),
        sentences=tuple(passages[number] for number in range(gold_end)),
        against=tuple(passages[number].source for number in range(gold_end, against_end)),
        combined=gold_end > 1,
        subject=case.gold[0].about,
    )


def _town(random: Random) -> str:
    return random.choice(_STARTS) + random.choice(_MIDDLES) + random.choice(_TOWNS)


def _person(random: Random) -> str:
    first = random.choice(_STARTS) + random.choice(_FIRST_NAMES)
    return f"{first} {random.choice(_STARTS)}{random.choice(_MIDDLES)}{random.choice(_FAMILIES)}"


def _builder(thing: str, place: str, person: str) -> Fact:
    about = f"the {thing} of {place}"
    return Fact(
        about,
        "Who built {about}?",
        person,
        f"The {thing} of {place} was built by {person}.",
        f"It was {person} who put up the {thing} in {place}.",
    )


def _building(random: Random) -> Fact:
    return _builder(random.choice(_THINGS), _town(random), _person(random))


def _opening(random: Random) -> Fact:
    thing, place, year = random.choice(_THINGS), _town(random), str(random.randint(1650, 1990))
    return Fact(
        f"the {thing} of {place}",
        "In what year was {about} opened?",
        year,
        f"The {thing} of {place} was opened in {year}.",
        f"In {place} people could first enter the {thing} in {year}.",
    )


def _birth(random: Random) -> Fact:
    person, place = _person(random), _town(random)
    return Fact(
        person,
        "Where was {about} born?",
        place,
        f"{person} was born in {place}.",
        f"The birthplace of {person} is {place}.",
    )


def _trade(random: Random) -> Fact:
    person, trade = _person(random), random.choice(_TRADES)
    return Fact(
        person,
        "What was the trade of {about}?",
        trade,
        f"{person} worked as a {trade}.",
        f"The trade that {person} had learned was that of a {trade}.",
    )


def _distinct(random: Random, relation: Callable[[Random], Fact], count: int) -> list[Fact]:
    """Facts of one kind about different subjects, with different answers as long as there are enough."""
    facts: list[Fact] = []
    answers = len(_TRADES) if relation is _trade else count
    while len(facts) < count:
        fact = relation(random)
        fresh = fact.answer not in [one.answer for one in facts] or len(facts) >= answers
        if fresh and fact.about not in [one.about for one in facts] and (not facts or fact.answer != facts[0].answer):
            facts.append(fact)
    return facts


def _distinct_names(random: Random, draw: Callable[[Random], str], count: int) -> list[str]:
    names: list[str] = []
    while len(names) < count:
        name = draw(random)
        if name not in names:
            names.append(name)
    return names


_RELATIONS: tuple[Callable[[Random], Fact], ...] = (_building, _opening, _birth, _trade)
_CASES: dict[PlantedKind, Callable[[Random, int], _Case]] = {
    "single": _single,
    "combined": _combined,
    "contradicting": _contradicting,
}
