"""Which sources a language model's answer depends on: the entry point for citations."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raison._version import __version__
from raison.core.errors import AnswerError, InputError
from raison.core.inputs.unit import PART, Granularity
from raison.core.method import Method, Property
from raison.core.note_names import BASELINE, EXACT, GROUP_INTERVALS, GROUPS
from raison.core.registry import name_of
from raison.core.results.citations import Citations, Statement
from raison.core.results.explanation import Explanation
from raison.core.targets.choices import SingleTarget
from raison.explaining.attribution import run
from raison.explaining.batch import prepare_stated
from raison.explaining.provenance import method_of, noise_of, said
from raison.explaining.settings import DRAWS, Settings
from raison.explaining.sources.answer_statements import AnswerRequest, StatedAnswer, StatementSpans, stated_answer
from raison.explaining.sources.citation_settings import CitationSettings, Within
from raison.explaining.sources.entailment import Judge, check_judge, supported
from raison.explaining.sources.source_necessity import Lit, RandomRemovals, lit
from raison.explaining.sources.sourced_prompt import Question, SourcedPrompt, Sources, sourced_prompt
from raison.explaining.token_by_token import looks_inside
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.written_answer import WrittenAnswer
from raison.text.sourced import SourceTemplate


def cite(
    writer: Writer,
    question: Question,
    sources: Sources | None = None,
    *,
    answer: str | None = None,
    statements: StatementSpans | None = None,
    template: SourceTemplate | str | Path | None = None,
    method: str | Method = "auto",
    within: Within = "sentence",
    removal: str = "delete",
    seed: int = 0,
    max_new_tokens: int | None = None,
    draws: int = DRAWS,
    judge: Judge | None = None,
) -> Citations:
    """Find the sources that led a language model to each statement of its answer.

    Args:
        writer: a language model from `raison.load`, loaded without a prompt for classification.
        question: a question, or a conversation (a Chat, or a list of messages). The sources of a conversation are its
            tool results and documents, or the texts in it that `sources` gives.
        sources: {"id": "text", ...} in the order of the prompt, or a list of texts, numbered from 1.
        answer: the answer to explain; None: the model's own.
        statements: spans [(start, end), ...] of the answer in characters; None: its sentences.
        template: "plain", "chat" (the tokenizer's own), a TOML file, or a string with {sources} and {question}; None:
            chat if the tokenizer has a template, otherwise plain.
        method: a name, a call or an instance; "auto" leaves out sources, then sentences of those that matter.
        within: "sentence" also scores sentences of the sources; "source" scores whole sources only.
        removal: how text is removed: "delete", or a token that replaces it, such as "ellipsis".
        seed: of random methods and of random text.
        max_new_tokens: the maximum number of tokens of the model's own answer; 100 by default.
        draws: the number of random texts of its length with which each source is compared; 0: no lights.
        judge: a function of a source and a statement, or a classifier of pairs with the class "entailment".

    Raises InputError, TextTooLongError, UnknownNameError, UnsupportedError, DataError, NonFiniteError.
    """
    settings = CitationSettings.from_options(
        template=template,
        method=method,
        within=within,
        removal=removal,
        seed=seed,
        max_new_tokens=max_new_tokens,
        draws=draws,
    )
    return cited(writer, question, sources, AnswerRequest(answer, statements, max_new_tokens), settings, judge)


def cited(
    writer: Writer,
    question: Question,
    sources: Sources | None,
    wanted: AnswerRequest,
    settings: CitationSettings,
    judge: Judge | None = None,
) -> Citations:
    """`cite` with its settings as one."""
    check_generative(writer)
    if judge is not None:
        check_judge(judge)
    started = time.perf_counter()
    prompt = sourced_prompt(writer, question, sources, settings.template)
    result = _cited(writer, prompt, stated_answer(writer, prompt, wanted), settings)
    values: dict[str, Any] = {"seconds": time.perf_counter() - started}
    if judge is not None:
        values["supported"] = supported(judge, [s.text for s in result.sources], [s.text for s in result.statements])
    return replace(result, **values)


def check_generative(writer: object) -> None:
    """Raise InputError for a model that writes nothing."""
    if not isinstance(writer, Writer):
        raise InputError(
            "cite explains the output of a generative language model: load one without a prompt (raison.load(name))."
        )


def _cited(writer: Writer, prompt: SourcedPrompt, answer: StatedAnswer, how: CitationSettings) -> Citations:
    answered, source = answer.answered, prompt.source
    model, spans = Statements(writer, [answered]), answered.statements
    explained = _explained(model, how, "sentence" if how.within == "sentence" else PART)
    # The effect of removing a source need not be the sum of the effects of removing its sentences one by one.
    whole = _explained(model, how, PART) if how.scores_apart else []
    scores, within = _scores(answered, how, explained, whole)
    baseline, made_by = _baseline(explained), method_of(explained, how.method)
    if baseline.get(BASELINE) in model.removals:
        # What is reported beside the scores must be about the same removal.
        how = replace(how, removal=baseline[BASELINE])
    forced, tokens = model.forced(answered.texts, PART), answered.tokens(spans)
    pieces = len(source.of_source)
    ends = np.stack([np.ones(pieces, dtype=bool), np.zeros(pieces, dtype=bool)])
    full, empty = forced.log_probabilities(ends, tokens, how.removal).tolist()
    lights = lit(forced, tokens, how.removal, RandomRemovals(how.draws, how.seed)) if how.draws else Lit.off(len(spans))
    return Citations(
        question=prompt.question,
        prompt=source.prompt.text,
        answer=answered.text,
        sources=source.sources,
        sentences=source.sentences,
        statements=tuple(
            Statement(answered.text[start:end], start, end, len(tokens[i]), full[i], empty[i], lights.origins[i])
            for i, (start, end) in enumerate(spans)
        ),
        scores=scores,
        within=within,
        intervals=_intervals(how.method, explained, len(source.sources)),
        checks=lights.checks,
        of=how.of,
        method=made_by.method,
        config=made_by.config,
        model=writer.name,
        template=prompt.template,
        removal=how.removal,
        seed=how.seed,
        evaluations=forced.passes + _direct(model, how.method, explained) + _direct(model, how.method, whole),
        gradients=sum(e.gradients for e in (*explained, *whole)),
        seconds=0.0,
        notes=answer.notes | said(explained) | baseline | noise_of(explained),
        version=__version__,
        removed=source.blocks,
        answer_ids=answered.output.ids,
        signed=all(e.signed for e in explained),
        draws=how.draws,
    )


def _explained(model: Statements, how: CitationSettings, unit: Granularity) -> list[Explanation]:
    [answered] = model.answers.values()
    targets: list[SingleTarget] = [*answered.statements]
    settings = Settings(unit, targets, how.of, how.removal, how.seed)
    return run(prepare_stated(model, [answered.texts] * len(targets), settings), how.method)


def _direct(model: Statements, method: Method, explained: Sequence[Explanation]) -> int:
    """Forward passes of a method that looks inside the model, which no masked prompt counts. Statements share them."""
    looks = bool(method.needs) or looks_inside(model, method)
    return max((e.evaluations for e in explained), default=0) if looks else 0


def _baseline(explained: Sequence[Explanation]) -> dict[str, Any]:
    """The note on what the scores are measured from, for a method that cannot delete."""
    return {BASELINE: explained[0].notes[BASELINE]} if BASELINE in explained[0].notes else {}


def _intervals(
    method: Method, explained: Sequence[Explanation], sources: int
) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The sources' intervals, if the method samples and gives intervals."""
    if not all(GROUP_INTERVALS in e.notes for e in explained):
        return ()
    pairs = [_of_each_source(method, e, GROUP_INTERVALS, sources) for e in explained]
    return tuple(tuple((low, high) for low, high in row) for row in pairs)


def _of_each_source(method: Method, explained: Explanation, note: str, sources: int) -> Sequence[Any]:
    """A note with a value for each source. Raises AnswerError unless there are as many."""
    values: Sequence[Any] = explained.notes.get(note, ())
    if len(values) != sources:
        raise AnswerError(
            f"{name_of(method)} gives {len(values)} '{note}' for {sources} sources: its note has to have one value for "
            "each run of units with the same name."
        )
    return values


def _scores(
    answered: WrittenAnswer, how: CitationSettings, explained: Sequence[Explanation], whole: Sequence[Explanation]
) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float | None, ...], ...]]:
    """Scores of the sources, and of the sentences that the method looked at. `whole` are sources scored by themselves,
    where the scores of sentences give none."""
    sentences, homes = len(answered.source.sentences), answered.source.homes
    if how.within == "source":
        return tuple(e.scores for e in explained), ((None,) * sentences,) * len(explained)
    within: list[tuple[float | None, ...]] = []
    for e in explained:
        known = set(e.notes.get(EXACT, range(sentences)))
        within.append(tuple(score if k in known else None for k, score in enumerate(e.scores)))
    count = len(answered.source.sources)
    if Property.GROUPED in how.method.properties:
        groups = [_of_each_source(how.method, e, GROUPS, count) for e in explained]
        return tuple(map(tuple, groups)), tuple(within)
    if whole:
        return tuple(e.scores for e in whole), tuple(within)
    sums = [np.bincount(homes, weights=e.scores, minlength=count).tolist() for e in explained]
    return tuple(map(tuple, sums)), tuple(within)
