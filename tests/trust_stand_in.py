"""Stand-ins for the work of a study of trust: numbers that are made up, and what was asked for."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from raison.core.errors import InputError
from raison.trust.operations import TrustOperations, TrustRequest
from raison.trust.records import Attacked, BlockSimilarity, Substituted
from tests.explained import of_words

EXPLANATION = of_words("a calm sea", (0.0, 1.0, 0.5))


@dataclass(frozen=True, slots=True)
class Randomised:
    """Settings of the stand-in for randomisation."""

    orders: tuple[Literal["cascading", "independent"], ...] = ("cascading", "independent")
    draws: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError("draws is at least 1.")


@dataclass(frozen=True, slots=True)
class Attack:
    """Settings of the stand-in for attacks."""

    objective: Literal["unconstrained", "constrained"] = "constrained"
    epsilon: float = 2.0
    steps: int = 500
    k: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Swaps:
    """Settings of the stand-in for substitution."""

    swaps: int = 3
    tries: int = 24
    seed: int = 0


class Stand:
    """Stand-ins that make up numbers, count what they were asked, and stop when told to."""

    def __init__(self, stop: int | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.stop = stop

    def works(self) -> TrustOperations:
        return TrustOperations(
            settings={"randomisation": Randomised, "embedding": Attack, "substitution": Swaps},
            similarities=self.similarities,
            attacked=self.attacked,
            substituted=self.substituted,
            unable={
                "randomisation": lambda request: {"random": "no parameters"},
                "embedding": lambda request: {name: "no gradient" for name in request.methods if name != "saliency"},
                "substitution": lambda request: {},
            },
            boundary=lambda request: [1],
            blocks=lambda model: 3,
        )

    def _step(self, *what: Any) -> None:
        self.calls.append(what)
        if len(self.calls) == self.stop:
            raise KeyboardInterrupt

    def similarities(
        self, request: TrustRequest, plan: Randomised, done: Collection[Any]
    ) -> Iterator[list[BlockSimilarity]]:
        texts = request.only or range(len(request.texts))
        for method in request.methods:
            for order in plan.orders:
                for blocks in range(1, 4):
                    for draw in range(plan.draws):
                        keys = [(method, order, blocks, draw, text) for text in texts]
                        left = [key for key in keys if key not in done]
                        if left:
                            self._step(method, order, blocks, draw)
                            value = float("nan") if method == "saliency" and blocks == 3 and draw else len(method) / 20
                            yield [BlockSimilarity(*key[:3], 3, *key[3:], value, value, 0.2) for key in left]

    def attacked(
        self, request: TrustRequest, plans: Sequence[Attack], done: Collection[Any]
    ) -> Iterator[list[Attacked]]:
        if any(plan.k is not None and plan.k > 3 for plan in plans):
            raise InputError("k is above a text's units.")
        return self._attacked(request, plans, done)

    def _attacked(
        self, request: TrustRequest, plans: Sequence[Attack], done: Collection[Any]
    ) -> Iterator[list[Attacked]]:
        for plan in plans:
            for method in request.methods:
                keys = [
                    (method, attack, plan.objective, text)
                    for text in (0, 2, 3)[: len(request.texts) - 1]
                    for attack in ("embedding", "noise")
                ]
                left = [key for key in keys if key not in done]
                if left:
                    self._step(method, plan.objective)
                    yield [
                        Attacked(*key, 1, 0.9 if key[1] == "embedding" else 0.1 + key[3] / 100, 0.2, 0.0, 3, True)
                        for key in left
                    ]

    def substituted(self, request: TrustRequest, plan: Swaps, done: Collection[Any]) -> Iterator[list[Substituted]]:
        for method in request.methods:
            texts = [text for text in (0, 2, 3)[: len(request.texts) - 1] if text in (request.only or (text,))]
            keys = [(method, "substitution", "constrained", text) for text in texts]
            left = [key for key in keys if key not in done]
            if left:
                self._step(method, plan.swaps)
                records = [Attacked(*key, 1, 0.5, 0.1, 0.0, 1, True) for key in left]
                yield [Substituted(record, EXPLANATION, EXPLANATION) for record in records]
