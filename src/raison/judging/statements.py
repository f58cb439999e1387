"""Explained outputs of a language model as statements to evaluate."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.inputs.unit import PART, Unit
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import OTHER, GenerationExplanation
from raison.core.targets.place import Place
from raison.models.adapters.writing.forced_answer import ForcedAnswer
from raison.models.adapters.writing.statements import STATEMENT, Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import TokenizedPrompt
from raison.models.tokens.sourced import Sourced, sourced
from raison.models.tokens.written_answer import WrittenAnswer
from raison.text.segment import CharacterSpan, merged
from raison.text.sourced import SourcePlace

SUMMED = "summed"
"""The note of a sum over output tokens of a value other than the log-probability."""
BY_SENTENCES = "by_sentences"
"""The note of source scores that the method derived from sentence scores; without sentences it gives other scores."""
_ROLES = ("system", "developer", "user", "assistant", "tool")
"""Names of the messages of chats, which are their parts."""
CLOSE = 1e-2
"""Tolerance for the recorded log-probability, in nats and as a share."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An explanation's record of an answer: its tokens, its statements, and the probability of each."""

    prompt: str
    ids: tuple[int, ...]
    spans: tuple[CharacterSpan, ...]
    log_probabilities: tuple[float, ...]
    removal: str
    whole: bool = False
    """Whether all tokens were explained together, those of white space around the text included."""


@dataclass(frozen=True, slots=True)
class RereadAnswer:
    """What was explained, read again: the explanation of each statement, and the answer that they are parts of."""

    answered: WrittenAnswer
    unit: str
    explanations: tuple[Explanation, ...]


def statements_of(writer: Writer, given: object) -> tuple[Statements, list[Explanation]]:
    """A model of the explained answers, and the explanations as those of its statements.

    Citations have one for each statement, whose units are the sources; an output is one as a whole. Raises InputError.
    """
    listed = [given] if isinstance(given, Citations | GenerationExplanation) else _listed(given)
    answers = [
        _of_citations(writer, one) if isinstance(one, Citations) else _of_output(writer, one)  # type: ignore[arg-type]
        for one in listed
    ]
    return Statements(writer, [one.answered for one in answers]), [e for one in answers for e in one.explanations]


def _listed(given: object) -> list[object]:
    results = list(given) if isinstance(given, Iterable) else [given]
    if not results or not all(isinstance(one, Citations | GenerationExplanation) for one in results):
        raise InputError(
            "for a generative language model, evaluate needs results of raison.cite or raison.explain: at least one "
            "Citations or GenerationExplanation."
        )
    return results


def _of_citations(writer: Writer, c: Citations) -> RereadAnswer:
    if not c.answer_ids:
        raise InputError(
            "these citations come from an older version, which did not record the answer's tokens: cite again."
        )
    blocks = c.removed or tuple((source.start, source.end) for source in c.sources)
    places = [
        SourcePlace(source.name, start, source.start, source.end, end)
        for source, (start, end) in zip(c.sources, blocks, strict=True)
    ]
    spans = tuple((statement.start, statement.end) for statement in c.statements)
    recorded = RecordedAnswer(
        c.prompt, c.answer_ids, spans, tuple(one.log_probability for one in c.statements), c.removal
    )
    untrusted = merged(sorted([*blocks, *_occurrences(c.question, c.prompt)]))
    candidates = [(sourced(prompt, places), PART) for prompt in writer.prompts_again(c.prompt, untrusted)]
    answered, unit = _matching(writer, candidates, recorded)
    shared: dict[str, Any] = {"of": c.of, "method": c.method, "config": c.config, "removal": c.removal, "seed": c.seed}
    by_sentences = any(score is not None for row in c.within for score in row)
    shared["notes"] = {BY_SENTENCES: True} if by_sentences else {}
    explanations = tuple(
        Explanation(
            **_statement(answered, spans[i], full),
            **shared,
            value_full=full,
            value_empty=empty,
            model=c.model,
            unit=unit,
            units=c.sources,
            scores=c.scores[i],
            evaluations=c.evaluations,
            gradients=0,
            seconds=c.seconds / len(spans),
        )
        for i, (full, empty) in enumerate((s.log_probability, s.without) for s in c.statements)
    )
    return RereadAnswer(answered, unit, explanations)


