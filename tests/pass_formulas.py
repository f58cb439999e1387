"""Evaluates what a method's `passes` says, so that the table of methods is checked against what the ledger counted.

    "0"
    "at most the sum of its members'"
    "at most" NAME "times those of the method"
    "at most" SUM "forward, a backward pass counting as two"
    ["at most"] SUM "forward" ["+" SUM "backward"] [further words] {";" NAME "=" SUM {", or" SUM} "unless given"}

Two things side by side are multiplied, `sum_k` is the sum over k = 1..n of what follows, |layers| how many layers a
method explains, C(n, k) a binomial coefficient. A name is n (units), t (tokens) or a setting of the method.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from raison.core.method import Method
from raison.core.registry import name_of
from raison.core.results.explanation import Explanation

ALLOWED = (
    "give '0', 'SUM forward' or 'SUM forward + SUM backward', after 'at most' if it is a bound, such as "
    "'2n + 1 forward' or 'at most samples forward'; tests/pass_formulas.py describes all that a formula may be"
)
OF_OTHERS = re.compile(r"at most (?:the sum of its members'|\w+ times those of the method)")
COUNTED = ", a backward pass counting as two"
TOKEN = re.compile(r"\d+|[A-Za-z_]+|[-+^(),|/]")


@dataclass(frozen=True)
class Passes:
    """Of one text. `exact` unless the formula says "at most", or has something that only bounds it."""

    forwards: float
    backwards: float
    exact: bool
    by_tokens: bool
    """Whether the number of tokens decides, and not that of units."""
    either: bool = False
    """Whether backward passes are among the forward ones, two for each."""


def passes_of(method: Method, units: int, tokens: int) -> Passes | None:
    """What the formula gives for a text; None if it refers to other methods. Raises ValueError if it cannot be read."""
    if method.passes == "0":
        return Passes(0, 0, True, False)
    if OF_OTHERS.fullmatch(method.passes):
        return None
    formula = re.match(r"(at most )?(.+?) forward\b(?: \+ (.+?) backward\b)?", method.passes)
    if formula is None:
        raise ValueError(f"cannot read the passes of {name_of(type(method))}, {method.passes!r}: {ALLOWED}")
    bound, forwards, backwards = formula.groups()
    names: dict[str, float] = {"n": units, "t": tokens, "layers": len(method.parts)}
    names |= {name: value for name, value in vars(method).items() if type(value) in (int, float)}
    for name, usual in re.findall(r"; (\w+) = (.+?),? unless given", method.passes):
        alternatives = [part for part in usual.split(", or ") if _names(part) <= names.keys()]
        names.setdefault(name, _Sum(alternatives[0], names).value)
    counts = [0.0 if part is None else _Sum(part, names).value for part in (forwards, backwards)]
    exact = bound is None and "E(" not in forwards
    return Passes(counts[0], counts[1], exact, "t" in _names(forwards), method.passes.endswith(COUNTED))


def reached(method: Method, explanation: Explanation, tokens: int) -> float:
    """The share of a bound that one text took; 1 for what is no bound."""
    stated = passes_of(method, len(explanation.units), tokens)
    if stated is None or stated.exact:
        return 1.0
    return (explanation.evaluations + 2 * explanation.gradients) / (stated.forwards + 2 * stated.backwards)


def _names(part: str) -> set[str]:
    return {token for token in TOKEN.findall(part) if token[0].isalpha()} - FUNCTIONS.keys() - {"k", "sum_k"}


FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "C": math.comb,
    # Evaluations of the whole tree: what bounds it is the other side of the minimum.
    "E": lambda _units: math.inf,
}


class _Sum:
    """Reads a sum of products from left to right."""

    def __init__(self, part: str, names: dict[str, float]) -> None:
        self._tokens = TOKEN.findall(part)
        self._names = names
        self._place = 0
        self.value = self._sum()
        assert self._place == len(self._tokens), f"cannot read {part!r} from {self._tokens[self._place :]}"

    @property
    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._next
        assert token, "the formula ends too early"
        assert expected in ("", token), f"expected {expected!r}, found {token!r}"
        self._place += 1
        return token

    def _sum(self) -> float:
        value = self._product()
        while self._next in ("+", "-"):
            value += self._product() if self._take() == "+" else -self._product()
        return value

    def _product(self) -> float:
        value = self._power()
        while self._next and (self._next[0].isalnum() or self._next in ("(", "|")):
            value *= self._power()
        return value

    def _power(self) -> float:
        value = self._factor()
        if self._next == "^":
            self._take()
            value **= self._power()
        return value

    def _factor(self) -> float:
        token = self._take()
        if token.isdigit():
            return int(token)
        if token == "(":
            value = self._sum()
            self._take(")")
            return value
        if token == "|":
            value = self._named(self._take())
            self._take("|")
            return value
        if token == "sum_k":
            return self._over_k()
        return self._call(token) if token in FUNCTIONS else self._named(token)

    def _named(self, token: str) -> float:
        if token not in self._names:
            known = ", ".join([*self._names, *FUNCTIONS, "sum_k"])
            raise ValueError(f"cannot read {token!r} in the passes: they may contain numbers, + - ( ) ^ and {known}")
        return self._names[token]

    def _over_k(self) -> float:
        start, total = self._place, 0.0
        for k in range(1, int(self._names["n"]) + 1):
            self._place = start
            self._names = {**self._names, "k": k}
            total += self._product()
        return total

    def _call(self, name: str) -> float:
        self._take("(")
        arguments = [self._sum()]
        while self._next == ",":
            self._take()
            arguments.append(self._sum())
        self._take(")")
        return FUNCTIONS[name](*arguments)
