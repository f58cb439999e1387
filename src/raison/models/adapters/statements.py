"""The statements of an answer as predictions that methods explain: how likely each is, after which sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.answer_lengths import AnswerLengths
from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import PART, Granularity, Unit
from raison.core.model import LanguageModel
from raison.core.results.generation import OTHER
from raison.core.targets.target import Target
from raison.models.adapters.generator import Generator
from raison.models.tokens.continuation import ContinuationEncoder, Output
from raison.models.tokens.sourced import Sourced


@final
class ForcedAnswer:
    """A fixed answer after a prompt with sources, of which some pieces are removed.

    Each masked prompt is run once, with the whole answer after it, whoever asks for it: all statements and levels of
    units share what was computed. Masked prompts with common beginnings share these (models/passes/packing.py).
    """

    def __init__(self, writer: Generator, source: Sourced, output: Output, removal: str) -> None:
        rows = ContinuationEncoder(source.prompt, output)
        tokens = tuple(dict.fromkeys(output.ids))
        self._reader = writer.reader(rows, tokens)
        self._encoding = self._reader.encode(rows.texts, PART)
        own = torch.tensor([tokens.index(token) for token in output.ids])
        self._target = Target(own, None, "log_odds")
        self._found: dict[bytes, Float[np.ndarray, " tokens"]] = {}
        self.source, self.output, self.removal = source, output, removal
        self.name, self.removals, self.max_tokens = writer.name, self._reader.removals, writer.max_tokens

    @property
    def encoding(self) -> Encoding:
        """One row for each token of the answer; the units are the prompt's pieces."""
        return self._encoding

    @property
    def passes(self) -> int:
        """Masked prompts that were run."""
        return len(self._found)

    def log_odds(self, keeps: Bool[np.ndarray, "masks pieces"]) -> Float[np.ndarray, "masks tokens"]:
        """log p / (1 - p) of each token of the answer after those before it, under each keep of the pieces."""
        keys = [row.tobytes() for row in keeps]
        missing = {key: number for number, key in enumerate(keys) if key not in self._found}
        if missing:
            asked = torch.from_numpy(keeps[list(missing.values())])
            logits = self._reader.masked_logits(self._encoding, [asked] * len(self._encoding), self.removal)
            rows = [self._target.row(token, len(asked)).scalar(found.double()) for token, found in enumerate(logits)]
            self._found.update(zip(missing, torch.stack(rows, 1).numpy(), strict=True))
        return np.stack([self._found[key] for key in keys])

    def log_probabilities(
        self, keeps: Bool[np.ndarray, "masks pieces"], statements: Sequence[Sequence[int]]
    ) -> Float[np.ndarray, "masks statements"]:
        """The log-probability of each statement, given by the numbers of its tokens, under each keep of the pieces."""
        odds = torch.from_numpy(self.log_odds(keeps))
        return torch.stack([_joint(odds[:, list(tokens)]) for tokens in statements], 1).numpy()


@dataclass(frozen=True, slots=True)
class Level:
    """What is kept or removed as one: units, and the unit of each piece, -1 for pieces that go with their source."""

    units: tuple[Unit, ...]
    of_piece: tuple[int, ...]

    @classmethod
    def sources(cls, source: Sourced) -> "Level":
        """Whole sources, each with its label."""
        return cls(source.sources, source.of_source)

    @classmethod
    def sentences(cls, source: Sourced) -> "Level":
        """Sentences of the sources, each named by its source. A label goes when all of its sentences are gone."""
        return cls(source.sentences, source.of_sentence)


@final
class StatementLengths(AnswerLengths):
    """The tokens of each statement; a row's own length tells which statement it is."""

    def __init__(self, tokens: Mapping[int, Sequence[int]]) -> None:
        self._tokens = tokens

    def answer_lengths(self, encoding: Encoding) -> tuple[int, ...]:
        return tuple(len(self._tokens[length]) for length in encoding.lengths)


