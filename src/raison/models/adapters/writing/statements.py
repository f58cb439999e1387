"""The statements of answers as predictions that methods explain: the probability of each after its prompt."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.answer_lengths import AnswerLengths
from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.other_wordings import OtherWordings, Worded
from raison.core.capabilities.token_predictions import TokenPredictions, TokenRows
from raison.core.capability import Capability
from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import PART, Granularity, Text, Unit
from raison.core.model import LanguageModel
from raison.core.results.generation import OTHER
from raison.core.targets.choices import TargetSpec, for_each_text
from raison.core.targets.choosing import Choosing, PlaceTarget, Settled
from raison.core.targets.outputs import Outputs
from raison.core.targets.place import Place
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.edited_answer import edited_answer
from raison.models.adapters.writing.forced_answer import ForcedAnswer, Level, TokenLogOdds, joint
from raison.models.adapters.writing.statement_attention import StatementAttention
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import ContinuationEncoder
from raison.models.tokens.written_answer import WrittenAnswer
from raison.numerics.measures.log_probabilities import log_complement
from raison.text.segment import CharacterSpan

STATEMENT: Final = "statement"
"""The class of a statement as written."""
KEPT: Final = 32
"""Number of answers whose results are cached: as many as are explained together."""


@final
class StatementLengths(AnswerLengths):
    """The tokens of each statement, which its encoding has."""

    def answer_lengths(self, encoding: Encoding) -> tuple[int, ...]:
        return tuple(last - first + 1 for first, last in _spans(encoding))


@final
class StatementTokens(TokenPredictions):
    """The tokens of each statement after the prompt and all of the answer before them."""

    def __init__(self, statements: "Statements") -> None:
        self._statements = statements

    @property
    def reader(self) -> LanguageModel:
        return self._statements.reader

    def token_rows(self, encoding: Encoding) -> list[TokenRows]:
        spans, token_rows = _spans(encoding), []
        for text in dict.fromkeys(encoding.texts):
            rows = [row for row, row_text in enumerate(encoding.texts) if row_text == text]
            level = Level.of(self._statements.answers[text], encoding.unit)
            tokens = [range(spans[row][0], spans[row][1] + 1) for row in rows]
            of_text = self._statements.forced(text, encoding.unit).rows(tokens, level)
            token_rows.append(replace(of_text, owners=tuple(rows[owner] for owner in of_text.owners)))
        return token_rows


@final
class EditedPrompts(OtherWordings):
    """The same answers after prompts whose sources were edited."""

    def __init__(self, statements: "Statements") -> None:
        self._statements = statements

    def worded(self, edits: Sequence[tuple[Text, str]]) -> Worded:
        statements = self._statements
        edited = [edited_answer(statements.writer, statements.answers[text], name) for text, name in edits]
        known = [answered for answered in edited if answered is not None]
        return Worded(
            Statements(statements.writer, known) if known else statements,
            tuple(None if one is None else one.texts for one in edited),
        )


@final
class ChosenStatements(Choosing):
    """The statements of answers as targets: the whole answer, or a part of it."""

    targets = ("the whole answer", "a part of it", "(start, end) in its characters")

    def __init__(self, answers: Mapping[Text, WrittenAnswer]) -> None:
        self._answers = answers

    def read(self, encoding: Encoding) -> Encoding:
        return self.settled(encoding, None).encoding

    def settled(self, encoding: Encoding, spec: TargetSpec) -> Settled:
        specs = for_each_text(spec, len(encoding))
        answers = [self._answers[text] for text in encoding.texts]
        spans = [_span(answered, one) for answered, one in zip(answers, specs, strict=True)]
        tokens = [answered.tokens([span])[0] for answered, span in zip(answers, spans, strict=True)]
        return Settled(
            replace(
                encoding,
                spans=torch.tensor([(statement_tokens[0], statement_tokens[-1]) for statement_tokens in tokens]),
            ),
            [0] * len(encoding),
            None,
            tuple(
                Place(STATEMENT, start, end, answered.text[start:end], STATEMENT, 1)
                for answered, (start, end) in zip(answers, spans, strict=True)
            ),
            ((STATEMENT, OTHER),) * len(encoding),
        )

    def each(self, encoding: Encoding, threshold: float) -> list[list[PlaceTarget]]:
        if threshold:
            raise InputError(
                "threshold= applies to labels and entities only, and every statement is explained: leave it out."
            )
        return [[(*span, STATEMENT) for span in self._answers[text].statements] for text in encoding.texts]


@final
class Statements(LanguageModel):
    """Statements of answers, with two classes: the statement as it stands, and anything else.

    A text is a prompt with an answer. The probability of a statement is the product of its tokens' probabilities, each
    after the prompt and all of the answer before it. All statements of an answer have the same text, so that random
    draws are the same for them, and one pass gives them all.
    """

    classes = (STATEMENT, OTHER)
    multi_label = False
    strings = 2

    def __init__(self, writer: Writer, answers: Sequence[WrittenAnswer]) -> None:
        """`reader` predicts one token of the first answer, and serves to read all of them.

        Raises InputError for answers that only their sources or their tokens distinguish: a text names one answer.
        """
        self.writer = writer
        self.answers: dict[Text, WrittenAnswer] = {}
        for answered in answers:
            known = self.answers.setdefault(answered.texts, answered)
            if (known.source, known.output) != (answered.source, answered.output):
                raise InputError(
                    f"two answers to {answered.texts[0]!r:.60} have the same text, but other sources or tokens: "
                    "explain or evaluate them in separate calls."
                )
        self._forced: OrderedDict[tuple[Text, Granularity], ForcedAnswer] = OrderedDict()
        self.choosing: ChosenStatements = ChosenStatements(self.answers)
        self.capabilities: tuple[Capability, ...] = (
            StatementLengths(),
            StatementTokens(self),
            EditedPrompts(self),
        )
        self.name, self.max_tokens = writer.name, writer.max_tokens
        first = answers[0]
        self._rows = ContinuationEncoder(first.source.prompt, first.output)
        self.reader = writer.reader(self._rows, first.output.ids[:1])
        self.removals, self.unknown_id = self.reader.removals, self.reader.unknown_id
        if self.reader.offers(AskedAgain):
            self.capabilities = (*self.capabilities, _RepeatedStatements(self))
        if isinstance(self.reader, Classifier) and self.reader.offers(ReadableAttention):
            self.capabilities = (*self.capabilities, StatementAttention(self.reader, self.answers))

    @property
    def outputs(self) -> Outputs:
        return "statement"

    @property
    def probe(self) -> Encoding:
        """The first answer's prompt as `reader` reads it."""
        return self.reader.encode(self._rows.texts, "token").select([0])

    def fresh(self) -> "Statements":
        """The same without what was computed."""
        return Statements(self.writer, [*self.answers.values()])

    def forced(self, text: Text, unit: Granularity) -> ForcedAnswer:
        """The answer of a text after its prompt, with its cached results."""
        answered = self.answers[text]
        key = text, PART if answered.source.sources else unit
        if key not in self._forced:
            self._forced[key] = ForcedAnswer(self.writer, answered, key[1])
            if len(self._forced) > KEPT:
                self._forced.popitem(last=False)
        self._forced.move_to_end(key)
        return self._forced[key]

    def encode(self, texts: Sequence[Given], unit: Granularity = PART, truncate: bool = False) -> Encoding:
        if truncate:
            raise InputError("truncate= applies to classified texts only: shorten the prompt yourself.")
        rows = [self._row(plain(text), unit) for text in texts]
        width = max(len(row.ids) for row in rows)

        def padded(values: Sequence[Sequence[object]], fill: object) -> Tensor:
            return torch.tensor([[*row, *[fill] * (width - len(row))] for row in values])

        return Encoding(
            texts=tuple(row.text for row in rows),
            unit=unit,
            units=tuple(row.units for row in rows),
            input_ids=padded([row.ids for row in rows], 0),
            attention_mask=padded([(True,) * len(row.ids) for row in rows], False),
            type_ids=torch.zeros(len(rows), width, dtype=torch.long),
            offsets=padded([row.offsets for row in rows], (0, 0)),
            unit_ids=padded([row.owners for row in rows], -1),
            truncated=(0,) * len(rows),
        )

    def check_removal(self, removal: str) -> None:
        self.reader.check_removal(removal)

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        return self.read(encoding, keeps, removal, ForcedAnswer.log_odds)

    def read(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str, reading: TokenLogOdds
    ) -> list[Float[Tensor, "_masks classes"]]:
        """The same, with the log-odds of tokens read in a given way."""
        read = encoding if encoding.spans is not None else self.choosing.read(encoding)
        spans = _spans(read)
        logits: dict[int, Float[Tensor, "masks classes"]] = {}
        for text in dict.fromkeys(encoding.texts):
            level = Level.of(self.answers[text], encoding.unit)
            rows = [row for row, row_text in enumerate(encoding.texts) if row_text == text]
            wanted = level.pieces(np.concatenate([keeps[row].numpy() for row in rows]))
            odds = reading(self.forced(text, encoding.unit), wanted, removal) if len(wanted) else wanted
            parts = np.split(odds, np.cumsum([len(keeps[row]) for row in rows])[:-1])
            for row, part in zip(rows, parts, strict=True):
                first, last = spans[row]
                logits[row] = _logits(torch.from_numpy(part[:, first : last + 1])) if len(part) else torch.zeros(0, 2)
        return [logits[row] for row in range(len(encoding))]

    def _row(self, text: Text, unit: Granularity) -> "_StatementRow":
        if text not in self.answers:
            raise InputError(f"this model was not prepared for the answer to {text[0]!r:.60}.")
        answered = self.answers[text]
        prompt, output = answered.source.prompt, answered.output
        pieces = prompt.units(PART if answered.source.sources else unit)[1]
        level = Level.of(answered, unit)
        owners = [-1 if piece < 0 else level.of_piece[piece] for piece in pieces]
        return _StatementRow(
            answered.texts,
            level.units,
            (*prompt.ids, *output.ids),
            (*prompt.offsets, *output.spans),
            (*owners, *[-1] * len(output.ids)),
        )


