"""Every way to explain passes on all arguments of `raison.explain`: a forgotten one would be ignored silently."""

import ast
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from raison.explaining.explain import Options
from raison.explaining.settings import Settings

SOURCE = Path("src/raison")
ARGUMENTS = {*get_type_hints(Options)}
WRITING = {"output", "max_new_tokens", "contrast", "earlier"}
"""Of outputs; those of classifiers are units, select and threshold."""


def passed(path: str, function: str) -> set[str]:
    """The names of the arguments in a file's longest call, with those of the settings that stand for themselves."""
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == function]
    keywords = max((call.keywords for call in calls), key=len)
    named = {one.arg for one in keywords if one.arg is not None}
    starred = [ast.unparse(one.value) for one in keywords if one.arg is None]
    return named | {one.name for one in fields(Settings) if any("keywords()" in text for text in starred)}


@pytest.mark.parametrize(
    ("path", "elsewhere"),
    [
        # The text's column is the client's, and a budget becomes the method.
        ("web/server/calls.py", {"text", "budget"}),
        ("explaining/files/texts.py", {"text", "budget", *WRITING}),
        ("explaining/files/outputs.py", {"text", "budget", "units", "select", "threshold"}),
    ],
)
def test_every_argument_is_passed_on(path: str, elsewhere: set[str]) -> None:
    assert passed(path, "explain") | elsewhere == ARGUMENTS


def test_the_command_line_passes_every_argument() -> None:
    tree = ast.parse((SOURCE / "cli" / "explain.py").read_text(encoding="utf-8"))
    [shared] = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "options"]
    keys = {
        ast.literal_eval(key) for node in ast.walk(shared) if isinstance(node, ast.Dict) for key in node.keys if key
    }
    known = keys | {one.name for one in fields(Settings)} | passed("cli/explain.py", "run")
    assert known | {"text", "progress"} == ARGUMENTS
