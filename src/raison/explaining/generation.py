"""Explain outputs of a language model: every output token as a prediction after the prompt and earlier tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from raison._version import __version__
from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText
from raison.core.inputs.unit import PART
from raison.core.method import Method
from raison.core.note_names import COMPLETENESS_GAP, EXTENDED, UNKNOWN_TOKENS
from raison.core.problem import StandIn
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation, OutputToken
from raison.core.targets.choices import is_whole_number, plain_number
from raison.core.targets.target import Target
from raison.explaining.attribution import run
from raison.explaining.batch import Batch, prepare
from raison.explaining.provenance import method_of, noise_of, said
from raison.explaining.settings import Settings
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import ContinuationEncoder, Output, TokenizedPrompt
from raison.models.tokens.spelling import respelled
from raison.text.named import extended

OutputContrast = None | str | int | Sequence[str | int]
"""A word or token id that every output token is contrasted with, or one for each output token."""

NEW_TOKENS = 20


@dataclass(frozen=True, slots=True)
class Writing:
    """What is explained for a prompt: a given output or the model's own, its contrast, and its units."""

    output: str | None = None
    max_new_tokens: int | None = None
    contrast: OutputContrast = None
    earlier: bool = False

    def __post_init__(self) -> None:
        if self.output is not None and self.max_new_tokens is not None:
            raise InputError("max_new_tokens limits the model's own output: leave it out when output= is given.")

    @property
    def given(self) -> list[str]:
        """Names of the settings that differ from their defaults."""
        return [name for name, value in asdict(self).items() if value is not None and value is not False]


def writings(
    output: str | Iterable[str] | None, max_new_tokens: int | None, contrast: OutputContrast, earlier: bool
) -> Writing | list[Writing]:
    """What is explained for all prompts, or a list with that of each."""
    others = (max_new_tokens, contrast, earlier)
    if output is None or isinstance(output, str) or not isinstance(output, Iterable):
        return Writing(output, *others)
    return [Writing(one, *others) for one in output]


def for_each(writing: Writing | list[Writing], prompts: int, single: bool) -> list[Writing]:
    """What is explained for each prompt. InputError for a list of another length, or for a single prompt."""
    if not isinstance(writing, list):
        return [writing] * prompts
    if single:
        raise InputError("output= is a list, and there is one prompt: give the output's text.")
    if len(writing) != prompts:
        raise InputError(f"{len(writing)} outputs for {prompts} prompts: a list needs one for each prompt.")
    return writing


def explain_generation(
    generator: Writer,
    prompt: str | PartedText | Chat,
    method: Method,
    settings: Settings,
    writing: Writing,
) -> GenerationExplanation:
    """Score the prompt's units, and with `earlier` the previous output tokens, for each token of an output.

    All output tokens have the same units and draws. A masked prompt is therefore run once with the whole output after
    it, and a point of a gradient's path takes one forward pass. Raises InputError, TextTooLongError, UnsupportedError.
    """
    _check(settings)
    source = generator.prompt(prompt)
    output, notes = _output(generator, source, writing)
    against = _against(generator, source, output, writing.contrast, settings.of)
    rows = ContinuationEncoder(source, output, writing.earlier, against=against)
    tokens = tuple(dict.fromkeys([*output.ids, *(against or ())]))
    reader = generator.reader(rows, tokens)
    index = [tokens.index(token) for token in output.ids]
    batch = prepare(reader, rows.texts, replace(settings, target=index))
    other = None if against is None else torch.tensor([tokens.index(token) for token in against])
    batch = batch.towards(Target(batch.target.index, other, batch.target.of))
    explained = run(batch, method)
    return _result(batch, rows, method, explained, notes)


def _check(settings: Settings) -> None:
    if settings.target is not None:
        raise InputError(
            "a generative language model has no classes for target=: every output token is explained; name the "
            "alternative with contrast=."
        )
    if settings.truncate:
        raise InputError("truncate= applies to classified texts only: shorten the prompt yourself.")


