"""A study of trainings that takes over a smaller one: only what is new is done, and what was begun goes on."""

import json
from pathlib import Path

import pytest

from raison.studies.file import read
from raison.studies.kinds.trainings.results import read as read_trainings
from raison.studies.runner import examine, execute
from tests.integration.test_trainings import STUDY, Works, content, place

__all__ = ["place"]

SMALL = (
    STUDY[: STUDY.index("[tasks.two]")].replace('also = ["two"]', "")
    + STUDY[STUDY.index("[plain]") : STUDY.index('[[trainings]]\nname = "few')]
    + '[[posthoc]]\nmethods = ["occlusion"]\n'
)
LARGE = SMALL.replace('methods = ["occlusion"', 'methods = ["lime(samples=8)", "occlusion"')


def run(text: str, file: Path, folder: Path, reuse: list[Path]) -> Works:
    works = Works()
    file.write_text(text)
    examined = examine(read(file, works.recipes()))
    execute(examined, folder, progress=False, sources=tuple(reuse))
    return works


@pytest.fixture(scope="module")
def small(place: Path) -> Path:
    run(SMALL, place / "small.toml", place / "small", [])
    return place / "small"


def test_only_the_new_method_is_run(place: Path, small: Path) -> None:
    folder = place / "large"
    works = run(LARGE, place / "large.toml", folder, [small])
    assert len(works.calls) == 1, "the plain model is made again, and nothing is trained"
    lines = [json.loads(line) for line in (folder / "trainings.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines if not line.get("reused")] == ["lime(samples=8)"]
    found, known = content(folder), content(small)
    assert {key: found[key] for key in known} == known
    [judged] = folder.glob("trainings/one/plain-3/judged/one/run.json")
    assert "lime" in judged.read_text()
    assert "occlusion" not in judged.read_text()


def test_a_line_that_is_lost_is_written_again(place: Path, small: Path) -> None:
    folder = place / "torn"
    run(LARGE, place / "torn.toml", folder, [])
    path, whole = folder / "trainings.jsonl", content(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"row": "occlusion"' not in line))
    assert len(read_trainings(folder).records) == len(whole) - 1
    run(LARGE, place / "torn.toml", folder, [])
    assert content(folder) == whole
    assert len(path.read_bytes().splitlines()) == len(lines)
