"""Every mistake of a prompt, in plain words."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from raison.core.errors import MISTAKE, InputError, UnknownNameError
from raison.text.prompts.kinds import ChatStyle, Scoring

Shots = Sequence[tuple[str, str]]

_SLOT = re.compile(r"\{(text|label)\}")
_SHOT_KEYS = ("text", "label")


class PromptError(InputError):
    """A prompt with mistakes; the message lists all of them."""

    def __init__(self, where: str, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        shown = mistakes[0] if len(mistakes) == 1 else "".join(f"{MISTAKE}{mistake}" for mistake in mistakes)
        super().__init__(f"{where}: {shown}")


def slots(form: str) -> list[str]:
    """The names of a format's slots, in order. All other braces are text."""
    return _SLOT.findall(form)


def fill(form: str, text: str, label: str) -> str:
    """The format with its slots filled; the inserted text may contain braces."""
    values = {"text": text, "label": label}
    return _SLOT.sub(lambda match: values[match[1]], form)


def mistakes_in(values: Mapping[str, Any]) -> list[str]:
    """The mistakes in well-typed values of a prompt's fields; missing fields are not checked."""
    labels = values.get("labels")
    return [
        *_wrong_choice("chat", values.get("chat"), get_args(ChatStyle)),
        *_wrong_choice("scoring", values.get("scoring"), get_args(Scoring)),
        *_wrong_forms(values),
        *([] if labels is None else _wrong_labels(labels)),
        *_wrong_shots(values.get("shots", ()), labels),
        *(["`system` needs `chat`: plain text has no system message."] if _system_alone(values) else []),
    ]


def _system_alone(values: Mapping[str, Any]) -> bool:
    return values.get("system") is not None and values.get("chat") is None


def _wrong_choice(key: str, value: str | None, known: tuple[str, ...]) -> list[str]:
    return [] if value is None or value in known else [str(UnknownNameError(key, value, known))]


def _wrong_forms(values: Mapping[str, Any]) -> list[str]:
    shot, query = values.get("shot", ""), values.get("query", "")
    if not shot and not query:
        return ['give `shot` (such as "Text:{text}\\nLabel:{label}") or `query` (such as "Text:{text}\\nLabel:").']
    mistakes = []
    if shot and slots(shot) != ["text", "label"]:
        mistakes.append(f"`shot` needs one {{text}} and then one {{label}} slot, and has {_listed(shot)}.")
    if query and slots(query) != ["text"]:
        mistakes.append(f"`query` needs one {{text}} slot and no other, and has {_listed(query)}.")
    if values.get("shots") and not shot and values.get("chat") != "turns":
        mistakes.append("there are shots but no `shot`: give their format, with {text} and {label}.")
    return mistakes


def _listed(form: str) -> str:
    return ", ".join(f"{{{name}}}" for name in slots(form)) or "none"


def _wrong_labels(labels: Mapping[str, str]) -> list[str]:
    mistakes = []
    if len(labels) < 2:
        mistakes.append(f"`labels` needs at least two classes, each with its label word, and has {len(labels)}.")
    mistakes += [f"the label word of '{name}' is empty." for name, word in labels.items() if not word.strip()]
    first: dict[str, str] = {}
    for name, word in labels.items():
        if word.strip() and first.setdefault(word, name) != name:
            mistakes.append(
                f"'{first[word]}' and '{name}' have the same label word {word!r}: each class needs its own."
            )
    return mistakes


def _wrong_shots(shots: Shots, labels: Mapping[str, str] | None) -> list[str]:
    mistakes = []
    for number, (text, label) in enumerate(shots, start=1):
        if not text.strip():
            mistakes.append(f"shot {number} has no text.")
        if labels is not None and label not in labels:
            mistakes.append(f"shot {number}: {UnknownNameError('class', label, labels)}")
    return mistakes


def read_table(table: Mapping[str, Any], keys: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The fields of a TOML table that have the right type, and the table's mistakes."""
    mistakes = [str(UnknownNameError("key", key, keys)) for key in table if key not in keys]
    mistakes += (
        [] if "labels" in table else ['there is no [labels]: one line for each class, such as negative = " bad".']
    )
    values: dict[str, Any] = {}
    for key in (key for key in keys if key in table):
        reader, words = _READERS.get(key, (_text, "a text in quotes"))
        try:
            values[key] = reader(table[key])
        except TypeError:
            mistakes.append(f"`{key}` must be {words}.")
    return values, mistakes


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError
    return {name: _text(word) for name, word in value.items()}


def _shots(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or not all(
        isinstance(shot, dict) and set(shot) == set(_SHOT_KEYS) for shot in value
    ):
        raise TypeError
    return tuple((_text(shot["text"]), _text(shot["label"])) for shot in value)


_READERS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "labels": (_labels, "a table [labels] of classes and their label words in quotes"),
    "shots": (_shots, "a list of tables, each under its own [[shots]] with text and label (a class) in quotes"),
}
