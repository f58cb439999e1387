"""Small versions of study files for a rehearsal (rehearse.py): few short texts, one epoch, one seed."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from raison.data.named import named

JUDGED, LEARNED, TESTED = 2, 20, 10
"""Texts that a comparison judges, that a training learns from, and that trained models are judged on."""
WORDS = 16
"""Maximum words of a text: longer texts are left out, or cut in data sets without shorter ones."""
LONG = ("imdb", "eraser_movies")


def smaller(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same study with few texts, epochs and steps."""
    small: dict[str, Any] = copy.deepcopy(dict(table))
    for data in small.get("data", {}).values():
        _shorten(data, JUDGED)
    for model in small.get("models", {}).values():
        if made := model.get("made"):
            made["epochs"] = 1
            for data in (made[key] for key in ("train", "held_out") if key in made):
                _shorten(data, LEARNED)
    for task in small.get("tasks", {}).values():
        task["even_at_chance"] = True
        _shorten(task["train"], LEARNED)
        for data in (task[key] for key in ("test", "dev") if key in task):
            _shorten(data, TESTED)
    if small.get("kind") == "trainings":
        small["seeds"] = small.get("seeds", [0])[:1]
        for part in ("plain", "training"):
            small.setdefault(part, {})["epochs"] = 1
        # A tenth of so few texts would be too few for a criterion that compares them.
        small["training"]["validation"] = 4
        for training in small["trainings"]:
            if texts := training.get("grid", {}).get("texts"):
                training["grid"]["texts"] = [8 + number for number in range(len(texts))]
    for part, few in (
        ("randomisation", {"texts": 1}),
        ("attacks", {"texts": 1, "steps": 3}),
        ("examples", {"texts": 2}),
    ):
        if part in small:
            small[part] |= few
    return small


def _shorten(data: dict[str, Any], rows: int) -> None:
    data["limit"] = min(rows, data.get("limit", rows))
    if data["source"] in LONG:
        data["first_words"] = min(WORDS, data.get("first_words", WORDS))
        # The first reviews of the file are all of one class.
        data.setdefault("sample", 0)
    elif data["source"] in named():
        data["longest"] = min(WORDS, data.get("longest", WORDS))


def as_toml(table: Mapping[str, Any]) -> str:
    """A parsed study as a TOML file, each top-level entry on one line."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in table.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
