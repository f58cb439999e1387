"""Masked texts of a function: few are held at a time, and the calls are those that all of them would give."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from raison.core.errors import AnswerError
from raison.models.adapters.blackbox import asking, function
from raison.models.adapters.blackbox.asking import Asking
from raison.models.adapters.blackbox.function import BlackBox

TEXTS = ["a dull plot in a dull film", "a good plot", "a good plot"]
PAIRS = [("a dull plot", "in a film"), ("a good plot", "no"), ("a good plot", "no")]
MASKS, BATCH = 9, 3


class Recorded:
    """A function of texts; notes its calls, and how many masked texts had been written before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[Any]] = []
        self.before: list[int] = []
        self._written = 0
        write = function.without

        def counted(*args: Any) -> Any:
            self._written += 1
            return write(*args)

        monkeypatch.setattr(function, "without", counted)

    def __call__(self, texts: list[Any]) -> np.ndarray:
        self.calls.append(list(texts))
        self.before.append(self._written)
        shares = np.array([0.5 + 0.4 * np.sin(len(repr(text))) for text in texts])
        return np.stack([shares, 1 - shares], 1)

    async def later(self, texts: list[Any]) -> np.ndarray:
        """The same, asynchronously."""
        return self(texts)


def adapter(function: Any, strings: int) -> BlackBox:
    return BlackBox(Asking(function, "mine", ("no", "yes"), False, BATCH, 2), strings=strings)


def masked(model: BlackBox, texts: list[Any]) -> list[Tensor]:
    encoding = model.encode(texts, "word")
    draws = torch.Generator().manual_seed(0)
    keeps = [torch.rand(MASKS, units, generator=draws) > 0.5 for units in encoding.unit_counts]
    return model.masked_logits(encoding, keeps, "delete")


@pytest.mark.parametrize("form", ["__call__", "later"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_few_masked_texts_are_held_and_the_calls_are_the_same(
    texts: list[Any], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, recorded = [], []
    for characters in (asking.CHARACTERS, 20):
        with monkeypatch.context() as patched:
            patched.setattr(asking, "CHARACTERS", characters)
            recorded.append(Recorded(patched))
            found.append(masked(adapter(getattr(recorded[-1], form), 1 if texts is TEXTS else 2), texts))
    whole, parts = recorded
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    assert parts.calls == whole.calls
    assert {len(call) for call in parts.calls[:-1]} == {BATCH}
    different = [text for call in parts.calls for text in call]
    assert len(set(different)) == len(different) < len(texts) * MASKS
    assert whole.before[0] == len(texts) * MASKS
    assert parts.before[0] < MASKS
    assert parts.before[0] < parts.before[-1]


def test_pairs_that_read_alike_when_joined_are_different_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    called, pairs = Recorded(monkeypatch), [("a b", "c"), ("a", "b c")]
    model = adapter(called, 2)
    encoding = model.encode(pairs, "word")
    model.masked_logits(encoding, encoding.whole, "delete")
    assert called.calls == [pairs]


def test_without_masks_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    called = Recorded(monkeypatch)
    model = adapter(called, 1)
    [logits] = model.masked_logits(model.encode(["a b"], "word"), [torch.zeros(0, 2, dtype=torch.bool)], "delete")
    assert logits.shape == (0, 2)
    assert not called.calls


def test_a_number_that_no_float_holds_is_an_answer_that_is_refused() -> None:
    asked = Asking(lambda texts: [[10**400] for _ in texts], "mine", ("a",), False, batch=3, concurrency=1)
    with pytest.raises(AnswerError, match="mine returned a list that is not an array of numbers"):
        asked.answers(["a good plot"])
