"""The functions with which a study of trust randomises and attacks, in one place so that tests can replace them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from raison.core.inputs.parts import Given
from raison.core.model import LanguageModel
from raison.explaining.settings import Settings
from raison.trust.records import Attacked, BlockSimilarity, Substituted

Operation = Literal["randomisation", "embedding", "substitution"]


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """The request: texts explained for a model, with methods as the records call them.

    `only`: the numbers of the texts that are worked on; None for all.
    """

    model: LanguageModel
    texts: Sequence[Given]
    methods: tuple[str, ...]
    settings: Settings
    only: range | None = None


@dataclass(frozen=True, slots=True)
class TrustOperations:
    """The operations. `settings` are the frozen dataclasses that a file's tables are read into.

    `similarities`, `attacked` and `substituted` yield the records of finished parts of the work and skip what is
    `done`; `attacked` refuses at once what it cannot do, and also makes its control of random changes. `unable` gives,
    for each operation, the methods that it leaves out and why. `boundary` gives the texts that cannot be attacked,
    `blocks` the number of a model's blocks.
    """

    settings: Mapping[Operation, type[Any]]
    similarities: Callable[[TrustRequest, Any, Collection[Any]], Iterator[list[BlockSimilarity]]]
    attacked: Callable[[TrustRequest, Sequence[Any], Collection[Any]], Iterator[list[Attacked]]]
    substituted: Callable[[TrustRequest, Any, Collection[Any]], Iterator[list[Substituted]]]
    unable: Mapping[Operation, Callable[[TrustRequest], dict[str, str]]]
    boundary: Callable[[TrustRequest], list[int]]
    blocks: Callable[[LanguageModel], int]
