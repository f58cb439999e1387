"""An answer that a language model wrote after a prompt, and the tokens of each of its statements."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.models.tokens.continuation import Output
from raison.models.tokens.sourced import Sourced
from raison.text.segment import CharacterSpan


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """A prompt and the answer after it. `statements` are characters of the answer's text, in order. Of an output that
    is explained `whole`, white space after the text belongs to the only one.

    Raises InputError for a blank answer, and for a span outside it.
    """

    source: Sourced
    output: Output
    statements: tuple[CharacterSpan, ...]
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.text:
            raise InputError("the model's answer is blank: give the answer to explain (answer=).")
        if not self.statements:
            raise InputError("there is no statement: give at least one span, or leave statements out.")
        self.check(self.statements)

    @property
    def text(self) -> str:
        """The answer without the white space around it."""
        return self.output.text.strip()

    @property
    def texts(self) -> tuple[str, str]:
        """The prompt and the answer, which identify this."""
        return self.source.prompt.text, self.text

    def check(self, spans: Sequence[CharacterSpan]) -> None:
        """Raise InputError unless these are statements of the answer, one after the other."""
        after = 0
        for start, end in spans:
            if not after <= start < end <= len(self.text) or not self.text[start:end].strip():
                raise InputError(
                    f"the statement ({start}, {end}) is outside the answer's {len(self.text)} characters, is blank, "
                    "or begins before the end of the one before: give spans in the order of the answer."
                )
            after = end

    def tokens(self, spans: Sequence[CharacterSpan]) -> list[range]:
        """The numbers of each statement's tokens: a token belongs to the statement with its first character that is not
        white space.

        White space alone goes with the token after it. Raises InputError for a statement without a token.
        """
        lead = len(self.output.text) - len(self.output.text.lstrip())
        shift = len(self.source.prompt.text) + lead
        owners: list[int | None] = []
        for start, end in self.output.spans:
            inside = [place - shift for place in range(start, end) if self.text[max(0, place - shift) :][:1].strip()]
            first = next((place for place in inside if 0 <= place < len(self.text)), None)
            owners.append(None if first is None else _span_of(first, spans))
        following = 0 if self.whole else -1
        for number in reversed(range(len(owners))):
            following = owners[number] = following if owners[number] is None else owners[number]  # type: ignore[assignment]
        return [self._tokens(owners, number, span) for number, span in enumerate(spans)]

    def _tokens(self, owners: Sequence[int | None], number: int, span: CharacterSpan) -> range:
        if number not in owners:
            raise InputError(
                f"the statement {self.text[slice(*span)]!r:.40} has no token of its own: give a longer span."
            )
        first = owners.index(number)
        return range(first, first + owners.count(number))


def _span_of(place: int, spans: Sequence[CharacterSpan]) -> int:
    return next((number for number, (start, end) in enumerate(spans) if start <= place < end), -1)
