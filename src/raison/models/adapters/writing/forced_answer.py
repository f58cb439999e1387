"""A fixed answer after a prompt with some units removed, from which statements' probabilities are read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.asked_again import AskedAgain, Price
from raison.core.capabilities.token_predictions import TokenRows
from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import PART, Granularity, Unit
from raison.core.targets.target import Target
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import ContinuationEncoder
from raison.models.tokens.written_answer import WrittenAnswer


@final
class ForcedAnswer:
    """A fixed answer after a prompt with some units removed.

    Each masked prompt is run once, with the whole answer after it: all statements and levels of units share the
    results. Masked prompts with common beginnings share these (passes/prefixes/packing.py).
    """

    def __init__(self, writer: Writer, answered: WrittenAnswer, unit: Granularity = PART) -> None:
        """`unit` names the smallest units that can be removed; in a prompt with sources, its parts."""
        prompt, output = answered.source.prompt, answered.output
        rows = ContinuationEncoder(prompt, output)
        tokens = tuple(dict.fromkeys(output.ids))
        self._reader = writer.reader(rows, tokens)
        self._encoding = self._reader.encode(rows.texts, unit)
        targets = torch.tensor([tokens.index(token) for token in output.ids])
        self._target = Target(targets, None, "log_odds")
        self._found: dict[tuple[str, bytes], Float[np.ndarray, " tokens"]] = {}
        self.answered = answered

    def rows(self, tokens: Sequence[range], level: "Level") -> TokenRows:
        """The tokens of some statements as separate predictions, with the units of a level."""
        numbers = [token for statement_tokens in tokens for token in statement_tokens]
        owners = [statement for statement, statement_tokens in enumerate(tokens) for _ in statement_tokens]
        rows = self._encoding.select(numbers)
        # The appended entry is for tokens outside of all units (-1).
        units = torch.tensor([*level.of_piece, -1])[rows.unit_ids]
        named = replace(rows, units=(level.units,) * len(numbers), unit_ids=units)
        target = replace(self._target.rows(torch.tensor(numbers)), of="log_probability")
        return TokenRows(self._reader, named, target, tuple(owners))

    @property
    def encoding(self) -> Encoding:
        """One row for each token of the answer; the units are the prompt's."""
        return self._encoding

    @property
    def passes(self) -> int:
        """Masked prompts that were run."""
        return len(self._found)

    def log_odds(self, keeps: Bool[np.ndarray, "masks pieces"], removal: str) -> Float[np.ndarray, "masks tokens"]:
        """log p / (1 - p) of each token of the answer after those before it, under each keep of the units."""
        keys = [("" if row.all() else removal, row.tobytes()) for row in keeps]
        missing = {key: number for number, key in enumerate(keys) if key not in self._found}
        if missing:
            new_keeps = torch.from_numpy(keeps[list(missing.values())])
            logits = self._reader.masked_logits(self._encoding, [new_keeps] * len(self._encoding), removal)
            rows = [
                self._target.row(token, len(new_keeps)).scalar(token_logits.double())
                for token, token_logits in enumerate(logits)
            ]
            self._found.update(zip(missing, torch.stack(rows, 1).numpy(), strict=True))
        return np.stack([self._found[key] for key in keys])

    def prices(self) -> list[Price]:
        """The price of a masked prompt on a server."""
        return self._reader.ask(AskedAgain).prices(self._encoding)[:1]

    def again(self, keeps: Bool[np.ndarray, "masks pieces"], removal: str) -> Float[np.ndarray, "masks tokens"]:
        """The same as `log_odds`, requested again from a server."""
        repeated = torch.from_numpy(keeps)
        server = self._reader.ask(AskedAgain)
        logits = server.again(self._encoding, [repeated] * len(self._encoding), removal)
        rows = [
            self._target.row(token, len(repeated)).scalar(token_logits.double())
            for token, token_logits in enumerate(logits)
        ]
        return torch.stack(rows, 1).numpy()

    def log_probabilities(
        self, keeps: Bool[np.ndarray, "masks pieces"], statements: Sequence[range], removal: str
    ) -> Float[np.ndarray, "masks statements"]:
        """The log-probability of each statement, given by the numbers of its tokens, under each keep of the units."""
        odds = torch.from_numpy(self.log_odds(keeps, removal))
        return torch.stack([joint(odds[:, list(tokens)]) for tokens in statements], 1).numpy()


TokenLogOdds = Callable[[ForcedAnswer, Bool[np.ndarray, "masks pieces"], str], Float[np.ndarray, "masks tokens"]]
"""How the log-odds of an answer's tokens are computed under keeps, with a removal."""


@dataclass(frozen=True, slots=True)
class Level:
    """What is kept or removed together: units, and the unit of each piece, -1 for pieces that follow their source."""

    units: tuple[Unit, ...]
    of_piece: tuple[int, ...]
    homes: tuple[int, ...] = ()
    """The source of each piece."""

    @classmethod
    def of(cls, answered: WrittenAnswer, unit: Granularity) -> "Level":
        """Whole sources, each with its label ("part"), or their sentences; for a prompt without sources, its units.

        A label is removed when all sentences of its source are removed. Raises InputError for other units of sources.
        """
        source = answered.source
        if not source.sources:
            units, _ = source.prompt.units(unit)
            return cls(units, tuple(range(len(units))))
        if unit not in (PART, "sentence"):
            raise InputError(f"sources are removed whole (unit='{PART}') or by sentences (unit='sentence').")
        whole = (source.sources, source.of_source)
        return cls(*(whole if unit == PART else (source.sentences, source.of_sentence)), source.of_source)

    def pieces(self, keeps: Bool[np.ndarray, "masks units"]) -> Bool[np.ndarray, "masks pieces"]:
        """Keeps of the pieces: a piece without a unit stays as long as any other piece of its source."""
        owners, homes = np.array(self.of_piece), np.array(self.homes)
        kept = keeps[:, owners]
        for source in set(homes[owners < 0].tolist()) if self.homes else ():
            inside = homes == source
            kept[:, inside & (owners < 0)] = kept[:, inside & (owners >= 0)].any(1, keepdims=True)
        return kept


def joint(odds: Float[Tensor, "masks tokens"]) -> Float[Tensor, " masks"]:
    """The log-probability of all tokens together."""
    return torch.nn.functional.logsigmoid(odds).sum(1)
