"""A method's input after its work: other methods and metrics of the batch read the same tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import torch
from torch import Tensor

from raison.core.errors import AnswerError
from raison.core.problem import Problem


@contextmanager
def unchanged(problem: Problem, method: str) -> Iterator[None]:
    """Raise AnswerError, at the end, if the method of this name changed a tensor of its texts or target in place.

    The values are compared, which are small, because not every way to write into a tensor counts its version up.
    """
    before = {name: tensor.clone() for name, tensor in _shared(problem)}
    yield
    changed = [f"problem.{name}" for name, tensor in _shared(problem) if not torch.equal(tensor, before[name])]
    if changed:
        raise AnswerError(
            f"{method} changed {' and '.join(changed)} in place, which other methods and metrics of the same texts "
            "read: clone it first."
        )


def _shared(problem: Problem) -> Iterator[tuple[str, Tensor]]:
    """The tensors that all methods of a batch share, by their names in the problem."""
    records: dict[str, object] = {"encoding": problem.encoding, "target": problem.target}
    if problem.encoding.reading is not None:
        records["encoding.reading"] = problem.encoding.reading
    for place, record in records.items():
        for field in fields(record):  # type: ignore[arg-type]
            if isinstance(value := getattr(record, field.name), Tensor):
                yield f"{place}.{field.name}", value
