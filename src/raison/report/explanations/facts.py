"""How an explanation was computed: names with their values, the same in the terminal and in HTML."""

import json
from collections.abc import Mapping

from raison.core.note_names import (
    AMONG,
    AUTO,
    CANDIDATES,
    CAUTION,
    COMPLETENESS_GAP,
    EXTENDED,
    NOISE,
    READ_AS_TEXT,
    SELECTED_BY,
    SERVED,
    UNKNOWN_TOKENS,
    UNSTEADY,
)
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.style import gaps, phrases
from raison.report.style.phrases import AnyExplanation

_SAID = (AUTO, COMPLETENESS_GAP, CAUTION, UNSTEADY, SELECTED_BY, CANDIDATES)
_TOLD = (*_SAID, UNKNOWN_TOKENS, READ_AS_TEXT, EXTENDED, SERVED, NOISE, AMONG)
"""Notes that other facts already contain."""


def facts(e: AnyExplanation) -> dict[str, object]:
    """The known facts, in order; no value is None."""
    known = _of_output(e) if isinstance(e, GenerationExplanation) else _of_text(e)
    return {name: fact for name, fact in known.items() if fact is not None}


def _of_text(e: Explanation) -> dict[str, object]:
    return {
        "Value": phrases.value_change(e),
        "Gap": gaps.gap(e),
        "Chosen": phrases.choice(e),
        "Probabilities": phrases.shares(e) or None,
        **_of_method(e),
        "Removal": e.removal,
        "Unknown": phrases.unread(e),
        "Extended": phrases.extended(e),
        **_of_run(e, _TOLD),
    }


def _of_output(e: GenerationExplanation) -> dict[str, object]:
    return {
        "Output": f"{phrases.count(len(e.tokens), 'token')}, log-probability {e.log_probability:.3f}",
        "Gap": gaps.gap(e),
        **_of_method(e),
        "Removal": f"{e.removal}, for an absent {e.unit}",
        **_of_run(e, (CAUTION, UNSTEADY, COMPLETENESS_GAP, UNKNOWN_TOKENS, SERVED, NOISE)),
    }


def _of_method(e: AnyExplanation) -> Mapping[str, object]:
    config = ", ".join(f"{name}={_plain(value)}" for name, value in e.config.items())
    return {"Method": f"{e.method}: {config}" if config else e.method, "Model": e.model}


def _of_run(e: AnyExplanation, shown: tuple[str, ...]) -> Mapping[str, object]:
    return {
        "Server": e.notes.get(SERVED),
        "Noise": phrases.noise(e.notes),
        "Seed": e.seed,
        "Cost": phrases.effort(e),
        **{f"Note: {name}": _plain(value) for name, value in e.notes.items() if name not in shown},
        "Version": f"raison {e.version}" if e.version else None,
    }


def _plain(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, float) for item in value):
        # Columns of numbers are aligned for comparison.
        return ", ".join(f"{item:.3g}" for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
