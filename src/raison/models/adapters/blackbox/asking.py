"""A caller's function from texts to numbers: called with full batches, its answers checked."""

import hashlib
import inspect
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from raison.core.errors import AnswerError, NonFiniteError
from raison.core.inputs.unit import Text, segments
from raison.core.targets.outputs import Outputs, outputs_of
from raison.models.adapters.blackbox.background import run_in_background
from raison.models.served.concurrency import gathered
from raison.progress import ProgressCallback, steps_of

Function = Callable[[list[Any]], Any]
"""Maps texts, or pairs of texts, to one row of numbers each; may be a coroutine function."""

Answers = Float[np.ndarray, "texts classes"]

CHARACTERS = 1 << 24
"""Characters of masked texts that are held at a time: one text has as many masked ones as words, or more."""

ROUNDING = 0.01
"""Tolerance for the sum of a row of probabilities, which may be rounded or in half precision."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A function and the form of its answers: a number for each of `classes`, see LanguageModel.outputs.

    It gets at most `batch` texts per call. If it is asynchronous, at most `concurrency` calls run at the same time.
    """

    function: Function
    name: str
    classes: tuple[str, ...]
    multi_label: bool
    batch: int
    concurrency: int

    @property
    def outputs(self) -> Outputs:
        """The kind of its outputs."""
        return outputs_of(self.classes, self.multi_label)

    def answers(self, texts: Sequence[Text]) -> Answers:
        """The function's answer to each text, in double precision, in the order of the texts.

        An error of the function is re-raised with a note. Raises AnswerError or NonFiniteError for an invalid answer.
        """
        batches = [list(texts[start : start + self.batch]) for start in range(0, len(texts), self.batch)]
        with steps_of("texts asked", len(texts)) as progress:
            first = self._called(batches[0])
            if inspect.isawaitable(first):
                return np.concatenate(run_in_background(self._all(first, batches, progress)))
            rows = [self._checked(batches[0], first)]
            progress(len(batches[0]))
            for batch in batches[1:]:
                rows.append(self._checked(batch, self._called(batch)))
                progress(len(batch))
        return np.concatenate(rows)

    def answers_once(self, texts: Iterable[Text]) -> tuple[Answers, Int[np.ndarray, " all"]]:
        """The function's answers to the different texts, and for each text the number of its answer.

        Texts are taken when they are needed and held until they are answered; the calls are those of `answers` with all
        different texts. A text that was answered is known by its digest.
        """
        numbers: dict[bytes, int] = {}
        places, waiting, characters = array("q"), list[Text](), 0
        found: list[Answers] = [np.zeros((0, len(self.classes)))]
        for text in texts:
            known = len(numbers)
            places.append(numbers.setdefault(_digest(text), known))
            if places[-1] < known:
                continue
            waiting.append(text)
            characters += sum(map(len, segments(text)))
            if characters > CHARACTERS and len(waiting) >= self.batch:
                full = len(waiting) - len(waiting) % self.batch
                found.append(self.answers(waiting[:full]))
                waiting, characters = waiting[full:], sum(len(part) for one in waiting[full:] for part in segments(one))
        if waiting:
            found.append(self.answers(waiting))
        return np.concatenate(found), np.array(places, dtype=np.int64)

    def _called(self, batch: list[Text]) -> Any:
        try:
            return self.function(list(batch))
        except Exception as error:
            error.add_note(self._asked(batch))
            raise

    async def _all(
        self, first: Awaitable[Any], batches: Sequence[list[Text]], progress: ProgressCallback
    ) -> list[Answers]:
        """All batches concurrently; `first` was already started, to find out that the function is asynchronous."""

        async def one(batch: list[Text], begun: Awaitable[Any] | None) -> Answers:
            try:
                answers = await (self.function(list(batch)) if begun is None else begun)
            except Exception as error:
                error.add_note(self._asked(batch))
                raise
            progress(len(batch))
            return self._checked(batch, answers)

        return await gathered(
            [one(batch, None if number else first) for number, batch in enumerate(batches)], self.concurrency
        )

    def _asked(self, batch: Sequence[Text]) -> str:
        which = f"{len(batch)} texts, the first of them" if len(batch) > 1 else "the text"
        empty = any(not "".join(segments(text)).strip() for text in batch)
        way_out = (
            " One of them is empty because all units were deleted: removal='ellipsis' leaves dots instead."
            if empty
            else ""
        )
        return f"raison had called {self.name} with {which} {batch[0]!r:.80}.{way_out}"

    def _checked(self, batch: Sequence[Text], returned: Any) -> Answers:
        numbers = self._numbers(returned)
        if numbers.ndim == 1 and len(self.classes) == 1:
            numbers = numbers[:, None]
        if not numbers.ndim:
            raise AnswerError(
                f"{self.name} returned {returned!r:.40} for a list of {len(batch)} texts: it must return a number, or "
                "a row of numbers, for each text of the list."
            )
        if numbers.shape != (len(batch), len(self.classes)):
            raise AnswerError(
                f"{self.name} returned an array of shape {numbers.shape} for {len(batch)} texts: with the classes "
                f"{', '.join(self.classes):.80} it must be ({len(batch)}, {len(self.classes)}), with one row per text "
                "in the order of the texts."
            )
        finite = np.isfinite(numbers).all(1)
        if not finite.all():
            raise NonFiniteError(f"{self.name} returned NaN or infinite numbers for {batch[finite.argmin()]!r:.80}.")
        if self.outputs != "number":
            self._check_shares(batch, numbers)
        return numbers

    def _numbers(self, returned: Any) -> Float[np.ndarray, "..."]:
        if returned is None:
            raise AnswerError(f"{self.name} returned None: it may lack a return statement.")
        if isinstance(returned, list | tuple) and returned and all(isinstance(row, Mapping) for row in returned):
            returned = self._by_name(returned)
        returned = _without_tensors(returned)
        order = self._order(returned)
        try:
            # A copy: a function may return a buffer that its next call overwrites.
            numbers = np.array(returned, dtype=np.float64)
            return numbers if order is None else numbers[:, order]
        except (TypeError, ValueError, OverflowError):
            raise AnswerError(
                f"{self.name} returned a {type(returned).__name__} that is not an array of numbers ({returned!r:.60}): "
                "return one row of numbers per text."
            ) from None

    def _by_name(self, rows: Sequence[Mapping[Any, Any]]) -> list[list[Any]]:
        """The numbers of texts whose rows name their classes, in the order of the classes."""
        for row in rows:
            names = {str(name): name for name in row}
            if sorted(names) != sorted(self.classes):
                raise AnswerError(
                    f"{self.name} returned a mapping with the keys {', '.join(names):.80}, and the classes are "
                    f"{', '.join(self.classes):.80}: give each text a number for every class, by its name."
                )
        return [[row[name] for wanted in self.classes for name in row if str(name) == wanted] for row in rows]

    def _order(self, returned: Any) -> list[int] | None:
        """The position of each class's column in a data frame, if its columns have the classes' names; None: in the
        given order."""
        columns = getattr(returned, "columns", None)
        names = [] if columns is None else [str(name) for name in columns]
        if not set(names) & set(self.classes):
            return None
        if sorted(names) != sorted(self.classes):
            raise AnswerError(
                f"{self.name} returned a data frame with the columns {', '.join(names):.80}, and the classes are "
                f"{', '.join(self.classes):.80}: name all columns like the classes, or return an array."
            )
        return [names.index(name) for name in self.classes]

    def _check_shares(self, batch: Sequence[Text], numbers: Answers) -> None:
        """AnswerError unless all are probabilities, and each text's sum to 1 if the classes exclude each other."""
        outside = ((numbers < -ROUNDING) | (numbers > 1 + ROUNDING)).any(1)
        if outside.any():
            row = int(outside.argmax())
            function = "softmax" if self.outputs == "classes" else "sigmoid"
            raise AnswerError(
                f"{self.name} returned {_listed(numbers[row])} for {batch[row]!r:.60}, which are not probabilities. If "
                f"these are logits, return their {function}; for one number without classes, give classes one name."
            )
        sums = numbers.sum(1)
        wrong = np.abs(sums - 1) > ROUNDING
        if self.outputs == "classes" and wrong.any():
            row = int(wrong.argmax())
            raise AnswerError(
                f"{self.name} returned {_listed(numbers[row])} for {batch[row]!r:.60}, which sum to {sums[row]:.3g} "
                "instead of 1. If each label has its own probability, load with multi_label=True."
            )


def _digest(text: Text) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in segments(text):
        written = part.encode("utf-8", "surrogatepass")
        digest.update(len(written).to_bytes(8, "big"))
        digest.update(written)
    return digest.digest()


def _listed(row: Float[np.ndarray, " classes"]) -> str:
    shown = ", ".join(f"{number:.3g}" for number in row[:4])
    return f"{shown}, ..." if len(row) > 4 else shown


def _without_tensors(returned: Any) -> Any:
    """What a function returned, with NumPy's arrays for tensors, also in lists: they may have gradients or 16 bits."""
    if isinstance(returned, torch.Tensor):
        return returned.detach().cpu().double().numpy()
    if isinstance(returned, list | tuple):
        return [_without_tensors(one) if isinstance(one, torch.Tensor | list | tuple) else one for one in returned]
    return returned
