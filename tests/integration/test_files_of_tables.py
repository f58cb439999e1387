"""Whole files as people have them: labels as tables write them, first rows that fail, and shares that are killed."""

import json
from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.data.class_labels import known_classes
from raison.data.streams import Reading
from raison.jobs import disk
from raison.jobs.engine import Shard, Sharing
from raison.jobs.folder import claimed
from raison.runs.files import summary
from raison.studies.reports import write as report
from tests.integration.test_explain_files import TEXTS, explained
from tests.integration.test_explain_files import few_rows_in_a_part as few_rows_in_a_part
from tests.integration.test_explain_files import model as model
from tests.integration.test_explain_files import reviews as reviews


@pytest.mark.parametrize(
    ("labels", "labelled", "right", "unread"),
    [
        ([1.0, 0.0, 1.0, None, 0.0], 4, 2, 0),
        ([True, False, True, None, False], 4, 2, 0),
        (["1.0", "0.0", "1.0", "", "0.0"], 4, 2, 0),
        (["yes", "No", "yes", "unsure", ""], 3, 2, 1),
        ([1, 0, -1, 0, 1], 4, 2, 1),
        ([1, 1, 1, 1, 1], 0, 0, 5),
    ],
    ids=["floats", "booleans", "text", "one odd", "a mark", "of one class"],
)
def test_labels_are_read_as_tables_write_them(
    tmp_path: Path, labels: list[object], labelled: int, right: int, unread: int
) -> None:
    path = tmp_path / "labelled.jsonl"
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(TEXTS, labels, strict=False)]
    path.write_text("\n".join(lines))
    sure = raison.load(lambda texts: [[0.2, 0.8]] * len(texts), classes=["no", "yes"])
    found = summary.of(explained(sure, path, tmp_path / "out"))
    assert (found.labelled, found.right, found.unread) == (labelled, right, unread)
    page = report(tmp_path / "out", tmp_path / "page", draw=False).read_text()
    if unread == 1:
        odd = "unsure" if "unsure" in labels else "-1"
        assert f"1 label is not judged: &#x27;{odd}&#x27; is none of no, yes." in page
    else:
        assert ("5 labels are not judged: the column has neither" in page) == bool(unread)


def test_the_names_of_classes_come_first() -> None:
    assert known_classes(["True", "False", "true"], ("true", "false")) == (["true", "false", "true"], "")
    assert known_classes(["1.0", "2.0"], ("1.0", "2.0")) == (["1.0", "2.0"], "")
    long = "9" * 5000
    assert known_classes(["0", "1", long], ("a", "b")) == (["a", "b", None], f"'{long:.60}' is none of a, b")
    assert known_classes(["1.0", "2.0", "10.0"], tuple("abcdefghij")) == (["a", "b", "j"], "")


def test_several_explanations_of_a_text_count_it_once(tmp_path: Path, reviews: Path) -> None:
    several = raison.load(lambda texts: [[0.9, 0.6, 0.1]] * len(texts), classes=["a", "b", "c"], multi_label=True)
    single = raison.explain_file(several, reviews, tmp_path / "one", "occlusion", target="a", progress=False)
    both = raison.explain_file(several, reviews, tmp_path / "both", "occlusion", target="each", progress=False)
    assert summary.of(both).evaluations == summary.of(single).evaluations
    assert summary.of(both).explanations == 2 * summary.of(single).explanations
    report(tmp_path / "both", tmp_path / "page", draw=False)
    assert "100.0 %" in (tmp_path / "page" / "tables.md").read_text()


def test_a_file_whose_first_rows_cannot_be_explained(tmp_path: Path) -> None:
    path = tmp_path / "contrasts.jsonl"
    lines = [{"text": text, "against": "yes" if place < 12 else "no"} for place, text in enumerate(TEXTS)]
    path.write_text("\n".join(map(json.dumps, lines)))
    sure = raison.load(lambda texts: [[0.2, 0.8]] * len(texts), classes=["no", "yes"])
    reading = Reading(contrast_column="against")
    written = raison.explain_file(sure, path, tmp_path / "out", "occlusion", reading=reading, progress=False)
    assert [one.row for one in written.rejected] == list(range(12))
    path.write_text("\n".join(json.dumps(line | {"against": "yes"}) for line in lines))
    with pytest.raises(InputError, match="both targets are the class 'yes'"):
        raison.explain_file(sure, path, tmp_path / "none", "occlusion", reading=reading, progress=False)


def test_a_shard_that_another_process_does_is_left_to_it(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = explained(model, reviews, out, sharing=Sharing(Shard(1, 3)))
    other = next(number for number in range(3) if number not in first.receipts)
    lock = first.folder.lock(other)
    with claimed(lock) as is_mine:
        assert is_mine
        with claimed(lock) as is_theirs:
            assert not is_theirs
        for share in (1, 2, 3):
            written = explained(model, reviews, out, sharing=Sharing(Shard(share, 3)))
        assert not written.is_complete
        assert other not in written.receipts
    assert explained(model, reviews, out).is_complete


def test_what_a_killed_share_leaves_is_no_file_of_the_folder(
    model: LanguageModel, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, place = tmp_path / "out", disk._place

    def killed(part: Path, path: Path) -> None:
        if path.parent.name == "explanations":
            raise KeyboardInterrupt(part.name)
        place(part, path)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "_place", killed)
        patched.setattr(disk.os, "unlink", lambda _path: None)
        with pytest.raises(KeyboardInterrupt):
            explained(model, reviews, out, "jsonl", sharing=Sharing(Shard(1, 2)))
    [left] = (out / "explanations").iterdir()
    assert left.name.startswith(".0000")
    for share in (1, 2):
        explained(model, reviews, out, "jsonl", sharing=Sharing(Shard(share, 2)))
    seen = [path.name for path in (out / "explanations").iterdir() if not path.name.startswith(".")]
    assert sorted(seen) == ["00000.jsonl", "00001.jsonl", "00002.jsonl"]
