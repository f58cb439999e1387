"""Which sources a language model's answer rests on: the front door for sources."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from raison._version import __version__
from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.unit import PART
from raison.core.method import Method, Property
from raison.core.registry import name_of
from raison.core.results.citations import Citations, Statement
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import Settings, prepare_stated, run
from raison.explaining.entailment import Judge, supported
from raison.explaining.lights import Lit, lit
from raison.explaining.sourcing import Asked, Question, Sources, asked
from raison.methods import CATALOGUE
from raison.models.adapters.generator import Generator
from raison.models.adapters.statements import ForcedAnswer, Level, Statements
from raison.models.tokens.continuation import Output
from raison.text.segment import sentence_spans
from raison.text.sourced import SourceTemplate

Within = Literal["sentence", "source"]
Spans = Sequence[tuple[int, int]]

NEW_TOKENS = 100
DRAWS = 16
AUTO: dict[Within, str] = {"sentence": "hierarchical_occlusion", "source": "occlusion"}
"""Exact, and the fewest passes."""
OWN_SCALE = {"context_cite": "log_odds"}
"""What of a statement a method explains where it is not the log-probability."""
LINEAR = ("context_cite", "lime")
"""Methods whose scores add up to that of several units removed at once, without summing to the whole."""


@dataclass(frozen=True, slots=True)
class _How:
    """How statements are scored."""

    method: Method
    within: Within
    removal: str
    seed: int
    draws: int

    @property
    def of(self) -> str:
        return OWN_SCALE.get(name_of(self.method), "log_probability")

    @property
    def adds_up(self) -> bool:
        """Whether the scores of a source's sentences sum to that of the source."""
        return Property.COMPLETE in self.method.properties or name_of(self.method) in LINEAR


@dataclass(frozen=True, slots=True)
class _Told:
    """An answer and its statements: spans of the answer, and the numbers of each one's tokens."""

    text: str
    output: Output
    spans: list[tuple[int, int]]
    tokens: list[list[int]]
    notes: dict[str, Any]


def cite(
    writer: Generator,
    question: Question,
    sources: Sources | None = None,
    *,
    answer: str | None = None,
    statements: Spans | None = None,
    template: SourceTemplate | str | Path | None = None,
    method: str | Method = "auto",
    within: Within = "sentence",
    removal: str = "delete",
    seed: int = 0,
    max_new_tokens: int | None = None,
    draws: int = DRAWS,
    judge: Judge | None = None,
) -> Citations:
    """Which sources made a language model say each statement of its answer.

    Args:
        writer: a language model from `raison.load`, loaded without a prompt for classification.
        question: a question; or a conversation (a Chat, or a list of messages) whose sources are the results of tools
            and the documents in it, or the texts that `sources` names in it.
        sources: {"id": "text", ...} in the order of the prompt, or a list of texts, numbered from 1.
        answer: the answer to explain; None: the model's own.
        statements: spans [(start, end), ...] of the answer in characters; None: its sentences.
        template: "plain", "chat" (the tokenizer's own), a TOML file, or a string with {sources} and {question}; None:
            chat where the tokenizer has a template, else plain.
        method: a name, a call or an instance; "auto" leaves out sources, then sentences of those that matter.
        within: "sentence" also scores sentences of the sources; "source" scores whole sources only.
        removal: what becomes of absent text: "delete", or a token in its place, such as "ellipsis".
        seed: of random methods and of random text.
        max_new_tokens: the most tokens of the model's own answer; 100 by default.
        draws: random texts of its length that each source is compared with, for the lights; 0: no lights.
        judge: a function of a source and a statement, or a classifier of pairs with the class "entailment".

    Raises InputError, TextTooLongError, UnknownNameError, UnsupportedError, DataError, NonFiniteError.
    """
    started = time.perf_counter()
    if not isinstance(writer, Generator):
        raise InputError("cite explains what a language model writes: load one without a prompt (raison.load(name)).")
    how = _how(method, within, removal, seed, draws)
    if answer is not None and max_new_tokens is not None:
        raise InputError("max_new_tokens is for the model's own answer: leave it out where answer= is given.")
    found = asked(writer, question, sources, template)
    told = _told(writer, found, answer, statements, NEW_TOKENS if max_new_tokens is None else max_new_tokens)
    forced = ForcedAnswer(writer, found.source, told.output, removal)
    result = _cited(forced, found, told, how)
    values: dict[str, Any] = {"seconds": time.perf_counter() - started}
    if judge is not None:
        values["supported"] = supported(judge, [s.text for s in result.sources], [s.text for s in result.statements])
    return replace(result, **values)


def _how(method: str | Method, within: Within, removal: str, seed: int, draws: int) -> _How:
    if within not in get_args(Within):
        raise UnknownNameError("level (within=)", within, get_args(Within))
    if type(draws) is not int or draws < 0:
        raise InputError(f"draws cannot be {draws!r}: it counts random texts. Give a whole number, or 0 for no lights.")
    return _How(CATALOGUE.create(AUTO[within] if method == "auto" else method), within, removal, seed, draws)