def _output(generator: Writer, source: TokenizedPrompt, writing: Writing) -> tuple[Output, dict[str, object]]:
    if writing.output is not None and not isinstance(writing.output, str):
        raise InputError(f"output= is {writing.output!r:.40}: give the output's text, or leave it out.")
    if writing.output is None:
        count = NEW_TOKENS if writing.max_new_tokens is None else writing.max_new_tokens
        return generator.continuation(source, count), {}
    output, warning = generator.output(source, writing.output)
    return output, ({} if warning is None else {"border": warning}) | respelled(writing.output, output.text)


def _against(
    generator: Writer, source: TokenizedPrompt, output: Output, contrast: OutputContrast, of: str | None
) -> tuple[int, ...] | None:
    """The token that each output token is contrasted with; without one, a margin takes the likeliest other token."""
    if contrast is None:
        return generator.runners_up(source, output) if of == "margin" else None
    words = _listed(contrast, len(output.ids))
    if len(words) != len(output.ids):
        spelled = [output.token_text(number, source.text + output.text) for number in range(len(output.ids))]
        raise InputError(
            f"{len(words)} contrasts for {len(spelled)} output tokens {spelled!r:.200}: a list needs one for each."
        )
    for word in words:
        if not isinstance(word, str) and not is_whole_number(word):
            raise InputError(f"the contrast {word!r:.40} is not a word or a token id.")
    wanted = map(plain_number, words)
    return tuple(generator.token_after(source, output, number, word) for number, word in enumerate(wanted))


def _listed(contrast: object, count: int) -> list[Any]:
    """One for each of so many output tokens, of which a list, an array or a column may have its own."""
    if isinstance(contrast, str | bytes) or not isinstance(contrast, Iterable):
        return [contrast] * count
    return list(contrast)


def _result(
    batch: Batch, rows: ContinuationEncoder, method: Method, explained: list[Explanation], notes: dict[str, object]
) -> GenerationExplanation:
    made_by = method_of(explained, method)
    gaps = [e.notes[COMPLETENESS_GAP] for e in explained if COMPLETENESS_GAP in e.notes]
    if len(gaps) == len(explained):
        notes = {**notes, COMPLETENESS_GAP: sum(gaps)}
    parts = rows.prompt.parts
    wider = extended(PartedText(rows.prompt.text, parts), explained[0].units) if batch.settings.unit == PART else ()
    if wider:
        notes = {**notes, EXTENDED: list(wider)}
    notes = {
        **notes,
        **({UNKNOWN_TOKENS: explained[-1].notes[UNKNOWN_TOKENS]} if UNKNOWN_TOKENS in explained[-1].notes else {}),
        **noise_of(explained),
        **said(explained),
    }
    return GenerationExplanation(
        prompt=rows.prompt.text,
        output=rows.output.text,
        tokens=tuple(_token(batch, rows, number, e, made_by) for number, e in enumerate(explained)),
        unit=batch.settings.unit,
        units=explained[-1].units,
        scores=tuple(e.scores for e in explained),
        of=batch.target.of,
        method=made_by.method,
        config=made_by.config,
        model=batch.model.name,
        removal=batch.removal,
        seed=batch.settings.seed,
        seconds=sum(e.seconds for e in explained),
        earlier=rows.earlier,
        notes=notes,
        version=__version__,
        signed=made_by.signed,
    )


def _token(batch: Batch, rows: ContinuationEncoder, number: int, e: Explanation, made_by: StandIn) -> OutputToken:
    start, end = rows.output.spans[number]
    against = None if batch.target.against is None else int(batch.target.against[number])
    own = StandIn(e.method, e.config, e.signed)
    return OutputToken(
        text=rows.output.token_text(number, rows.prompt.text + rows.output.text),
        id=rows.output.ids[number],
        start=start,
        end=end,
        probability=e.probabilities[int(batch.target.index[number])],
        value_full=e.value_full,
        value_empty=e.value_empty,
        evaluations=e.evaluations,
        gradients=e.gradients,
        against=e.against,
        against_probability=None if against is None else e.probabilities[against],
        notes=e.notes,
        **({} if own == made_by else asdict(own)),
    )
