"""The state of a training run on disk: everything that it needs to resume as if it had never stopped."""

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from raison.core.errors import DataError, InputError, first_line
from raison.jobs import disk

DIGEST_BYTES = hashlib.sha256().digest_size
RandomState = list[Tensor]
"""The CPU's generator, then one for every CUDA device."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best value of one score, the step at which it was measured, and the trainable weights at that step.

    `weights` is empty if they are not kept. Scores that were best at the same step share one dictionary.
    """

    step: int
    value: float
    weights: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)


@dataclass(slots=True)
class Progress:
    """How far a run is: steps done, the loss of each, the scores of each evaluation, made after `steps` steps.

    `stopped`: the run ended before its last step and will not continue.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    best: dict[str, Best] = field(default_factory=dict)
    stopped: bool = False


def trainable_state(module: nn.Module) -> dict[str, Tensor]:
    """A copy of everything that training changes: the module's state without its frozen parameters."""
    frozen = {name for name, parameter in module.named_parameters() if not parameter.requires_grad}
    return {name: value.detach().clone() for name, value in module.state_dict().items() if name not in frozen}


def load_trainable_state(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Put back what `trainable_state` copied."""
    module.load_state_dict(state, strict=False)


def save(path: Path, run: str, module: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Write a checkpoint of the run named `run`; a kill in the middle keeps the previous one.

    The file begins with the digest of the rest.
    """
    content = {
        "run": run,
        "module": trainable_state(module),
        "optimizer": optimizer.state_dict(),
        "random": random_state(),
        "step": progress.step,
        "losses": progress.losses,
        "scores": progress.scores,
        "steps": progress.steps,
        # Weights that several scores share are written once, and are shared again when read.
        "best": {name: (best.step, best.value, best.weights) for name, best in progress.best.items()},
        "stopped": progress.stopped,
    }
    with disk.whole_file(path) as part, part.open("wb+") as file:
        try:
            file.write(bytes(DIGEST_BYTES))
            torch.save(content, file)
            file.seek(DIGEST_BYTES)
            digest = hashlib.file_digest(file, "sha256").digest()
            file.seek(0)
            file.write(digest)
        except RuntimeError as error:
            # torch has an error of its own for one of the disk.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise DataError(f"cannot write {path}: {first_line(error)}. The previous checkpoint is intact.") from error


def restore(path: Path, run: str, module: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Load a checkpoint into the module, the optimizer and torch's generators; a fresh Progress if there is none.

    Raises InputError if the file is no checkpoint, or belongs to a run with other settings or data.
    """
    if not path.exists():
        return Progress()
    content = _read(path)
    if content["run"] != run:
        raise InputError(
            f"the checkpoint {path} belongs to a run with other settings or data. "
            "Repeat that run's command, or delete the file to start afresh."
        )
    load_trainable_state(module, content["module"])
    optimizer.load_state_dict(content["optimizer"])
    set_random_state(content["random"])
    best = {name: Best(*parts) for name, parts in content["best"].items()}
    numbers = (content["step"], content["losses"], content["scores"], content["steps"])
    return Progress(*numbers, best=best, stopped=content["stopped"])


def random_state() -> RandomState:
    """The state of torch's global generators."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]


def set_random_state(states: RandomState) -> None:
    """Put back what `random_state` returned."""
    torch.set_rng_state(states[0])
    if states[1:]:
        torch.cuda.set_rng_state_all(states[1:])


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = file.read(DIGEST_BYTES)
            # torch itself does not notice a changed weight.
            is_whole = hashlib.file_digest(file, "sha256").digest() == digest
            file.seek(DIGEST_BYTES)
            saved = io.BytesIO(file.read() if is_whole else b"")
    except OSError as error:
        raise InputError(f"cannot read the checkpoint {path}: {error}. Delete it to start afresh.") from error
    if not is_whole:
        raise InputError(
            f"{path} is not a checkpoint of this trainer, or was changed after it was written. Delete it to start "
            "afresh."
        )
    content: dict[str, Any] = torch.load(saved, map_location="cpu", weights_only=True)
    return content