@final
class Statements(LanguageModel):
    """The statements of an answer, one row each, with two classes: the statement as it stands, and anything else.

    The probability of a statement is the product of its tokens' probabilities, each after the prompt and all of the
    answer before it. All rows have the prompt for a text, so that random draws are the same for all statements; a row's
    tokens are the prompt and the answer up to the statement's end, which tells the rows apart.
    """

    classes = ("statement", OTHER)
    multi_label = False

    def __init__(self, answer: ForcedAnswer, statements: Sequence[Sequence[int]], level: Level) -> None:
        """`statements` are the numbers of each one's tokens, ascending."""
        self._answer = answer
        self._level = level
        first = len(answer.source.prompt.ids)
        self._tokens = {first + tokens[-1] + 1: list(tokens) for tokens in statements}
        if len(self._tokens) < len(statements):
            raise InputError("two statements end in the same token of the answer: give spans that do not overlap.")
        self._homes = answer.source.of_source
        self.capabilities = (StatementLengths(self._tokens),)
        self.name, self.removals, self.max_tokens = answer.name, (answer.removal,), answer.max_tokens

    @property
    def texts(self) -> tuple[str, ...]:
        """The rows' texts."""
        return (self._answer.source.prompt.text,) * len(self._tokens)

    def encode(self, texts: Sequence[Given], unit: Granularity = PART, truncate: bool = False) -> Encoding:
        if list(texts) != list(self.texts) or unit != PART:
            raise InputError("this model is prepared for one prompt, its sources and its answer.")
        prompt, output = self._answer.source.prompt, self._answer.output
        lengths = torch.tensor(list(self._tokens))
        width = int(lengths.max())
        own = torch.arange(width) < lengths[:, None]
        ids = torch.tensor([*prompt.ids, *output.ids][:width])
        spans = torch.tensor([*prompt.offsets, *output.spans][:width]).reshape(width, 2)
        units = torch.full((width,), -1)
        pieces = self._answer.encoding.unit_ids[0, : len(prompt.ids)]
        # The appended entry is for tokens outside of all pieces (-1).
        units[: len(prompt.ids)] = torch.tensor([*self._level.of_piece, -1])[pieces]
        return Encoding(
            texts=self.texts,
            unit=PART,
            units=(self._level.units,) * len(self._tokens),
            input_ids=torch.where(own, ids, 0),
            attention_mask=own,
            type_ids=torch.zeros(len(own), width, dtype=torch.long),
            offsets=torch.where(own[..., None], spans, 0),
            unit_ids=torch.where(own, units, -1),
            truncated=(0,) * len(own),
        )

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        if removal != self._answer.removal:
            raise InputError(f"this model is prepared for removal='{self._answer.removal}'.")
        wanted = np.concatenate([self._pieces(rows.numpy()) for rows in keeps])
        odds = self._answer.log_odds(wanted)
        parts = np.split(odds, np.cumsum([len(rows) for rows in keeps])[:-1])
        return [
            _logits(torch.from_numpy(part[:, self._tokens[length]]))
            for part, length in zip(parts, encoding.lengths, strict=True)
        ]

    def _pieces(self, keeps: Bool[np.ndarray, "masks units"]) -> Bool[np.ndarray, "masks pieces"]:
        """Keeps of the pieces: a piece without a unit stays as long as any other piece of its source."""
        owners, homes = np.array(self._level.of_piece), np.array(self._homes)
        kept = keeps[:, owners]
        for source in set(homes[owners < 0].tolist()):
            inside = homes == source
            kept[:, inside & (owners < 0)] = kept[:, inside & (owners >= 0)].any(1, keepdims=True)
        return kept


def _logits(odds: Float[Tensor, "masks tokens"]) -> Float[Tensor, "masks 2"]:
    """Logits whose softmax is the probability of all tokens and that of anything else."""
    joint = _joint(odds)
    # log(1 - p), exact for small and for large p.
    rest = torch.where(joint > -0.7, (-torch.expm1(joint)).log(), torch.log1p(-joint.exp()))
    return torch.stack([joint, rest], 1)


def _joint(odds: Float[Tensor, "masks tokens"]) -> Float[Tensor, " masks"]:
    return torch.nn.functional.logsigmoid(odds).sum(1)
