"""What is audited: a model and texts, or a language model and answers that it gives itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.inputs.parts import Given
from raison.core.model import LanguageModel
from raison.explaining.answers import Answers, answers_of, judged, own_answers
from raison.explaining.attribution import Settings, check_model
from raison.explaining.ranking import fitting
from raison.explaining.texts import SIDES, Reading, read_texts
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.writer import Writer
from raison.text.sourced import SourceTemplate


@dataclass(frozen=True, slots=True)
class Subject:
    """`answers` are those of a language model that writes; `others` counts those that it does not give itself."""

    model: LanguageModel
    texts: Sequence[Given]
    settings: Settings
    answers: Answers | None = None
    others: int = 0


def subject_of(
    model: LanguageModel | Writer,
    texts: Any,
    reading: Reading,
    settings: Settings | None,
    template: SourceTemplate | str | Path | None,
) -> Subject:
    """Texts as a call gives them, and the model that predicts them. Raises InputError, DataError."""
    if isinstance(model, Writer):
        return _written(model, texts, reading, settings, template)
    check_model(model)
    if template is not None:
        raise InputError("template= puts questions to a language model that writes: leave it out.")
    given, settings = _read(reading, texts, settings or Settings())
    return Subject(fitting(model, given), given, settings)


def _written(
    writer: Writer,
    texts: Any,
    reading: Reading,
    settings: Settings | None,
    template: SourceTemplate | str | Path | None,
) -> Subject:
    """Answers that the model gives itself: what another answer rests on, it does not decide."""
    if not isinstance(writer, Generator):
        raise InputError(
            f"audit fills the blocks of a model with random values, and {writer.name} is behind a server: compare and "
            "evaluate judge explanations of what it wrote."
        )
    told = texts if isinstance(texts, Answers) else answers_of(writer, texts, template)
    answers = own_answers(writer, told)
    left, others = len(answers.answers), len(told.answers) - len(answers.answers)
    if others and left < 2:
        raise InputError(
            f"{writer.name} itself gives {left} of these {len(told.answers)} answers, and an audit needs at least 2: "
            "leave the answers out, and what it writes is audited."
        )
    found = judged(writer, answers, replace(reading, unit=None if settings is None else settings.unit))
    return Subject(found.model, found.texts, replace(settings or Settings(), unit=found.unit), answers, others)


def _read(reading: Reading, texts: Any, settings: Settings) -> tuple[list[Given], Settings]:
    """The texts, and the settings with what receives a score in them."""
    if reading.units is None and reading.language is None:
        return read_texts(texts, reading.column), settings
    unit = settings.unit if reading.language is not None or reading.units in SIDES else None
    given, known = replace(reading, unit=unit).several(texts)
    return given, replace(settings, unit=known)
