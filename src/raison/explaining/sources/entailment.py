"""Whether a source entails a statement, according to the caller's function or classifier."""

from collections.abc import Callable, Sequence

import torch

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.targets.target import probabilities

Judge = Callable[[str, str], float] | LanguageModel
"""A function of a source and a statement that returns a number from 0 to 1, or a classifier of pairs with the class
"entailment".
"""
CLASS = "entailment"


def supported(judge: Judge, sources: Sequence[str], statements: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """For each statement, how far each source entails it. Raises InputError."""
    pairs = [(source, statement) for statement in statements for source in sources]
    shares = _classified(judge, pairs) if isinstance(judge, LanguageModel) else [_said(judge, *pair) for pair in pairs]
    width = len(sources)
    return tuple(tuple(shares[row : row + width]) for row in range(0, len(shares), width))


def _said(judge: Callable[[str, str], float], source: str, statement: str) -> float:
    share = judge(source, statement)
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InputError(f"the judge of support answered {share!r:.40}: a number from 0 to 1, or true or false.")
    return float(share)


def _classified(judge: LanguageModel, pairs: Sequence[tuple[str, str]]) -> list[float]:
    names = [name.lower() for name in judge.classes]
    if CLASS not in names:
        raise InputError(
            f"{judge.name} has the classes {', '.join(judge.classes)}: an entailment judge needs one named '{CLASS}'."
        )
    encoding = judge.encode(pairs, "word", truncate=True)
    logits = torch.cat(judge.masked_logits(encoding, encoding.whole, judge.removals[0]))
    entailed: list[float] = probabilities(logits.double(), judge.multi_label)[:, names.index(CLASS)].tolist()
    return entailed
