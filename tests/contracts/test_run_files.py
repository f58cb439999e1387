"""Whatever the files of a folder hold, they are read, or one line names the file and its line: no other error."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raison.core.errors import DataError, LoadError, RaisonError
from raison.core.settings.tables import read_written
from raison.jobs.store import read_head
from raison.models.derived import cards, trained_attention, trained_masks
from raison.models.loading.ready_made import shipped, zoo
from raison.report.pages.shown import shown_texts
from raison.runs import record_validation
from raison.runs.run import read_header
from raison.runs.table import comparison
from raison.studies.kinds.audit.head import AuditHead
from raison.studies.kinds.comparison.results import ComparisonHead
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.kinds.trainings.records import TrainingsHead
from raison.studies.kinds.trainings.results import read as read_trainings
from raison.studies.kinds.trust.results import TrustStudyHead
from raison.studies.kinds.trust.results import read as read_trust
from tests import study_folder
from tests.conftest import ALL
from tests.unit.core.settings.test_reading import WRONG
from tests.unit.studies.kinds.trainings.test_sections import fill as fill_trainings
from tests.unit.studies.kinds.trust.test_sections import fill as fill_trust

STUDIES = Path(__file__).parents[2] / "studies"
RUN = "small--reviews"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of a JSON object is; of lists, the first item."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return copy


def in_json(path: Path, read: Callable[[], object]) -> list[str]:
    """What is said of a file with each of its values replaced by wrong ones, every other one of them by turns."""
    whole, said = json.loads(path.read_text(encoding="utf-8")), []
    whole.pop("crc32", None)
    before = path.read_text(encoding="utf-8")
    for number, place in enumerate(places(whole)):
        for wrong in WRONG if ALL else WRONG[number % 2 :: 2]:
            path.write_text(json.dumps(changed(whole, place, wrong)), encoding="utf-8")
            said += refusal(read)
    path.write_text(before, encoding="utf-8")
    return said


def refusal(read: Callable[[], object]) -> list[str]:
    try:
        read()
    except RaisonError as error:
        return [str(error)]
    return []


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return study_folder.make(tmp_path / "study", study_folder.Made(("small",), 2, 2))


def read(folder: Path) -> None:
    for run in read_study(folder).runs.values():
        shown_texts(run)
        comparison(run)


def test_the_head_of_a_run(study: Path) -> None:
    path = study / RUN / "run.json"
    content = read_head(path)
    assert content is not None
    path.write_text(json.dumps(content | {"rows": content["rows"][:2], "metrics": content["metrics"][:1]}))
    for name in ("records", "groups", "explanations"):
        (study / RUN / f"{name}.jsonl").unlink(missing_ok=True)
    said = in_json(path, lambda: read_study(study))
    assert len(said) > 100
    assert all("run.json" in line and "\n" not in line and len(line) < 400 for line in said)


@pytest.mark.parametrize("name", ["records", "explanations", "groups"])
def test_the_lines_of_a_run(study: Path, name: str) -> None:
    path = study / RUN / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[1])
    record.pop("crc32", None)
    inner = record.pop("explanation", None)
    said = []
    for place in places(record):
        for wrong in WRONG:
            line = changed(record, place, wrong) | ({} if inner is None else {"explanation": inner})
            path.write_text("\n".join([lines[0], json.dumps(line), *lines[2:]]) + "\n", encoding="utf-8")
            found = refusal(lambda: read(study))
            said += [line for line in found if "no text yet" not in line]
    assert len(said) > 25
    assert all(f"{name}.jsonl, line 2: " in line and "\n" not in line and len(line) < 400 for line in said)


@pytest.mark.parametrize("gone", ["row", "seed", "text", "scores", "evaluations", "target", "units"])
def test_a_record_without_a_field_is_named_by_its_line(study: Path, gone: str) -> None:
    path = study / RUN / "records.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    record = {key: value for key, value in json.loads(lines[3]).items() if key not in (gone, "crc32")}
    path.write_text("\n".join([*lines[:3], "", json.dumps(record), *lines[4:]]), encoding="utf-8")
    with pytest.raises(DataError, match=rf"records.jsonl, line 5: not a record: {gone} is None; it must be"):
        read(study)


def test_the_head_of_a_study(study: Path) -> None:
    said = in_json(study / "study.json", lambda: read_study(study))
    assert len(said) > 50
    assert all("study" in line and "\n" not in line and len(line) < 400 for line in said)


@pytest.mark.parametrize("name", ["../elsewhere", "/etc", "a/b", "..", ".", "", "a\\b", "C:x"])
def test_a_run_is_no_other_folder(study: Path, name: str) -> None:
    path = study / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"runs": [name]}))
    with pytest.raises(DataError, match="cannot be used as a folder name"):
        read_study(study)


def test_the_head_of_trainings(tmp_path: Path) -> None:
    fill_trainings(tmp_path)
    for path in tmp_path.glob("*.jsonl"):
        path.unlink()
    said = in_json(tmp_path / "trainings.json", lambda: read_trainings(tmp_path))
    assert len(said) > 100
    assert all("trainings" in line and "\n" not in line and len(line) < 400 for line in said)


def test_the_head_of_trust(tmp_path: Path) -> None:
    fill_trust(tmp_path)
    for path in tmp_path.rglob("*.jsonl"):
        path.unlink()
    said = in_json(tmp_path / "trust.json", lambda: read_trust(tmp_path))
    assert len(said) > 100
    assert all("trust" in line and "\n" not in line and len(line) < 400 for line in said)


def test_lines_of_trainings_and_trust_that_are_wrong_are_counted_and_done_again(tmp_path: Path) -> None:
    trained, trusted = tmp_path / "trained", tmp_path / "trusted"
    trained.mkdir()
    fill_trainings(trained)
    fill_trust(trusted)
    record = json.loads((trained / "trainings-1.jsonl").read_text().splitlines()[0])
    similar = json.loads((trusted / "small--sst" / "similarities.jsonl").read_text().splitlines()[0])
    similar.pop("crc32", None)
    for key in ("task", "row", "seed", "settings", "scores"):
        (trained / "trainings-3.jsonl").write_text(json.dumps(record | {key: [[1]]}) + "\n")
        assert read_trainings(trained).dropped == 1
    for key in similar:
        (trusted / "middle--sst" / "similarities.jsonl").write_text(json.dumps(similar | {key: [[1]]}) + "\n")
        assert read_trust(trusted).runs["middle--sst"].dropped == 1


@pytest.mark.parametrize("path", sorted(STUDIES.rglob("run.json")), ids=lambda path: "/".join(path.parts[-4:-1]))
def test_committed_runs_are_read(path: Path) -> None:
    header = read_header(path)
    parts = [metric.parts for metric in header.single]
    # One file, or one for each process that took a share.
    files = sorted(path.parent.glob("records*.jsonl.gz"))
    assert files
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in [next(lines, None) for _ in range(50)]:
                if line is not None:
                    record_validation.check_record(json.loads(line), header.texts, parts)


HEADS = {
    "study.json": ComparisonHead,
    "trust.json": TrustStudyHead,
    "trainings.json": TrainingsHead,
    "audit.json": AuditHead,
}


@pytest.mark.parametrize("name", HEADS)
def test_committed_heads_are_read(name: str) -> None:
    found = sorted(STUDIES.rglob(name))
    assert found
    for path in found:
        head = read_written(HEADS[name], json.loads(path.read_text(encoding="utf-8")), "a head", path)
        assert isinstance(head, HEADS[name])


DEMO = shipped.FOLDER / "sst2"


def test_the_card_of_an_explainer(tmp_path: Path) -> None:
    path = tmp_path / cards.FILE
    path.write_text((DEMO / "aml" / cards.FILE).read_text(encoding="utf-8"), encoding="utf-8")
    said = in_json(path, lambda: trained_masks.read_card(tmp_path, "demo/sst2"))
    assert len(said) > 150
    assert all(cards.FILE in line and "\n" not in line and len(line) < 400 for line in said)
    path.write_text(json.dumps(changed(json.loads(path.read_text()), ("goals", "log_odds", "file"), "../../x")))
    with pytest.raises(LoadError, match="must be a file's name in the explainer's folder"):
        trained_masks.read_card(tmp_path, "demo/sst2")


def test_the_card_of_an_attention_explainer(tmp_path: Path) -> None:
    said = {"model": "m", "classes": ["a", "b"], "vocabulary": "x", "said": [[0.5, 0.5]], "criteria": ["comp"]}
    design = {"form": "ivra", "norm": "softmax", "selection": ["heads"], "over": "units", "initial": [0.1, 0.2]}
    shape = {"layers": 2, "heads": 2, "features": 8}
    path = tmp_path / cards.FILE
    card = {"schema": 1, **said, "design": design, "shape": shape, "history": {}, "provenance": {}}
    path.write_text(json.dumps(card))
    assert trained_attention.read_card(tmp_path, "m", "ivra").classes == ("a", "b")
    refused = in_json(path, lambda: trained_attention.read_card(tmp_path, "m", "ivra"))
    assert len(refused) > 150
    assert all(cards.FILE in line and "\n" not in line and len(line) < 400 for line in refused)


def test_the_card_of_an_adapter(tmp_path: Path) -> None:
    path = tmp_path / zoo.CARD
    card = {"base": "minilm", "labels": ["a", "b"], "accuracy": {"test": 0.9}}
    path.write_text(json.dumps(card))
    assert zoo.read_card(tmp_path) == card
    said = in_json(path, lambda: zoo.read_card(tmp_path))
    assert len(said) > 40
    assert all(zoo.CARD in line and "\n" not in line and len(line) < 400 for line in said)
