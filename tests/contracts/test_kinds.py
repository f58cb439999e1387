"""Every kind of study, found by discovery: cut at its jobs, shared, limited, refused elsewhere, told everywhere.

A sixth kind of four files, in tests/kinds, is among them: nothing else knows it.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from raison.core.errors import DataError, InputError
from raison.jobs.engine import Job, Shard, Sharing
from raison.jobs.identity import DATA, WEIGHTS
from raison.jobs.store import RecordStore
from raison.progress import ProgressCallback
from raison.report.pages.writing import shown
from raison.studies import kinds
from raison.studies.claims import verdicts
from raison.studies.file import Study, StudyError, read
from raison.studies.folder import check_folder
from raison.studies.kind import Kind, every, kind_of
from raison.studies.reports import document_of, write
from raison.studies.runner import examine, execute, run, sources_of
from tests.changed_work import changed
from tests.conftest import ALL
from tests.folder_content import content, tree
from tests.interruptions import Cut
from tests.study_files import FILES
from tests.trust_stand_in import Stand
from tests.work import prepare

MORE = Path(__file__).parents[1] / "kinds"
NAMES = sorted(FILES)


@pytest.fixture(scope="module", autouse=True)
def _kinds() -> Iterator[None]:
    before = list(kinds.__path__)
    kinds.__path__.append(str(MORE))  # type: ignore[attr-defined]
    yield
    kinds.__path__[:] = before  # type: ignore[index]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = prepare(tmp_path_factory.mktemp("kinds"))
    path = made / "trainings.toml"
    path.write_text(path.read_text().replace("seeds = [0]", "seeds = [0, 1]"))
    return made


def study_of(name: str, place: Path) -> Study:
    return read(place / f"{name}.toml", Stand().works() if name in ("trust", "audit") else None)


@pytest.fixture(scope="module")
def examined(place: Path) -> dict[str, Any]:
    return {name: examine(study_of(name, place)) for name in NAMES}


@pytest.fixture(scope="module")
def made(examined: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[str]]]:
    """One folder of each kind, done in one go, and the jobs that ran."""
    out, found = tmp_path_factory.mktemp("whole"), {}
    for name in NAMES:
        work: Any = Kind(name).work
        with pytest.MonkeyPatch.context() as patched:
            wrapped, ran = counted(work, 0)
            patched.setattr(work, "jobs", wrapped)
            found[name] = execute(examined[name], out / name, progress=False), ran
    return found


@pytest.fixture(scope="module")
def whole(made: dict[str, tuple[Path, list[str]]]) -> dict[str, Path]:
    return {name: folder for name, (folder, _) in made.items()}


def merged(folder: Path) -> dict[str, object]:
    """What a folder holds, whoever of several processes has written it."""
    found: dict[str, Any] = {}
    for name, held in content(folder).items():
        plain = name
        for number in ("-1", "-2"):
            plain = plain.replace(f"{number}.jsonl", ".jsonl")
        found[plain] = sorted([*found[plain], *held]) if plain in found else held  # type: ignore[misc]
    return found


def counted(module: ModuleType, stop: int) -> tuple[Callable[..., list[Job]], list[str]]:
    """The kind's jobs, of which the one of this number is cut before anything of it is done; and those that ran."""
    jobs, ran = module.jobs, []

    def run(job: Job, told: ProgressCallback) -> None:
        ran.append(job.key)
        if len(ran) == stop:
            raise Cut
        job.run(told)

    def wrapped(*arguments: Any) -> list[Job]:
        return [replace(job, run=lambda told, job=job: run(job, told)) for job in jobs(*arguments)]  # type: ignore[misc]

    return wrapped, ran


def test_every_kind_is_tried() -> None:
    missing = {kind.name for kind in every()} - {*NAMES}
    assert not missing, f"add a sample of {', '.join(sorted(missing))} to tests/study_files.py: FILES"
    assert [kind.name for kind in every()] == NAMES
    assert sum(len(path.read_text().splitlines()) for path in (MORE / "agreement").glob("*.py")) < 250
    assert len(list((MORE / "agreement").glob("*.py"))) == 4


