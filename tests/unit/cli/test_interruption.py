"""What an interrupted command says of what is kept, by its options."""

import sys
from pathlib import Path

import pytest
import typer

from raison.cli.interruption import Keeping, interruptible

KEPT, NOTHING = "what an earlier run has written is kept. To resume:", "nothing is kept"


@pytest.mark.parametrize(
    ("keeping", "options", "said"),
    [
        ("nothing", {}, NOTHING),
        ("folder", {}, KEPT),
        ("out", {"out": None}, f"{NOTHING}, because --out was not given"),
        ("out", {"out": Path("here")}, KEPT),
        ("data", {"data": None}, NOTHING),
        ("data", {"data": ["a.csv"]}, KEPT),
        ("data and out", {"data": None, "out": None}, NOTHING),
        ("data and out", {"data": ["a.jsonl"], "out": None}, f"{NOTHING}, because --out was not given"),
        ("data and out", {"data": ["a.jsonl"], "out": Path("here")}, KEPT),
    ],
)
def test_what_is_kept(
    keeping: Keeping,
    options: dict[str, object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["raison", "cite"])

    def command(**_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as stopped:
        interruptible(keeping)(command)(**options)
    assert stopped.value.exit_code == 130
    assert capsys.readouterr().err.startswith(f"raison: interrupted; {said}")


def test_cite_keeps_what_it_wrote_to_a_folder() -> None:
    """Its options have the names that the message looks for."""
    from raison.cli import app

    [command] = [one.callback for one in app.registered_commands if one.name == "cite"]
    assert {"data", "out"} <= set(vars(command)["__signature__"].parameters)