def _told(writer: Generator, found: Asked, answer: str | None, spans: Spans | None, new_tokens: int) -> _Told:
    prompt, notes = found.source.prompt, {}
    if answer is None:
        output = writer.continuation(prompt, new_tokens)
        if len(output.ids) == new_tokens:
            notes["cut"] = f"the answer reached max_new_tokens={new_tokens}: it may be cut off"
        own = output.text.lstrip()
        if found.stop and found.stop in own:
            kept = output.text[: output.text.index(own) + own.index(found.stop)]
            output, notes = writer.output(prompt, kept)[0], {}
    else:
        if not answer.strip():
            raise InputError("the answer is empty or blank: there is no statement to explain.")
        output, warning = writer.output(prompt, answer if answer[0].isspace() else found.before + answer)
        if warning is not None and found.before:
            notes["border"] = warning
    lead = len(output.text) - len(output.text.lstrip())
    text = output.text.strip()
    if not text:
        raise InputError("the model's answer is blank: give the answer to explain (answer=).")
    shift = 0 if answer is None else len(answer) - len(answer.lstrip())
    wanted = sentence_spans(text) if spans is None else [(start - shift, end - shift) for start, end in spans]
    _check_spans(wanted, text)
    return _Told(text, output, wanted, _tokens(output, len(prompt.text) + lead, wanted, text), notes)


def _check_spans(spans: Sequence[tuple[int, int]], text: str) -> None:
    after = 0
    for start, end in spans:
        if not after <= start < end <= len(text) or not text[start:end].strip():
            raise InputError(
                f"the statement ({start}, {end}) is no part of the answer's {len(text)} characters, or blank, or over "
                "another one: give spans in order."
            )
        after = end
    if not spans:
        raise InputError("there is no statement: give at least one span, or leave statements out.")


def _tokens(output: Output, shift: int, spans: Sequence[tuple[int, int]], text: str) -> list[list[int]]:
    """The tokens of each statement: a token belongs where its first character is that is not white space.

    White space alone goes with the token after it.
    """
    owners: list[int | None] = []
    for start, end in output.spans:
        inside = [place - shift for place in range(start, end) if text[max(0, place - shift) :][:1].strip()]
        first = next((place for place in inside if 0 <= place < len(text)), None)
        owners.append(None if first is None else _span_of(first, spans))
    following = -1
    for number in reversed(range(len(owners))):
        following = owners[number] = following if owners[number] is None else owners[number]  # type: ignore[assignment]
    found = [[token for token, owner in enumerate(owners) if owner == number] for number in range(len(spans))]
    for number, tokens in enumerate(found):
        if not tokens:
            start, end = spans[number]
            raise InputError(f"the statement {text[start:end]!r:.40} has no token of its own: give a longer span.")
    return found


def _span_of(place: int, spans: Sequence[tuple[int, int]]) -> int:
    return next((number for number, (start, end) in enumerate(spans) if start <= place < end), -1)


def _cited(forced: ForcedAnswer, found: Asked, told: _Told, how: _How) -> Citations:
    source = found.source
    level = Level.sentences(source) if how.within == "sentence" else Level.sources(source)
    explained = _explained(forced, told, how, level)
    scores, within = _scores(forced, told, how, explained)
    pieces = len(source.of_source)
    ends = np.stack([np.ones(pieces, dtype=bool), np.zeros(pieces, dtype=bool)])
    full, empty = forced.log_probabilities(ends, told.tokens).tolist()
    lights = lit(forced, told.tokens, how.draws, how.seed) if how.draws else Lit.off(len(told.spans))
    return Citations(
        question=found.question,
        prompt=source.prompt.text,
        answer=told.text,
        sources=source.sources,
        sentences=source.sentences,
        statements=tuple(
            Statement(told.text[start:end], start, end, len(told.tokens[i]), full[i], empty[i], lights.origins[i])
            for i, (start, end) in enumerate(told.spans)
        ),
        scores=scores,
        within=within,
        intervals=_intervals(explained),
        checks=lights.checks,
        of=how.of,
        method=name_of(how.method),
        config=asdict(how.method),
        model=forced.name,
        template=found.template,
        removal=how.removal,
        seed=how.seed,
        evaluations=forced.passes,
        seconds=0.0,
        notes=told.notes,
        version=__version__,
    )


def _explained(forced: ForcedAnswer, told: _Told, how: _How, level: Level) -> list[Explanation]:
    model = Statements(forced, told.tokens, level)
    settings = Settings(PART, "statement", how.of, how.removal, how.seed)
    return run(prepare_stated(model, model.texts, settings), how.method)


def _intervals(explained: Sequence[Explanation]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Those of the sources, where the method samples and says how certain it is."""
    if not all("group_intervals" in e.notes for e in explained):
        return ()
    return tuple(tuple((low, high) for low, high in e.notes["group_intervals"]) for e in explained)


def _scores(
    forced: ForcedAnswer, told: _Told, how: _How, explained: Sequence[Explanation]
) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float | None, ...], ...]]:
    """Scores of the sources, and of the sentences that the method looked at."""
    sentences, homes = len(forced.source.sentences), forced.source.homes
    if how.within == "source":
        return tuple(e.scores for e in explained), ((None,) * sentences,) * len(explained)
    within: list[tuple[float | None, ...]] = []
    for e in explained:
        known = set(e.notes.get("exact", range(sentences)))
        within.append(tuple(score if k in known else None for k, score in enumerate(e.scores)))
    if all("groups" in e.notes for e in explained):
        return tuple(tuple(e.notes["groups"]) for e in explained), tuple(within)
    if not how.adds_up:
        # What removing a source does is no sum of what removing its sentences one by one does.
        whole = _explained(forced, told, how, Level.sources(forced.source))
        return tuple(e.scores for e in whole), tuple(within)
    count = len(forced.source.sources)
    sums = [np.bincount(homes, weights=e.scores, minlength=count).tolist() for e in explained]
    return tuple(map(tuple, sums)), tuple(within)
