"""The subject of an audit: a model and texts, or a language model and its own answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import SIDES
from raison.core.model import LanguageModel
from raison.explaining.answers import Answers, answers_of, judged, own_answers
from raison.explaining.batch import check_model
from raison.explaining.given_texts import InputOptions, read_texts
from raison.explaining.ranking import fitting, leading_pairs
from raison.explaining.settings import Settings
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.writer import Writer
from raison.text.sourced import SourceTemplate


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """`answers` are those of a generative language model; `others` counts answers that are not its own."""

    model: LanguageModel
    texts: Sequence[Given]
    settings: Settings
    answers: Answers | None = None
    others: int = 0


def subject_of(
    model: LanguageModel | Writer,
    texts: Any,
    reading: InputOptions,
    settings: Settings | None,
    template: SourceTemplate | str | Path | None,
) -> AuditSubject:
    """The texts of a call, and the model that predicts them. Raises InputError, DataError."""
    if isinstance(model, Writer):
        return _written(model, texts, reading, settings, template)
    check_model(model)
    if template is not None:
        raise InputError("template= applies to generative language models only: leave it out.")
    settings = settings or Settings()
    given, settings = _read(reading, leading_pairs(model, texts, settings.truncate), settings)
    return AuditSubject(fitting(model, given), given, settings)


def _written(
    writer: Writer,
    texts: Any,
    reading: InputOptions,
    settings: Settings | None,
    template: SourceTemplate | str | Path | None,
) -> AuditSubject:
    """The model's own answers: the model does not decide what another answer rests on."""
    if not isinstance(writer, Generator):
        raise InputError(
            f"audit randomises the blocks of a model, which is impossible for {writer.name} behind a server: use "
            "compare or evaluate instead."
        )
    given = texts if isinstance(texts, Answers) else answers_of(writer, texts, template)
    answers = own_answers(writer, given)
    left, others = len(answers.answers), len(given.answers) - len(answers.answers)
    if others and left < 2:
        raise InputError(
            f"{writer.name} itself gives {left} of these {len(given.answers)} answers, and an audit needs at least 2: "
            "leave the answers out to audit the model's own."
        )
    explained = judged(writer, answers, replace(reading, unit=None if settings is None else settings.unit))
    return AuditSubject(
        explained.model, explained.texts, replace(settings or Settings(), unit=explained.unit), answers, others
    )


def _read(reading: InputOptions, texts: Any, settings: Settings) -> tuple[list[Given], Settings]:
    """The texts, and the settings with their unit."""
    if reading.units is None and reading.language is None:
        return read_texts(texts, reading.column), settings
    unit = settings.unit if reading.language is not None or reading.units in SIDES else None
    given, known = replace(reading, unit=unit).several(texts)
    return given, replace(settings, unit=known)
