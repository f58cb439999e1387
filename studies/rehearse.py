"""Runs the paper's study files whole on stand-ins: `python studies/rehearse.py [STUDY ...] [--out DIR]`.

STUDY is the name of a folder, or a file; by default every paper.toml is rehearsed. Tiny random models of the same
architecture replace those of the Hub (stand_ins.py). Data sets have a few short texts and trainings one epoch
(shortened.py). Explainers that a study needs are trained first. Methods, metrics, claims, figures, runs and settings
stay as they are. The command line's own code checks, runs and reports each study, and rehearsed.md gets a line for it.

With --out, all files are kept in DIR, and rehearsed.md is written there.
"""

import argparse
import contextlib
import hashlib
import os
import re
import shlex
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from shortened import JUDGED, LONG, TESTED, WORDS, as_toml, smaller
from stand_ins import LAYERS, UNNAMED, hub_rows, save_model, save_snli

from raison.cli import app
from raison.data.named import ROOT_VARIABLE, named
from raison.methods import CATALOGUE
from raison.methods.aml import Aml
from raison.studies.claims import verdicts
from raison.studies.kind import kind_of

FOLDER = Path(__file__).resolve().parent
DATA = FOLDER.parent.parent / "shared" / "data"
TABLE = "rehearsed.md"
RECORDS = ("records", "trainings", "similarities", "attacks")
_EXPLAINER = {"--rank": "0", "--weights": "0.7,0.5,0.3", "--texts": "16", "--validation": "24", "--epochs": "1"}
_INTRODUCTION = f"""# Rehearsals of the paper's files

`python studies/rehearse.py` runs each `paper.toml` whole, from `raison study check` to the report, on stand-ins: tiny
random models of the same architectures and tokenizers, {JUDGED} texts where methods are compared and {TESTED} where
models are trained, one epoch, one seed. Explainers that a study needs are trained first. The table shows that a file
runs from end to end on models of its shape: its methods, metrics, claims and figures exist, fit the architectures and
write what the report reads. It shows nothing about the paper's numbers: the models are random, and the verdicts on
claims are those that the rule gives for random models. "missing" would be a claim about a row that no run has. The
rehearsal does not cover the Hub itself, nor the memory and time that the real models need. Studies of Llama 2 or
Mistral with explainers run one prompt at a time, as README.md says. Seconds are processor time. If a file has changed
since (see the digest), rehearse it again.

| study | digest | records | claims | seconds | outcome |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Outcome:
    """The result of rehearsing a file; `trouble` is empty if it ran whole."""

    study: str
    digest: str
    records: int
    claims: Mapping[str, int]
    seconds: float
    trouble: str = ""

    @property
    def line(self) -> str:
        """Its line in the table."""
        claims = ", ".join(f"{count} {finding}" for finding, count in sorted(self.claims.items())) or "none"
        outcome = self.trouble or "runs whole"
        return f"| `{self.study}` | `{self.digest}` | {self.records} | {claims} | {self.seconds:.0f} | {outcome} |"


def digest_of(path: Path) -> str:
    """The digest that identifies a file in the table."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def rehearse(path: Path, place: Path) -> Outcome:
    """Rehearse one file in the folder `place`, with a log there."""
    started, study = time.process_time(), path.resolve().parent.name
    records, claims, trouble = 0, Counter[str](), ""
    for number, part in enumerate(parts(smaller(tomllib.loads(path.read_text(encoding="utf-8"))))):
        here = place / f"{study}-{number}"
        (here / study).mkdir(parents=True)
        with (here / "log.txt").open("w", encoding="utf-8", buffering=1) as log, _in(here, log):
            try:
                prepare(part, here)
                (here / study / path.name).write_text(as_toml(part), encoding="utf-8")
                folder = run(here / study / path.name)
                records += sum(_lines(one) for name in RECORDS for one in folder.rglob(f"{name}*.jsonl"))
                claims += Counter(verdict.finding for verdict in verdicts(kind_of(folder).results.read(folder)))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any error that stops a file is a result
                traceback.print_exc(file=log)
                trouble = " ".join(f"{type(error).__name__}: {error}".split())[:600].replace("|", "/")
                break
    if claims["missing"] and not trouble:
        trouble = "claims about rows that no run has"
    return Outcome(study, digest_of(path), records, claims, time.process_time() - started, trouble)


def run(file: Path) -> Path:
    """Run a study, which first checks it and estimates its cost, and make its report; returns its folder."""
    folder = Path("runs") / "whole"
    _raison("study", "run", str(file), "--out", str(folder))
    _raison("report", str(folder))
    return folder


