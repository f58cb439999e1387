"""What is said of an error that another library raised."""

import pytest

from raison.core.errors import UnknownNameError, first_line


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [("eps", "'epsilon'"), ("att", "'attention_flow' or 'attention_last'"), ("stebs", "'steps'"), ("zzz", None)],
)
def test_what_may_have_been_meant(name: str, hint: str | None) -> None:
    said = str(UnknownNameError("key", name, ["epsilon", "steps", "attention_last", "attention_flow"]))
    assert (f"Did you mean {hint}?" in said) if hint else ("Did you mean" not in said)
