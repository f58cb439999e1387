"""The study of two tiny models in a folder of its own, and what it writes."""

import json
from pathlib import Path

import pytest

from raison.jobs import disk
from raison.judging import plan as plans
from raison.studies.runner import run
from tests.integration.studies.two_models import STUDY, TEXTS, TOGETHER
from tests.interruptions import Interruption
from tests.tiny import TINY


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    for name in ("bert", "electra"):
        model, tokenizer = TINY[name]()
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    marked = [
        {"text": text, "label": ("negative", "positive")[i % 2], "rationale": [[0, 4]]} for i, text in enumerate(TEXTS)
    ]
    (folder / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked))
    (folder / "unmarked.tsv").write_text("".join(f"{text}\t{i % 2}\n" for i, text in enumerate(TEXTS)))
    (folder / "topics.tsv").write_text("".join(f"{text}\t{('sea', 'land')[i % 2]}\n" for i, text in enumerate(TEXTS)))
    (folder / "long.tsv").write_text(f"{TEXTS[0]}\tnegative\n{'good ' * 200}\tpositive\n")
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study's paths are relative to where it is run."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(plans, "MOST_TOGETHER", TOGETHER)


@pytest.fixture(scope="session")
def counted(place: Path) -> tuple[Path, int]:
    """The study, done whole, and at how many moments it could have been interrupted. Tests leave it as it is."""
    counter = Interruption(0)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)
        patched.setattr(plans, "MOST_TOGETHER", TOGETHER)
        patched.setattr(disk, "os", counter.as_os())
        return place / run("study.toml", "whole", progress=counter.advance), counter.seen


@pytest.fixture(scope="session")
def whole(counted: tuple[Path, int]) -> Path:
    return counted[0]
