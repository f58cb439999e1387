"""Whether a source entails a statement, according to the caller's function or classifier."""

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import torch

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.targets.target import probabilities
from raison.models.adapters.writing.writer import Writer

Judge = Callable[[str, str], float] | LanguageModel
"""A function of a source and a statement that returns a number from 0 to 1, or a classifier of pairs with the class
"entailment".
"""
CLASS = "entailment"


def check_judge(judge: object) -> None:
    """Raise InputError for what cannot judge whether a source entails a statement."""
    if isinstance(judge, Writer | torch.nn.Module) or not (isinstance(judge, LanguageModel) or callable(judge)):
        raise InputError(
            f"the judge of support is a {type(judge).__name__}: give a function of a source and a statement, or a "
            f"classifier of pairs from raison.load, with the class '{CLASS}'."
        )
    if isinstance(judge, LanguageModel) and CLASS not in _lowered(judge):
        raise InputError(
            f"{judge.name} has the classes {', '.join(judge.classes)}: an entailment judge needs one named '{CLASS}'."
        )


def supported(judge: Judge, sources: Sequence[str], statements: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """For each statement, how far each source entails it. Raises InputError."""
    pairs = [(source, statement) for statement in statements for source in sources]
    shares = _classified(judge, pairs) if isinstance(judge, LanguageModel) else [_said(judge, *pair) for pair in pairs]
    width = len(sources)
    return tuple(tuple(shares[row : row + width]) for row in range(0, len(shares), width))


def _said(judge: Callable[[str, str], float], source: str, statement: str) -> float:
    said: Any = judge(source, statement)
    try:
        # float() would also read a string.
        share = nan if isinstance(said, str | bytes) else float(said)
    except (TypeError, ValueError, RuntimeError):
        share = nan
    if not 0 <= share <= 1:
        raise InputError(f"the judge of support answered {said!r:.40}: a number from 0 to 1, or true or false.")
    return share


def _classified(judge: LanguageModel, pairs: Sequence[tuple[str, str]]) -> list[float]:
    encoding = judge.encode(pairs, "word", truncate=True)
    logits = torch.cat(judge.masked_logits(encoding, encoding.whole, judge.removals[0]))
    entailed: list[float] = probabilities(logits.double(), judge.multi_label)[:, _lowered(judge).index(CLASS)].tolist()
    return entailed


def _lowered(judge: LanguageModel) -> list[str]:
    return [name.lower() for name in judge.classes]