@final
class _RepeatedStatements(AskedAgain):
    """Statements of a model behind a server."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    @property
    def description(self) -> str:
        return self._statements.reader.ask(AskedAgain).description

    @property
    def identity(self) -> list[str]:
        return self._statements.reader.ask(AskedAgain).identity

    def prices(self, encoding: Encoding) -> list[Price]:
        forced = [self._statements.forced(text, encoding.unit) for text in encoding.texts]
        return [price for one in forced for price in one.prices()]

    def again(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        return self._statements.read(encoding, keeps, removal, ForcedAnswer.again)

    def bounds(self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str) -> list[float]:
        # Every token of a given answer is scored.
        return [0.0] * len(encoding)


@dataclass(frozen=True, slots=True)
class _StatementRow:
    """A text's tokens: the prompt's and the answer's."""

    text: tuple[str, str]
    units: tuple[Unit, ...]
    ids: tuple[int, ...]
    offsets: tuple[CharacterSpan, ...]
    owners: tuple[int, ...]


def _span(answered: WrittenAnswer, spec: object) -> CharacterSpan:
    """The characters of the answer that a target names. Raises InputError."""
    if spec is None or spec == STATEMENT:
        return 0, len(answered.text)
    if isinstance(spec, str):
        start = answered.text.find(spec) if spec.strip() else -1
        if start < 0:
            raise InputError(f"target {spec!r:.60} is not part of the answer {answered.text!r:.60}.")
        return start, start + len(spec)
    if not (isinstance(spec, tuple) and len(spec) in (2, 3) and all(type(place) is int for place in spec[:2])):
        raise InputError(f"target {spec!r:.60} is not a statement: give (start, end) in the answer's characters.")
    if len(spec) == 3 and spec[2] != STATEMENT:
        raise InputError(f"target {spec!r:.60} is a class, and statements have none: give (start, end).")
    answered.check([(spec[0], spec[1])])
    return spec[0], spec[1]


def _spans(encoding: Encoding) -> list[tuple[int, int]]:
    assert encoding.spans is not None, "a statement is chosen before it is read"
    return [(first, last) for first, last in encoding.spans.tolist()]


def _logits(odds: Float[Tensor, "masks tokens"]) -> Float[Tensor, "masks 2"]:
    """Logits whose softmax is the probability of all tokens and that of anything else."""
    whole = joint(odds)
    return torch.stack([whole, log_complement(whole)], 1)