def _of_output(writer: Writer, e: GenerationExplanation) -> RereadAnswer:
    if e.earlier or e.contrast:
        what = "earlier output tokens are units" if e.earlier else "every token is contrasted with another one"
        raise InputError(f"only outputs after a prompt can be evaluated, and here {what}: explain without that.")
    read = [prompt if prompt.sealed is None else _as_chat(prompt, e.units) for prompt in writer.prompts_again(e.prompt)]
    # Parts may be those of a string or messages, whose names are their roles.
    read.sort(
        key=lambda prompt: (prompt.sealed is not None) != any(unit.name.split(" ")[0] in _ROLES for unit in e.units)
    )
    candidates = [
        (Sourced(prompt, (), (), (), ()), e.unit)
        if prompt.sealed is None and e.unit != PART
        else (Sourced(replace(prompt, parts=e.units), (), (), (), ()), PART)
        for prompt in read
        # A chat may have the tokens of the same text without being one: then the units differ.
        if prompt.sealed is not None or e.unit == PART or prompt.units(e.unit)[0] == e.units  # type: ignore[arg-type]
    ]
    whole, span = e.whole(), (0, len(e.output.strip()))
    recorded = RecordedAnswer(
        e.prompt, tuple(token.id for token in e.tokens), (span,), (e.log_probability,), e.removal, True
    )
    answered, unit = _matching(writer, candidates, recorded)
    stated = _statement(answered, span, e.log_probability)
    notes = whole.notes if e.of == "log_probability" else whole.notes | {SUMMED: True}
    return RereadAnswer(answered, unit, (replace(whole, unit=unit, notes=notes, **stated),))


def _as_chat(prompt: TokenizedPrompt, units: Sequence[Unit]) -> TokenizedPrompt:
    """A rendered chat whose messages are where units stand with nothing but white space between them."""
    regions: list[CharacterSpan] = []
    for unit in units:
        if regions and not prompt.text[regions[-1][1] : unit.start].strip():
            regions[-1] = (regions[-1][0], max(regions[-1][1], unit.end))
        else:
            regions.append((unit.start, unit.end))
    return replace(prompt, regions=tuple(regions))


def _occurrences(part: str, text: str) -> list[CharacterSpan]:
    return [found.span() for found in re.finditer(re.escape(part), text)] if part else []


def _statement(answered: WrittenAnswer, span: CharacterSpan, log_probability: float) -> dict[str, Any]:
    """What an explanation says about its statement."""
    share = math.exp(min(0.0, log_probability))
    return {
        "text": answered.texts,
        "classes": (STATEMENT, OTHER),
        "probabilities": (share, 1 - share),
        "target": STATEMENT,
        "against": None,
        "outputs": "statement",
        "place": Place(STATEMENT, *span, answered.text[slice(*span)], STATEMENT, 1),
    }


def _matching(
    writer: Writer, candidates: Sequence[tuple[Sourced, str]], recorded: RecordedAnswer
) -> tuple[WrittenAnswer, str]:
    """The reading of a prompt under which the statements are as likely as they were when they were explained."""
    for source, unit in candidates:
        output = writer.written(source.prompt, recorded.ids)
        answered = WrittenAnswer(source, output, recorded.spans, recorded.whole)
        forced = ForcedAnswer(writer, answered, unit)  # type: ignore[arg-type]
        keep = np.ones((1, forced.encoding.unit_counts[0]), dtype=bool)
        [log_probabilities] = forced.log_probabilities(keep, answered.tokens(recorded.spans), recorded.removal)
        if np.allclose(log_probabilities, recorded.log_probabilities, rtol=CLOSE, atol=CLOSE):
            return answered, unit
    raise InputError(
        f"{writer.name} does not reproduce the probability recorded for {recorded.prompt[-30:]!r} ...: "
        "the explanation was made with another model, or its chat cannot be read again; explain it again."
    )
