"""The settings and limits of requests to a server, and the count of what was spent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated

from raison.core.errors import InputError, RaisonError
from raison.core.settings.fields import Setting, mistakes_in, refuse
from raison.models.served.tally import RequestCount, Tally

MILLION = 1_000_000
_FIRST_RATE = 0.5
"""Assumed tokens per character until a server has reported the tokens of a prompt."""

Whole = Annotated[int | None, Setting(least=1)]


class SpentError(RaisonError):
    """A request would go beyond what the caller allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The settings and limits of requests to a server.

    - `model`: its name on the server; None: the first that the server lists.
    - `max_requests`, `max_tokens`, `max_cost`: limits, which count repeated attempts (docs/served.md).
    - `price_in`, `price_out`: prices of a million tokens read and generated, in the currency of `max_cost`.
    - `timeout`: seconds until a response begins, and until it is complete, after which a request is repeated;
      `attempts`: the maximum number of times that it is sent.
    - `samples`: the number of answers sampled for each prompt, for a server that returns only text.
    - `remember`: store responses on disk, so that no request is sent twice (docs/served.md).
    """

    model: str | None = None
    max_requests: Whole = None
    max_tokens: Whole = None
    max_cost: Annotated[float | None, Setting(above=0)] = None
    price_in: Annotated[float, Setting(least=0)] = 0.0
    price_out: Annotated[float, Setting(least=0)] = 0.0
    timeout: Annotated[float, Setting(above=0)] = 120.0
    attempts: Annotated[int, Setting(least=1, most=20)] = 6
    samples: Annotated[int, Setting(least=2, most=1000)] = 20
    remember: bool = True

    def __post_init__(self) -> None:
        mistakes = mistakes_in(type(self), {name: getattr(self, name) for name in self.__slots__})
        if self.max_cost is not None and not (self.price_in or self.price_out):
            mistakes = [*mistakes, InputError("max_cost needs the prices of a million tokens: price_in, price_out.")]
        refuse(mistakes)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return (self.max_requests, self.max_tokens, self.max_cost) != (None, None, None)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """How many tokens a request takes: what the server reads and what it writes."""

    read: int
    written: int


@dataclass(slots=True)
class Meter:
    """What was spent, under the caller's limits. A request is counted in advance and corrected by its answer.

    `tally` counts what all processes of a run spend together, to which the limits apply.
    """

    limits: Served
    tally: Tally | None = field(default=None, repr=False)
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    rate: float = _FIRST_RATE
    """The largest number of tokens per character of a prompt so far."""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _known: bool = False

    @property
    def cost(self) -> float:
        """The cost in the currency of the prices."""
        return self._price(self.tokens_in, self.tokens_out)

    def reserve(self, characters: int, new_tokens: int) -> TokenUsage:
        """Count the expected tokens of a request with a prompt of `characters` characters. Raises SpentError."""
        with self._lock, self._of_all() as spent:
            expected = self.expected(characters)
            self._check(spent, RequestCount(1, expected, new_tokens))
            self._add(spent, RequestCount(1, expected, new_tokens))
            return TokenUsage(expected, new_tokens)

    def settle(self, reserved: TokenUsage, used: TokenUsage, characters: int) -> None:
        """Replace the tokens reserved for a request by those that the server counted; `characters` are its prompt's."""
        with self._lock, self._of_all() as spent:
            self._add(spent, RequestCount(0, used.read - reserved.read, used.written - reserved.written))
            if characters:
                rate = used.read / characters
                self.rate = max(self.rate, rate) if self._known else rate
                self._known = True

    def foresee(self, characters: Sequence[int], written: int) -> None:
        """Raises SpentError, before anything is sent, if these prompts and `written` new tokens would exceed a
        limit."""
        with self._lock, self._of_all() as spent:
            self._check(spent, RequestCount(len(characters), sum(map(self.expected, characters)), written))

    def expected(self, characters: int) -> int:
        """The approximate number of tokens of a prompt of `characters` characters."""
        return max(1, round(self.rate * characters))

    def price(self, characters: int, requests: int, new_tokens: int) -> tuple[int, float]:
        """Tokens and cost of `requests` requests, each with a prompt of `characters` characters and `new_tokens` new
        tokens."""
        read, written = requests * self.expected(characters), requests * new_tokens
        return read + written, self._price(read, written)

    @contextmanager
    def _of_all(self) -> Iterator[RequestCount]:
        """What all processes of the run have spent."""
        if self.tally is None:
            yield RequestCount(self.requests, self.tokens_in, self.tokens_out)
            return
        with self.tally.held() as spent:
            yield spent

    def _add(self, spent: RequestCount, more: RequestCount) -> None:
        spent.add(more)
        self.requests += more.requests
        self.tokens_in += more.tokens_in
        self.tokens_out += more.tokens_out

    def _price(self, read: int, written: int) -> float:
        return (read * self.limits.price_in + written * self.limits.price_out) / MILLION

    def _check(self, spent: RequestCount, more: RequestCount) -> None:
        limits = self.limits
        read, written = spent.tokens_in + more.tokens_in, spent.tokens_out + more.tokens_out
        exceeded = [
            f"{name} is {most:,}, and {wanted:,.6g} would be reached"
            for name, most, wanted in (
                ("max_requests", limits.max_requests, spent.requests + more.requests),
                ("max_tokens", limits.max_tokens, read + written),
                ("max_cost", limits.max_cost, self._price(read, written)),
            )
            if most is not None and wanted > most
        ]
        if exceeded:
            kept = "Answers so far are kept and cost nothing when reused."
            if not limits.remember:
                kept = "Answers so far are not kept, because of remember=False."
            raise SpentError(
                f"{more.requests:,} more request{'' if more.requests == 1 else 's'} of about "
                f"{more.tokens_in + more.tokens_out:,} tokens {'is' if more.requests == 1 else 'were'} not sent: "
                f"{'; '.join(exceeded)}. Raise the limit, explain fewer or shorter texts, or use a method with fewer "
                f"evaluations. {kept}"
            )
