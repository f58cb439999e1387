"""Every command on bad input: exit code 2 and one line, whatever is wrong with it."""

import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import huggingface_hub.constants
import pytest

from raison.cli import main
from raison.core.results.printable import printable
from tests.apart import started
from tests.tiny import TINY

LONG = "x" * 5000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder.parent / "empty.tsv").write_text("")
    (folder.parent / "binary.tsv").write_bytes(bytes(range(256)) * 20)
    (folder.parent / "foreign.jsonl").write_text('{"id": 7, "tags": ["a"]}\n[1, 2]\n"x"\nnull\n')
    (folder.parent / "fine.tsv").write_text("text\tlabel\nfine film\tpositive\nbad film\tnegative\n")
    return folder


MODEL = ("-m", "{model}")
FILES = ("{base}/none.tsv", "{base}", "{base}/empty.tsv", "{base}/binary.tsv", "{base}/foreign.jsonl", LONG, "\ud800")
COMMANDS = {
    "compare": ("compare", *MODEL, "--methods", "random", "--metrics", "sufficiency", "--data"),
    "audit": ("audit", *MODEL, "--data"),
    "estimate": ("estimate", *MODEL, "--data"),
    "study check": ("study", "check"),
    "study run": ("study", "run"),
    "report": ("report",),
    "train": (
        "train",
        "classifier",
        "--base",
        "{model}",
        "--out",
        "{base}/out",
        "--test",
        "{base}/fine.tsv",
        "--train",
    ),
}
OTHERS = {
    "device": ("explain", "fine", *MODEL, "--device", "cud"),
    "cuda": ("explain", "fine", *MODEL, "--device", "cuda:99"),
    "dtype": ("explain", "fine", *MODEL, "--dtype", "float7"),
    "unit": ("explain", "fine", *MODEL, "--unit", "letter"),
    "method": ("explain", "fine", *MODEL, "--method", "lime(samples='many')"),
    "method that is code": ("explain", "fine", *MODEL, "--method", "__import__('os').getcwd()"),
    "long method": ("explain", "fine", *MODEL, "--method", LONG),
    "target": ("explain", "fine", *MODEL, "--target", "99999999999999999999"),
    "removal": ("explain", "fine", *MODEL, "--removal", "\x1b[31m"),
    "blank": ("explain", " \n", *MODEL),
    "page over a folder": ("explain", "fine", *MODEL, "--method", "random", "--html", "{base}"),
    "page with a long name": ("explain", "fine", *MODEL, "--method", "random", "--html", LONG),
    "no model": ("explain", "fine", "-m", "none/none"),
    "long model": ("explain", "fine", "-m", LONG),
    "long path": ("doctor", LONG + "/" + LONG),
    "empty model": ("explain", "fine", "-m", ""),
    "half a character": ("explain", "fine", "-m", "\ud800"),
    "file as model": ("explain", "fine", "-m", "{base}/fine.tsv"),
    "folder without a model": ("doctor", "{base}"),
    "prompt": ("explain", "fine", *MODEL, "--prompt", LONG),
}
BAD = OTHERS | {
    f"{name} {place}": (*command, file) for name, command in COMMANDS.items() for place, file in enumerate(FILES)
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    places = {"{model}": str(folder), "{base}": str(folder.parent)}
    arguments = list(BAD[name])
    for key, value in places.items():
        arguments = [argument.replace(key, value) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["raison", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 2, said
    lines = [line for line in said.splitlines() if line.startswith("raison: ")]
    # The command line's own parser says in a box what it lacks.
    assert len(lines) == 1 or "Usage:" in said
    assert "Traceback" not in said
    assert "\x1b[31m" not in said


def test_standard_input_that_is_no_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["raison", "explain", "-", "-m", str(folder)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\x00"), encoding="utf-8"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "standard input is not UTF-8 text" in capsys.readouterr().err


def test_a_text_from_standard_input_ends_where_it_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(text: str, stdin: bytes = b"") -> str:
        monkeypatch.setattr(sys, "argv", ["raison", "explain", text, "-m", str(folder), "-M", "random", "--json"])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with suppress(SystemExit):
            main()
        return str(json.loads(capsys.readouterr().out)["text"])

    assert said("-", b"a dull plot\n") == said("a dull plot") == "a dull plot"
    assert said("-", b"a dull plot\r\n") == "a dull plot"
    assert said("-", b"a dull plot\n\n") == "a dull plot\n"


def test_what_moves_a_terminal_is_shown_as_an_escape() -> None:
    assert printable("a\x1b[31mb\x07\u202ec\nd\ud800é海") == r"a\x1b[31mb\x07\u202ec\x0ad\ud800é海"
    assert printable("a\nb", keep="\n") == "a\nb"


@pytest.mark.parametrize("command", [("--help",), ("methods",), ("bibtex", "lime")])
def test_nobody_reads_the_output(command: tuple[str, ...]) -> None:
    """As in `raison ... | head -0`: no traceback, and nothing about a pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from raison.cli import main; main()", *command],
            check=False,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_nobody_reads_an_explanation(folder: Path, tmp_path: Path) -> None:
    """The same of a command that needs torch, which a fork has imported."""
    said = tmp_path / "said.txt"
    process = started(partial(unread, ["explain", "fine", "--model", str(folder)]), said)
    process.join()
    assert said.read_text() == ""
    assert process.exitcode in (0, 1)


def unread(words: list[str]) -> None:
    """The command line in this process, up to what Python does at its end; nobody reads what it writes."""
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    # The one that is there was made for a file.
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.argv = ["raison", *words]
    try:
        main()
    finally:
        sys.stdout.flush()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("explain", "fine", "--method", "occlusio"), "unknown method 'occlusio'"),
        (("explain", "fine", "--method", "lime", "--budget", "9"), "budget= is for method='auto'"),
        (("explain", "fine", "--select", "sufficienc"), "unknown metric 'sufficienc'"),
        (("explain", "--data", "{base}/fine.tsv", "--out", "{base}/e", "--method", "occlusio"), "unknown method"),
        (("cite", "Who?", "--source", "{base}/fine.tsv", "--method", "occlusio"), "unknown method 'occlusio'"),
        (("cite", "Who?", "--source", "{base}/fine.tsv", "--seed", "-1"), "seed cannot be -1"),
    ],
)
def test_what_no_model_could_do_is_told_before_one_is_loaded(
    command: tuple[str, ...],
    said: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [part.format(base=folder.parent) for part in command]
    monkeypatch.setattr(sys, "argv", ["raison", *given, "-m", "none/none"])
    with pytest.raises(SystemExit):
        main()
    assert f"raison: {said}" in capsys.readouterr().err