@pytest.mark.parametrize("name", NAMES)
def test_cut_at_any_job_and_gone_on_with(
    examined: dict[str, Any],
    made: dict[str, tuple[Path, list[str]]],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: Any = Kind(name).work
    folder, ran = made[name]
    expected = content(folder)
    assert len(set(ran)) == len(ran) > 1
    # One in the middle, with jobs before it and after it; each with RAISON_ALL_FAMILIES.
    for stop in range(1, len(ran) + 1) if ALL else (1 + len(ran) // 2,):
        with monkeypatch.context() as patched:
            wrapped, _ = counted(work, stop)
            patched.setattr(work, "jobs", wrapped)
            with pytest.raises(Cut):
                execute(examined[name], tmp_path / str(stop), progress=False)
        execute(examined[name], tmp_path / str(stop), progress=False)
        assert content(tmp_path / str(stop)) == expected, stop


@pytest.mark.parametrize("name", NAMES)
def test_two_shards_do_what_one_process_does(
    examined: dict[str, Any], whole: dict[str, Path], name: str, tmp_path: Path
) -> None:
    kind = Kind(name)
    for number in (2, 1):
        execute(examined[name], tmp_path / "out", progress=False, sharing=Sharing(Shard(number, 2)))
    assert merged(tmp_path / "out") == merged(whole[name])
    jobs = kind.work.jobs(examined[name], tmp_path / "out", None)
    assert all(job.is_done() for job in jobs if not job.last)
    told, expected = kind.results.read(tmp_path / "out"), kind.results.read(whole[name])
    assert told.progress == expected.progress
    assert [one.finding for one in verdicts(told)] == [one.finding for one in verdicts(expected)]


@pytest.mark.parametrize("name", NAMES)
def test_folders_of_other_kinds_are_refused_and_untouched(
    examined: dict[str, Any], whole: dict[str, Path], name: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (*(whole[other] for other in NAMES if other != name), tmp_path):
        before = tree(folder)
        for sharing in (Sharing(), Sharing(Shard(1, 2))):
            with pytest.raises(DataError, match="choose an empty" if folder == tmp_path else "choose another folder"):
                execute(examined[name], folder, progress=False, sharing=sharing)
        assert tree(folder) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_makes_another_study(place: Path, whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    study = study_of(name, place)
    out = execute(examine(study, 3), tmp_path / "out", progress=False)
    kind = kind_of(out)
    few, all_of_it = kind.results.read(out), kind.results.read(whole[name])
    assert (kind.name, few.header.limit, all_of_it.header.limit) == (name, 3, None)
    assert few.progress[0] == few.progress[1]
    assert any("--limit 3" in warning for warning in document_of(few).warnings)
    assert not any("--limit" in warning for warning in document_of(all_of_it).warnings)
    for limit in (None, 4):
        with pytest.raises(DataError, match="contains this study with --limit 3: use the same limit"):
            check_folder(out, study, limit, True)
    with pytest.raises(DataError, match="--resume"):
        check_folder(out, study, 3, False)
    with pytest.raises(DataError, match="holds another study"):
        check_folder(out, replace(study, text=study.text + "\n# a word"), 3, True)


@pytest.mark.parametrize("name", NAMES)
def test_finished_work_is_reused_and_nothing_is_done_again(
    examined: dict[str, Any], whole: dict[str, Path], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: Any = Kind(name).work
    wrapped, ran = counted(work, 0)
    monkeypatch.setattr(work, "jobs", wrapped)
    study, moved = examined[name].study, tmp_path / "moved"
    shutil.copytree(whole[name], moved)
    sources = sources_of(study, [moved])
    out = execute(examined[name], tmp_path / "out", progress=False, sources=sources)
    closing = {job.key for job in work.jobs(examined[name], out, None) if job.last}
    assert set(ran) <= closing
    assert told_alike(out) == told_alike(whole[name])
    # Again, as on a resume, adds nothing.
    before = tree(out)
    work.begin(examined[name], out, sources)
    assert tree(out) == before


CHANGED = [(name, what) for name in NAMES for what in (WEIGHTS, DATA) if what == DATA or "PLACE/tiny" in FILES[name]]
"""Kinds, and what of theirs may have become another one: some have no model. Another file is another study."""


@pytest.mark.parametrize(("name", "what"), CHANGED)
def test_another_model_or_other_data_of_the_same_name_are_refused(
    place: Path, whole: dict[str, Path], name: str, what: str, tmp_path: Path
) -> None:
    shutil.copytree(whole[name], tmp_path / "out")
    before = tree(tmp_path / "out")
    with changed(place, what), pytest.raises(DataError, match=rf"it differs in {what}( of \w+)?\): choose"):
        execute(examine(study_of(name, place)), tmp_path / "out", progress=False)
    assert tree(tmp_path / "out") == before


def told_alike(folder: Path) -> dict[str, object]:
    """What a folder holds but for notes on where it comes from."""
    # Of trainings records are taken over, not the explanations of single texts.
    apart = ("reused.json", "trainings/")
    found = {name: held for name, held in content(folder).items() if not any(one in name for one in apart)}
    lines: dict[str, Any] = {name: held for name, held in found.items() if name.endswith(".jsonl")}
    return found | {name: sorted(line.replace(', "reused": true', "") for line in lines[name]) for name in lines}


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_such_work_is_refused(place: Path, whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    study = study_of(name, place)
    for other in (tmp_path / "nothing", place):
        with pytest.raises(DataError, match="can reuse nothing from there: give the folder"):
            run(study.path, tmp_path / "out", reuse=[other])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_what_it_tells_is_a_page_papers_and_lines(whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    page = write(whole[name], tmp_path)
    for file in ("index.html", "tables.md", "tables.tex"):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert f"Tiny {name}" in text, file
        assert "Traceback" not in text
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    results = kind_of(whole[name]).results.read(whole[name])
    assert list(shown(document_of(results)))
    assert f"python {results.header.versions['python']}" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_is_missing_and_what_is_broken(whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    results = kind_of(whole[name]).results
    assert not list(results.read(whole[name]).unfinished())
    shutil.copytree(whole[name], tmp_path / "cut")
    for path in (tmp_path / "cut").rglob("*.jsonl"):
        path.write_bytes(path.read_bytes()[:-20])
    told = " ".join(document_of(results.read(tmp_path / "cut")).warnings)
    assert "nfinished" in told
    assert "broken line" in told


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_line_of_finished_work_is_no_warning(whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    results = kind_of(whole[name]).results
    shutil.copytree(whole[name], tmp_path / "repaired")
    for path in (tmp_path / "repaired").rglob("*.jsonl"):
        if path.name not in UNCOUNTED:
            path.write_bytes(path.read_bytes() + b'{"row": "random", "se\n')
    found = results.read(tmp_path / "repaired")
    assert found.dropped
    assert not [told for told in document_of(found).warnings if "broken" in told]


UNCOUNTED = ("explanations.jsonl", "substitutions.jsonl")
"""Files of texts, which only pages of single texts read. The folder of a training is not read either."""


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_line_of_any_record_is_counted(whole: dict[str, Path], name: str, tmp_path: Path) -> None:
    results = kind_of(whole[name]).results
    shutil.copytree(whole[name], tmp_path / "cut")
    counted_files = 0
    for path in (tmp_path / "cut").rglob("*.jsonl"):
        known = path.read_bytes()
        if path.name in UNCOUNTED or "trainings" in path.parts or not known:
            continue
        path.write_bytes(known + known.splitlines()[-1][:-20] + b"\n")
        assert results.read(tmp_path / "cut").dropped == 1, path
        path.write_bytes(known)
        counted_files += 1
    assert counted_files


WHATEVER = {"says": "it", "above": "occlusion", "than": 0.5}
FOREIGN = {
    "shortcuts": WHATEVER | {"above": "nobody"},
    "trainings": WHATEVER | {"metric": "nonsense"},
    "trust": WHATEVER | {"measure": "nonsense"},
    "trust without attack": WHATEVER | {"measure": "rank_change"},
    "trust without order": WHATEVER | {"measure": "spearman_correlation"},
}
"""Claims that no study file of the kind can make."""


@pytest.mark.parametrize("what", FOREIGN)
def test_a_header_with_a_foreign_claim_is_one_clear_line(whole: dict[str, Path], what: str, tmp_path: Path) -> None:
    folder = whole[what.partition(" ")[0]]
    with pytest.raises(DataError, match="has a claim about"):
        reread(folder, tmp_path / "claimed", claims=[FOREIGN[what]])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "audit"])
def test_a_withdrawn_claim_that_says_nothing_is_one_clear_line(
    whole: dict[str, Path], name: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="withdrawn"):
        reread(whole[name], tmp_path / "withdrawn", withdrawn=[{}])


def reread(folder: Path, copy: Path, **changed: object) -> object:
    """The results in a copy whose header was written by somebody else."""
    shutil.copytree(folder, copy)
    path = copy / kind_of(folder).folder.marker
    header = {key: value for key, value in json.loads(path.read_text()).items() if key != "crc32"}
    path.write_text(json.dumps(header | changed))
    return kind_of(copy).results.read(copy)


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_of_a_file_are_told_together(place: Path, name: str) -> None:
    text = (place / f"{name}.toml").read_text().replace('title = "Tiny', 'titel = "Tiny') + "\n[nothing]\nx = 1\n"
    (place / "wrong.toml").write_text(text)
    with pytest.raises(StudyError) as caught:
        read(place / "wrong.toml")
    told = "\n".join(caught.value.mistakes)
    assert "title is missing" in told
    assert "unknown key 'titel'" in told
    assert "unknown key 'nothing'" in told


@pytest.mark.thorough
def test_workers_do_what_one_process_does(examined: dict[str, Any], whole: dict[str, Path], tmp_path: Path) -> None:
    """As new interpreters, which other tests fork (tests/forks.py)."""
    heard: list[int] = []
    out = execute(examined["comparison"], tmp_path / "out", heard.append, sharing=Sharing(workers=2))
    assert merged(out).keys() == merged(whole["comparison"]).keys()
    for name, held in merged(out).items():
        assert held == merged(whole["comparison"])[name], name
    assert sum(heard) == examined["comparison"].labels["words"].rows.__len__()
    written = [RecordStore(out / "one--words" / f"records-{number}.jsonl").read().records for number in (1, 2)]
    assert all(written)


def test_what_cannot_travel_is_refused(examined: dict[str, Any], tmp_path: Path) -> None:
    broken = replace(examined["comparison"], known={"one--words": lambda: None})
    with pytest.raises(InputError, match="start one process for each share, with --shard"):
        execute(broken, tmp_path / "out", progress=False, sharing=Sharing(workers=2))


def test_shares_are_of_about_the_same_cost() -> None:
    from raison.jobs.engine import share

    def job(number: int, cost: float) -> Job:
        return Job(str(number), "", lambda told: None, lambda: False, cost)

    costs: Sequence[float] = (8, 1, 1, 1, 1, 4, 2, 2)
    jobs = [job(number, cost) for number, cost in enumerate(costs)]
    parts = [share(jobs, Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted(job.key for part in parts for job in part) == sorted(job.key for job in jobs)
    assert sorted(sum(job.cost for job in part) for part in parts) == [6, 6, 8]
    assert all([job.key for job in part] == sorted(job.key for job in part) for part in parts)