def parts(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The study, or one for each prompt, because an explainer is found by its model's name, without the prompt."""
    prompts = {model.get("prompt") for model in table.get("models", {}).values()}
    if len(prompts) < 2 or not any(explainers(table)):
        return [dict(table)]
    shares = [
        [one for one in wanted(table) if table["models"][one["model"]].get("prompt") == prompt]
        for prompt in sorted(prompts)
    ]
    return [{**table, "runs": runs, "claims": _about(table, runs)} for runs in shares]


def _about(table: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The claims, without those about a method that all of these runs leave out."""
    out = set.intersection(*({*one.get("without", ())} for one in runs))
    return [
        claim
        for claim in table.get("claims", ())
        if out.isdisjoint(claim.get(key) for key in ("above", "below", "than"))
    ]


def wanted(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs of a comparison, or of a study of trust."""
    every = [{"model": model, "data": data} for model in table.get("models", {}) for data in table.get("data", {})]
    return table.get("runs") or every


def explainers(table: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None, list[str]]]:
    """For each run and each folder of explainers that it reads (None is the usual one): the metrics of its methods."""
    for one in wanted(table):
        by_folder: dict[str | None, list[str]] = {}
        for method in map(CATALOGUE.create, (m for m in table["methods"] if m not in one.get("without", ()))):
            if isinstance(method, Aml):
                by_folder.setdefault(method.checkpoint, []).append(method.metric or "comprehensiveness")
        for checkpoint, metrics in by_folder.items():
            yield one, checkpoint, list(dict.fromkeys(metrics))


def prepare(table: Mapping[str, Any], place: Path) -> None:
    """Save the stand-ins that a study names, and train its explainers."""
    for key, model in table.get("models", {}).items():
        if "made" in model:
            save_model(model["made"]["base"], place)
        else:
            save_model(model["name"], place, () if "prompt" in model else _labels(table, key), _layers(table))
    for task in table.get("tasks", {}).values():
        save_model(task["base"], place)
        if task["train"]["source"].startswith("snli/"):
            save_snli(place)
    if student := table.get("training", {}).get("student"):
        save_model(student, place)
    if table.get("kind", "comparison") == "comparison":
        for one, checkpoint, metrics in explainers(table):
            _train(table, one, checkpoint, metrics)


def _labels(table: Mapping[str, Any], key: str) -> list[str]:
    """The classes of a model, those of the data that it is run on."""
    model = table["models"][key]
    source = next(table["data"][one["data"]]["source"] for one in wanted(table) if one["model"] == key)
    labels = list(model.get("labels", named()[source].labels))
    return [f"LABEL_{number}" for number in range(len(labels))] if model["name"].startswith(UNNAMED) else labels


def _layers(table: Mapping[str, Any]) -> int:
    """The number of layers that the methods refer to, as in layers=-12 or layers='top 12'."""
    named_layers = re.findall(r"layers='?(?:-|top )(\d+)", " ".join(table["methods"]))
    return max([LAYERS, *map(int, named_layers)])


def _train(table: Mapping[str, Any], one: Mapping[str, Any], checkpoint: str | None, metrics: Sequence[str]) -> None:
    """Train the explainers of a run, as README.md describes for the paper's sizes."""
    model, data = table["models"][one["model"]], table["data"][one["data"]]
    # The model of SST-2 explains the reviews with rationales.
    source = "sst2" if data["source"] == "eraser_movies" else data["source"]
    options = ["--model", model["name"], "--data", f"{source}:train", "--metrics", ",".join(metrics)]
    options += ["--even-at-chance", *chain.from_iterable(_EXPLAINER.items())]
    options += ["--first-words" if source in LONG else "--longest", str(WORDS)]
    if "prompt" in model:
        save_model("FacebookAI/roberta-base", Path())
        options += ["--prompt", model["prompt"], "--dtype", model["dtype"], "--masking", "unk"]
        options += ["--backbone", "FacebookAI/roberta-base"]
    if checkpoint is not None:
        options += ["--out", checkpoint, "--without", "prediction" if checkpoint.endswith("xpred") else "inverse"]
    _raison("train", "aml", *options)


def _raison(*words: str) -> None:
    sys.stdout.write(f"$ raison {shlex.join(words)}\n")
    app(words, standalone_mode=False)


@contextlib.contextmanager
def _in(place: Path, log: Any) -> Iterator[None]:
    """Inside, the working directory is `place`, the Hub's data sets are replaced, and output goes to the log."""
    before = Path.cwd()
    os.chdir(place)
    try:
        with (
            patch("datasets.load_dataset", hub_rows),
            contextlib.redirect_stdout(log),
            contextlib.redirect_stderr(log),
        ):
            yield
    finally:
        os.chdir(before)


def _lines(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        return sum(1 for _ in file)


def write_table(path: Path, outcome: Outcome) -> None:
    """Put an outcome's line into the table, replacing the study's earlier one."""
    earlier = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = {line.split("`")[1]: line for line in earlier if line.startswith("| `")} | {outcome.study: outcome.line}
    path.write_text(_INTRODUCTION + "".join(f"{lines[name]}\n" for name in sorted(lines)), encoding="utf-8")


def main() -> int:
    """Rehearse the given studies; returns 1 if one did not run whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="folders of studies, or files; all by default")
    parser.add_argument("--out", type=Path, help="keep everything in this folder, and write the table there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    files = [Path(name) if name.endswith(".toml") else FOLDER / name / "paper.toml" for name in arguments.studies]
    table = (arguments.out.resolve() if arguments.out else FOLDER) / TABLE
    os.environ.setdefault(ROOT_VARIABLE, str(DATA))
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.out.resolve() if arguments.out else Path(temporary)
        os.environ["RAISON_CACHE"] = str(place / "cache")
        for path in files or sorted(FOLDER.glob("*/paper.toml")):
            outcome = rehearse(path.resolve(), place)
            write_table(table, outcome)
            sys.stdout.write(f"{outcome.line}\n")
            sys.stdout.flush()
            failed += bool(outcome.trouble)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
