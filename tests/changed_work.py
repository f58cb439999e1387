"""Changes to what a piece of work is about, between its start and the next one, that keep all names."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors.torch import load_file, save_file

from raison.jobs.identity import CONFIGURATION, DATA, SETTINGS, TOKENIZER, WEIGHTS
from tests.folder_content import tree


def _edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new))


def _other_weights(place: Path) -> None:
    """Of the same names and shapes, under the same name."""
    for path in place.glob("*/model.safetensors"):
        state = {name: 1.01 * value for name, value in load_file(path).items()}
        save_file(state, path, metadata={"format": "pt"})


def _other_vocabulary(place: Path) -> None:
    """Two words have changed their numbers."""
    for path in place.glob("*/tokenizer.json"):
        held = json.loads(path.read_text())
        words = held["model"]["vocab"]
        one, other = list(words)[-2:]
        words[one], words[other] = words[other], words[one]
        path.write_text(json.dumps(held))


def _other_configuration(place: Path) -> None:
    _edited(place / "tiny" / "config.json", '"layer_norm_eps": 1e-12', '"layer_norm_eps": 0.001')
    _edited(place / "writer" / "config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.001')


def _other_text(place: Path) -> None:
    lines = (place / "words.tsv").read_text().splitlines(keepends=True)
    lines[2] = f"really {lines[2]}"
    (place / "words.tsv").write_text("".join(lines))
    _edited(place / "data/squad/squad_v1.1_trainpart_dev.json", "who saw it 2?", "who really saw it 2?")


def _other_settings(place: Path) -> None:
    (place / "settings.json").write_text('{"metric": "entropy", "epochs": 2, "seed": 1}')
    _edited(place / "comparison.toml", '"gini"', '"entropy"')
    _edited(place / "trainings.toml", "epochs = 1", "epochs = 2")
    _edited(place / "trust.toml", "steps = 3", "steps = 4")


CHANGES: Mapping[str, Callable[[Path], None]] = {
    WEIGHTS: _other_weights,
    TOKENIZER: _other_vocabulary,
    CONFIGURATION: _other_configuration,
    DATA: _other_text,
    SETTINGS: _other_settings,
}
"""What can become another one between two starts, by the name that errors use -> makes it so in a prepared place."""


@contextmanager
def changed(place: Path, what: str) -> Iterator[None]:
    """Inside, the work is about something else of the same name."""
    before = tree(place)
    CHANGES[what](place)
    try:
        yield
    finally:
        for name, held in before.items():
            (place / name).write_bytes(held)
