"""Explanations logged to a run of MLflow or Weights & Biases, through the artifact call that both have."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.report.pages.saving import save
from raison.report.style.phrases import AnyExplanation

FORMS = (".html", ".json")
"""A page for people, and the numbers."""


@runtime_checkable
class Tracker(Protocol):
    """Logs files to a run: the module `mlflow`, or the return value of `wandb.init()`."""

    def log_artifact(self, path: str, /) -> object:
        """Log a file."""


def log(e: AnyExplanation | Sequence[Explanation], run: Tracker, name: str = "explanation") -> None:
    """Log an explanation, or several of one text, to a run: its page and its JSON, as `name`.html and `name`.json.

    `run` is the module `mlflow` while a run is active, or a run of Weights & Biases. Raises InputError for another.
    """
    if not isinstance(run, Tracker):
        raise InputError(
            f"{type(run).__name__} has no log_artifact: give the module mlflow, or the run returned by wandb.init()."
        )
    if Path(name).name != name:
        raise InputError(f"name is {name!r:.80}: give a file name without extension or folder.")
    # Both libraries copy a file before the call returns.
    with TemporaryDirectory() as folder:
        for form in FORMS:
            run.log_artifact(str(save(e, Path(folder) / f"{name}{form}")))
