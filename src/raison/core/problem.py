"""The input of a method: a model, a batch of texts, a target and a removal."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.embeddings import Path, WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.step_logits import StepLogits
from raison.core.dims import Embeddings
from raison.core.draws import generator_for
from raison.core.errors import AnswerError, NonFiniteError, first_line
from raison.core.inputs.encoding import Encoding
from raison.core.internals.attention import AttentionPath, AttentionSite, AttentionSlopes
from raison.core.model import LanguageModel
from raison.core.returned_logits import checked_logits
from raison.core.settings.settled import as_json
from raison.core.targets.target import Of, Target


@dataclass(frozen=True, slots=True)
class StandIn:
    """The method that ran in place of the requested one, as an explanation names it."""

    method: str
    config: dict[str, Any]
    signed: bool


@dataclass(slots=True)
class Ledger:
    """The passes that one method made, per text, and its notes."""

    evaluations: list[int]
    """Forward passes of single sequences; a keep requested twice counts once."""
    gradients: list[int]
    """Backward passes of single sequences."""
    notes: list[dict[str, object]]
    stand_ins: dict[int, StandIn] = field(default_factory=dict)
    """The method that ran for each text, if a method delegates to others."""

    @classmethod
    def empty(cls, batch: int) -> "Ledger":
        return cls([0] * batch, [0] * batch, [{} for _ in range(batch)])


class KeepKey(NamedTuple):
    """Names a keep of one text of a batch. A keep that removes nothing is the same under every removal."""

    text: int
    removal: str
    bits: bytes

    @classmethod
    def of(cls, text: int, removal: str, bits: bytes) -> "KeepKey":
        return cls(text, "" if 0 not in bits else removal, bits)


@dataclass(slots=True)
class Evaluations:
    """Logits already computed for a batch of texts, shared by all methods and metrics that see the same batch.

    `logits` are in the model's own precision, `reduced` in the lower one that a problem asks for.
    """

    logits: dict[KeepKey, Tensor] = field(default_factory=dict)
    reduced: dict[KeepKey, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attributed:
    """The result of a method for a problem when it was run alone."""

    scores: Tensor
    """(batch, scored), as the method returned them."""
    ledger: Ledger
    counted: frozenset[KeepKey]
    """The keeps whose evaluations are counted in the ledger."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Explain `target` of `model` on the texts of `encoding`, where an absent unit is removed by `removal`.

    One problem per method run: its ledger counts what that method requested. The evaluations may be shared.
    """

    model: LanguageModel
    encoding: Encoding
    target: Target
    removal: str
    ledger: Ledger
    evaluations: Evaluations
    counted: set[KeepKey] = field(default_factory=set)
    seed: int = 0
    """The seed of the run; a method draws from the generators that `generators` returns for its name."""
    reduced: Callable[[], LanguageModel] | None = None
    """Gives what `values` evaluates perturbed texts with in place of the model: the same in less precision. The whole
    and the fully removed text stay the model's own, and so does whatever has gradients or is a step of a text."""
    attributed: dict[tuple[str, int], Attributed] = field(default_factory=dict)
    """By label and seed, for methods that are made of others; shared by all methods that see the same problem."""

    def generators(self, method: str) -> list[np.random.Generator]:
        """A generator per text that depends on the seed, the method's name and the text, and on nothing else."""
        return [generator_for(self.seed, method, text) for text in self.encoding.texts]

    def values(self, keeps: Sequence[Bool[Tensor, "_masks _units"]]) -> list[Float[Tensor, " _masks"]]:
        """The target's value of each text under each of its keeps, one tensor per text, in float64.

        Equal keeps of this batch of texts are evaluated once. No gradients. Raises NonFiniteError where a probability
        of exactly 0 or 1 has no finite logarithm or odds.
        """
        self._check_keeps(keeps)
        keys = self._keys(keeps)
        self._count(keys)
        self._compute(keeps, keys)
        values = []
        for text, rows in enumerate(keys):
            if not rows:
                values.append(torch.zeros(0, dtype=torch.float64))
                continue
            logits = torch.stack([self._store(key)[key] for key in rows]).double()
            values.append(self.target.row(text, len(rows)).scalar(logits))
            if not values[-1].isfinite().all():
                raise NonFiniteError(
                    f"{self.target.of} is infinite on parts of {str(self.encoding.texts[text])!r:.80}, where a "
                    "probability is exactly 0 or 1: use of='probability'."
                )
        return values

    def predictions(self) -> Float[Tensor, "batch classes"]:
        """Logits of the whole texts, in float64, on the CPU. Computed at most once per batch of texts."""
        whole = self.encoding.whole
        keys = self._keys(whole)
        self._compute(whole, keys)
        return torch.stack([self.evaluations.logits[key] for (key,) in keys]).double()

    def step_values(self, keeps: Sequence[Bool[Tensor, "_masks _units"]]) -> list[Float[Tensor, "_masks _units"]]:
        """The target's value after each unit of each text under each of its keeps, in float64: one pass per keep.

        A text without keeps gives an empty tensor.
        """
        self._check_keeps(keeps)
        for text, rows in enumerate(keeps):
            self.ledger.evaluations[text] += len(rows)
        values = []
        for text, logits in enumerate(self.model.ask(StepLogits).step_logits(self.encoding, keeps, self.removal)):
            masks, units, classes = logits.shape
            flat = self.target.row(text, masks * units).scalar(logits.reshape(masks * units, classes).double())
            values.append(flat.reshape(masks, units))
        return values

    def start_values(self) -> Float[Tensor, " batch"]:
        """The target's value before any unit is read, in float64; see StepLogits.start_logits. One short pass."""
        self.count_forward()
        return self.target.scalar(self.model.ask(StepLogits).start_logits(self.encoding).double())

    def path_gradients(
        self, path: Path, positions: Tensor, weights: Tensor
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        """Weighted sums of gradients along a path; see WordEmbeddings.path_gradients. Counts its passes."""
        for text in range(len(self.encoding)):
            self.ledger.evaluations[text] += len(positions)
            self.ledger.gradients[text] += len(positions)
        return self.model.ask(WordEmbeddings).path_gradients(self.encoding, path, positions, weights, self.target)

    def values_at(self, embeds: Embeddings) -> Float[Tensor, " batch"]:
        """The target's value of each text with other word embeddings, in float64: one pass each, without gradients."""
        self.count_forward()
        given = self.model.ask(WordEmbeddings)
        values = torch.zeros(len(self.encoding), dtype=torch.float64)

        def run(rows: list[int]) -> Tensor:
            part = self.encoding.select(rows)
            with torch.no_grad():
                return given.logits_at(part, embeds[rows, : part.input_ids.shape[1]]).cpu().double()

        for rows, logits in self.model.ask(Passes).in_batches(self.encoding, run):
            values[rows] = self.target.rows(torch.as_tensor(rows)).scalar(logits)
        return values

    def attention_sites(self, text: int, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        """Where the attention to one text can be replaced; see ReplaceableAttention. Counts one pass."""
        self.ledger.evaluations[text] += 1
        return self.model.ask(ReplaceableAttention).attention_sites(self.encoding.select([text]), layers)

    def attention_slopes(
        self, text: int, site: AttentionSite, path: AttentionPath, count: int, of: Of | None = None
    ) -> Iterator[AttentionSlopes]:
        """Values and gradients along a path of a text's attention; see AttentionSite.slopes. Counts its passes.

        `of` explains another scalar of the same class than the problem's target.
        """
        self.ledger.evaluations[text] += count
        self.ledger.gradients[text] += count
        target = self.target.row(text, 1)
        return site.slopes(path, count, target if of is None else replace(target, of=of))

    def count_forward(self) -> None:
        """Record in the ledger one forward pass of every text, made by the method itself."""
        for text in range(len(self.encoding)):
            self.ledger.evaluations[text] += 1

    def note(self, name: str, per_text: Sequence[object]) -> None:
        """Add a note to the scores, one JSON value per text; it becomes one of the explanation's notes.

        Raises AnswerError for other values.
        """
        if len(per_text) != len(self.encoding):
            raise AnswerError(
                f"the note '{name}' has {len(per_text)} values for {len(self.encoding)} texts: give one for each."
            )
        for notes, value in zip(self.ledger.notes, per_text, strict=True):
            try:
                notes[name] = as_json(value)
            except (TypeError, ValueError, RecursionError) as error:
                found = " ".join(repr(value).split())
                raise AnswerError(
                    f"the note '{name}' is {found:.60}, which cannot be stored ({first_line(error)}): give finite "
                    "numbers, texts, true, false or None, or lists and objects of them (.tolist() of an array)."
                ) from None

    def reduced_keeps(self, text: int) -> list[bytes]:
        """The bits of a text's keeps that were evaluated in a lower precision than the model's own."""
        if self.reduced is None:
            return []
        known = self.evaluations.reduced
        return [key.bits for key in self.counted if key.text == text and self._store(key) is known]

    def _store(self, key: KeepKey) -> dict[KeepKey, Tensor]:
        """Where the logits of a keep are: those of a text's two ends always in the model's own precision."""
        whole_or_empty = 0 not in key.bits or 1 not in key.bits
        return self.evaluations.logits if self.reduced is None or whole_or_empty else self.evaluations.reduced

    def _check_keeps(self, keeps: Sequence[Tensor]) -> None:
        """AnswerError unless a method's keeps have a column for every unit of their text, True where it stays."""
        counts = self.encoding.unit_counts
        if len(keeps) != len(counts):
            raise AnswerError(
                f"{len(keeps)} tensors of keeps for {len(counts)} texts: a method gives one for each text."
            )
        for rows, count in zip(keeps, counts, strict=True):
            if not isinstance(rows, Tensor) or rows.dtype != torch.bool or rows.ndim != 2 or rows.shape[1] != count:
                found = f"type {type(rows).__name__}"
                if isinstance(rows, Tensor):
                    shape = " x ".join(map(str, rows.shape)) or "none"
                    found = f"shape {shape} and type {str(rows.dtype).removeprefix('torch.')}"
                raise AnswerError(
                    f"keeps of {found}, for a text of {count} units: a method gives a torch tensor of masks x {count} "
                    "of type bool, True for the units that stay."
                )

    def _keys(self, keeps: Sequence[Tensor]) -> list[list[KeepKey]]:
        return [
            [KeepKey.of(text, self.removal, row.tobytes()) for row in rows.numpy()] for text, rows in enumerate(keeps)
        ]

    def _count(self, keys: list[list[KeepKey]]) -> None:
        for text, rows in enumerate(keys):
            new = set(rows) - self.counted
            self.ledger.evaluations[text] += len(new)
            self.counted.update(new)

    def _compute(self, keeps: Sequence[Tensor], keys: list[list[KeepKey]]) -> None:
        """Evaluate all keeps that were not evaluated before, in the precision that each is stored in."""
        self._fill(self.evaluations.logits, lambda: self.model, keeps, keys)
        if self.reduced is not None:
            self._fill(self.evaluations.reduced, self.reduced, keeps, keys)

    def _same_texts(self) -> dict[int, list[int]]:
        """The rows of equal texts with equal units, such as those of several labels, which all have the same logits."""
        encoding = self.encoding
        if encoding.spans is not None or len(set(encoding.texts)) == len(encoding):
            return {}
        groups: dict[object, list[int]] = {}
        for row, parts in enumerate(zip(encoding.texts, encoding.units, encoding.lengths, strict=True)):
            ids = encoding.input_ids[row, : encoding.lengths[row]].numpy().tobytes()
            groups.setdefault((parts, ids), []).append(row)
        return {row: rows for rows in groups.values() if len(rows) > 1 for row in rows}

    def _fill(
        self,
        store: dict[KeepKey, Tensor],
        reader: Callable[[], LanguageModel],
        keeps: Sequence[Tensor],
        keys: list[list[KeepKey]],
    ) -> None:
        """Evaluate the keeps that belong into a store and are not in it yet."""
        missing: dict[int, dict[KeepKey, int]] = {}
        same = self._same_texts()
        for text, rows in enumerate(keys):
            for number, key in enumerate(rows):
                if self._store(key) is not store or key in store:
                    continue
                known = next((twin for row in same.get(text, ()) if (twin := key._replace(text=row)) in store), None)
                if known is None:
                    missing.setdefault(text, {}).setdefault(key, number)
                else:
                    store[key] = store[known]
        if not missing:
            return
        some = [keeps[text][list(numbers.values())] for text, numbers in missing.items()]
        logits = checked_logits(reader(), self.encoding.select(list(missing)), some, self.removal)
        for numbers, of_text in zip(missing.values(), logits, strict=True):
            store.update(zip(numbers, of_text, strict=True))
