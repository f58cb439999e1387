"""The card that a training run writes with its adapter: data, settings, versions, accuracy, the command."""

import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from raison.data.dataset import Dataset
from raison.jobs.disk import write_whole
from raison.models.loading.ready_made import base_weights
from raison.models.loading.ready_made.adapter_bases import weights_digest
from raison.models.loading.ready_made.zoo import CARD
from raison.numerics.measures.class_scores import ClassScores

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LIBRARIES = ("torch", "transformers", "peft")
_LAST = 100
"""Number of last steps whose mean loss is recorded as final."""
_PASSING = ("progress", "checkpoint_every")
"""Settings that do not change what is trained, and may differ when a run is resumed."""


@dataclass(frozen=True, slots=True)
class TrainingCall:
    """The call that started a training: its command, and when it began."""

    command: str
    started: float
    """By time.monotonic."""

    @classmethod
    def now(cls, command: str = "") -> "TrainingCall":
        return cls(command, time.monotonic())

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run: training rows, mean loss (nats) of its last steps, seconds since its last start."""

    rows: int
    final_loss: float
    seconds: float
    scores: Mapping[str, ClassScores]
    """The scores of each measured split."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The starting point of a run. `base` holds the base model's name and the sha256 of its weights."""

    base: Mapping[str, str]
    labels: tuple[str, ...]
    data: Mapping[str, Dataset]
    settings: Mapping[str, Any]
    command: str


def determining(settings: "DataclassInstance") -> dict[str, Any]:
    """The settings that determine a training's result, for its card and for the check that a run is the same."""
    return {name: value for name, value in asdict(settings).items() if name not in _PASSING}


def base_entry(base: str) -> dict[str, str]:
    """A card's entry for a base: its name or folder, and the sha256 of its weights ("" for an id of the Hub)."""
    if os.path.isdir(base):
        return {"name": base, "sha256": weights_digest(Path(base))}
    if base not in base_weights.names():
        return {"name": base, "sha256": ""}
    known = base_weights.base_named(base)
    return {"name": known.hub, "sha256": known.sha256}


def final_loss(losses: Sequence[float]) -> float:
    """The mean loss of the last steps."""
    return fmean(losses[-_LAST:])


def make_card(setup: Setup, outcome: Outcome) -> dict[str, Any]:
    """The card as plain JSON values."""
    return {
        "base": setup.base["name"],
        "base_sha256": setup.base["sha256"],
        "labels": list(setup.labels),
        "data": {
            name: {"name": split.name, "sha256": split.sha256, "rows": len(split)} for name, split in setup.data.items()
        },
        "settings": dict(setup.settings),
        "training": {
            "threads": torch.get_num_threads(),
            "rows": outcome.rows,
            "final_loss": round(outcome.final_loss, 4),
            "seconds": round(outcome.seconds),
        },
        "versions": _versions(),
        "command": setup.command,
        "accuracy": {name: round(scores.accuracy, 4) for name, scores in outcome.scores.items()},
        "f1": {name: scores.to_dict(setup.labels) for name, scores in outcome.scores.items()},
    }


def described(card: Mapping[str, Any], split: str) -> str:
    """ "accuracy 0.8500, macro F1 0.8400 (negative 0.8300, positive 0.8500)" of one of a card's splits."""
    f1 = card["f1"][split]
    classes = ", ".join(
        f"{name} {'none' if value is None else f'{value:.4f}'}" for name, value in f1["classes"].items()
    )
    return f"accuracy {card['accuracy'][split]:.4f}, macro F1 {f1['macro']:.4f} ({classes})"


def run_notes(call: TrainingCall) -> dict[str, Any]:
    """The record of any training run, as plain JSON values; `peak_bytes` is the peak memory of the whole process."""
    return {
        "command": call.command,
        "seconds": round(call.seconds),
        "threads": torch.get_num_threads(),
        "peak_bytes": peak_bytes(),
        "versions": _versions(),
    }


def provenance_of(data: Sequence[Dataset], settings: "DataclassInstance", call: TrainingCall) -> dict[str, Any]:
    """The texts, the settings and the run, for the card of a trained explainer."""
    return {
        "data": [{"name": one.name, "sha256": one.sha256, "rows": len(one)} for one in data],
        "settings": determining(settings),
        **run_notes(call),
    }


def peak_bytes() -> int | None:
    """The highest memory use of this process so far; None if the platform does not report it."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def write_card(out: Path, card: Mapping[str, Any]) -> None:
    """Write card.json, and README.md for people."""
    write_whole(out / "README.md", _page(card))
    # Written last: an adapter with a card is finished.
    write_whole(out / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def _page(card: Mapping[str, Any]) -> str:
    measured = "; ".join(f"{name} {described(card, name)}" for name in card["accuracy"])
    train, test = card["data"]["train"], card["data"]["test"]
    return f"""# Adapter: {", ".join(card["labels"])}

LoRA adapter for `{card["base"]}`, trained on `{train["name"]}`: {card["training"]["rows"]} of {train["rows"]} rows.

Measured, F1 also per class: {measured} (test: the {test["rows"]} rows of `{test["name"]}`, used once, after training).

```
{card["command"]}
```

Settings, checksums of the data and library versions are in `{CARD}`.
"""
