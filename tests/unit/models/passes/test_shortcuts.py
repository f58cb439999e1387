"""A shortcut that a model cannot take is left; what ends the work is raised."""

import pytest
import torch

from raison.core.errors import ForwardError, InputError
from raison.models.passes.shortcuts import tried


def failing(error: BaseException) -> None:
    raise error


def test_what_it_gives() -> None:
    assert tried(lambda: 3) == 3


@pytest.mark.parametrize(
    "error", [ForwardError("it", ["a reason"]), RuntimeError("a shape"), IndexError(), AssertionError()]
)
def test_a_failure_of_the_model_is_none(error: BaseException) -> None:
    assert tried(lambda: failing(error)) is None


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), InputError("stop"), KeyboardInterrupt()])
def test_what_ends_the_work_is_raised(error: BaseException) -> None:
    with pytest.raises(type(error)):
        tried(lambda: failing(error))
