"""What is said of an error that another library raised."""

import pytest

from raison.core.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a reason"), "a reason"),
        (ValueError("\n  a reason\nand its traceback"), "a reason"),
        (NotImplementedError(), "NotImplementedError"),
        (RuntimeError(" \n"), "RuntimeError"),
    ],
)
def test_the_first_line_that_says_something(error: Exception, line: str) -> None:
    assert first_line(error) == line
