"""Ctrl-C in every command that takes long: one line that says what is kept and how to go on, and the exit code 130.

SIGTERM, as schedulers send it, does the same with 143.
"""

import os
import re
import shlex
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from torch.nn.modules.module import register_module_forward_pre_hook

import raison
from raison.cli import app, main
from raison.cli.interruption import interruptible
from raison.data import RecordStore
from raison.jobs.folder import COMPARISON, read_marker, write_marker
from tests.apart import interrupted, started
from tests.patience import PATIENCE
from tests.work import prepare

LONG = "the film is a dull and quiet pleasure but not good for its loud end " * 3
DATA = "--data words.tsv --model tiny"
LASTS = "--data long.tsv --model tiny --methods 'kernel_shap(samples=40000)'"
LASTING = "--epochs 9999 --out out"
TRAIN = f"--train words.tsv {LASTING}"
KEPT = r"raison: interrupted; what is finished is kept in {out}\. To resume: raison {command}"
PAGES = r"raison: interrupted; the pages written so far are complete\. To write all of them: raison {command}"
NOTHING = r"raison: interrupted; nothing is kept.* To start again: raison {command}"
COMMANDS: dict[str, tuple[str, str, str]] = {
    "explain": (f"explain '{LONG}' --model tiny --method 'kernel_shap(samples=40000)'", "", NOTHING),
    "compare": (f"compare {LASTS} --out out", "run.json", KEPT),
    "compare in memory": (f"compare {LASTS}", "", NOTHING),
    "estimate": ("estimate --data long.tsv --model tiny --methods 'rpi(steps=200000)'", "", NOTHING),
    "report": ("report many --out out", "texts/many/0001.html", PAGES),
    "audit": (f"audit {LASTS} --out out --no-plots", "audit.json", KEPT),
    "study": ("study run comparison.toml --out out", "study.json", KEPT + " --resume"),
    "trainings": ("study run trainings.toml --out out", "trainings.json", KEPT + " --resume"),
    "trust": ("study run trust.toml --out out", "trust.json", KEPT + " --resume"),
    "classifier": (f"train classifier --base tiny {TRAIN} --test words.tsv", "training.json", KEPT),
    "scratch": (f"train scratch --architecture bert {TRAIN} --dev words.tsv", "training.json", KEPT),
    "aml": (
        f"train aml {DATA} --even-at-chance --weights 1,1,1 --texts 9 --validation 9 {LASTING}",
        "training.json",
        KEPT,
    ),
    "ivra": (f"train ivra {DATA} --even-at-chance --criteria comp {LASTING}", "training.json", KEPT),
}
"""What is typed, the file that says that it has begun, and what an interrupt then says."""
MANY = 4000
"""Texts of the run whose report is interrupted."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    prepare(tmp_path)
    lines = (f"{LONG} {number}\t{number % 2}\n" for number in range(40))
    (tmp_path / "long.tsv").write_text("text\tlabel\n" + "".join(lines))
    for name, old, new in (
        ("comparison", '["occlusion"]', '["kernel_shap(samples=3000)"]'),
        ("trainings", "epochs = 1", "epochs = 9999"),
        ("trust", "steps = 3", "steps = 99999"),
    ):
        path = tmp_path / f"{name}.toml"
        path.write_text(path.read_text().replace(old, new))
    return tmp_path


def many_texts(place: Path) -> None:
    """The records of a run of one text, as those of many."""
    run = place / "many"
    raison.compare(raison.load(place / "tiny"), ["a dull film"], ["occlusion"], ["gini"], out=run, progress=False)
    header = read_marker(run, COMPARISON)
    assert header is not None
    write_marker(run, COMPARISON, header | {"texts": MANY})
    for name in ("records", "explanations"):
        store = RecordStore(run / f"{name}.jsonl")
        records = store.read().records
        store.path.unlink()
        store.append(record | {"text": number} for number in range(MANY) for record in records)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(("name", "by"), [*((name, signal.SIGINT) for name in COMMANDS), ("compare", signal.SIGTERM)])
def test_an_interrupt_is_one_true_line(name: str, by: signal.Signals, place: Path) -> None:
    typed, marker, said = COMMANDS[name]
    if name == "report":
        many_texts(place)
    words, begun = shlex.split(typed), place / "out" / marker if marker else place / "begun"
    said_to, environment = place / "said.txt", {"RAISON_CACHE": str(place / "cache"), "HF_HUB_OFFLINE": "1"}
    process = started(partial(command, words, place, environment, None if marker else begun), said_to)
    deadline = time.monotonic() + PATIENCE
    while not begun.is_file():
        assert time.monotonic() < deadline
        assert process.is_alive(), said_to.read_text()
        time.sleep(0.01)
    time.sleep(0.1)
    interrupted(process, by)
    errors = said_to.read_text()
    last = errors.splitlines()[-1]
    assert process.exitcode == {signal.SIGINT: 130, signal.SIGTERM: 143}[by], errors
    assert re.fullmatch(said.format(out="out", command=re.escape(shlex.join(words))), last), last
    # What Python says of an interrupt that it dropped is not ours.
    ours = re.sub(r"Exception ignored in.*?\nKeyboardInterrupt[^\n]*\n", "", errors, flags=re.DOTALL)
    assert "Traceback" not in ours
    assert errors.count("raison: interrupted") == 1
    assert begun.exists()


def command(words: list[str], place: Path, environment: dict[str, str], begun: Path | None) -> None:
    """The command line in this process. What has no file of its own has begun when the model is asked."""
    os.chdir(place)
    os.environ.update(environment)
    sys.argv = ["raison", *words]
    if begun is not None:
        register_module_forward_pre_hook(lambda *_: begun.touch())
    main()


def test_every_command_that_takes_long_says_it() -> None:
    """Those that are over at once need not, nor the server, which runs until it is told to end."""
    quick = {"methods", "metrics", "bibtex", "serve"}
    named = {command.name or command.callback.__name__: command.callback for command in app.registered_commands}
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            named[command.name or command.callback.__name__] = command.callback
    wrapped = interruptible("nothing")(lambda: None).__code__
    assert {name for name, callback in named.items() if callback.__code__ is not wrapped} == quick
