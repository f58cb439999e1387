"""Rows taken over from other runs of the same models and settings, on the same texts or on some of them."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.jobs.engine import Shard, Sharing
from raison.jobs.folder import STUDY, read_marker, write_marker
from raison.methods.occlusion import Occlusion
from raison.runs.agreement import read_agreement
from raison.runs.record import Record
from raison.runs.reuse import runs_in
from raison.runs.run import Run
from raison.runs.table import comparison
from raison.studies.file import StudyError, read
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.kinds.comparison.work import estimate
from raison.studies.runner import examine, run
from tests.integration.studies.two_models import ALONE, TEXTS, changed

MORE = ('methods = ["occlusion", ', 'methods = ["saliency", "occlusion", ')


def test_rows_of_another_run_are_taken_over_whole(whole: Path, place: Path, tmp_path: Path) -> None:
    file = changed(place, ALONE, MORE)
    fresh = run(file, tmp_path / "fresh", progress=False)
    told: list[str] = []
    drawn = run(file, tmp_path / "drawn", progress=False, reuse=[whole],
                on_start=lambda examined: told.extend(estimate(examined).lines))  # fmt: skip
    assert sum(" rows are taken over" in line and "because" not in line for line in told) == 1
    for name, found in read_study(drawn).runs.items():
        expected = {(row.method, row.selected_by): row for row in comparison(read_study(fresh).runs[name]).rows}
        for row in comparison(found).rows:
            for scores in row.metrics:
                plain = expected[row.method, row.selected_by][scores.metric].summary.mean
                assert scores.summary.mean == pytest.approx(plain, abs=1e-6)
    for name, found in read_study(drawn).runs.items():
        known = read_study(whole).runs[name]
        old = {key: record for key, record in found.records.items() if key in known.records}
        # Seconds and all: these are the records themselves.
        assert old == known.records
        assert {row for row, _, _ in found.records.keys() - old.keys()} == {"saliency"}
        (note,) = json.loads((found.folder / "reused.json").read_text())
        assert sorted(note["rows"]) == sorted({row for row, _, _ in known.records})
        assert all(found.explains(*key) for key in found.header.keys)


@pytest.mark.parametrize("drawn", ["", "sample = 3\n"])
def test_a_study_with_more_texts_computes_only_the_new_ones(place: Path, tmp_path: Path, drawn: str) -> None:
    """Rows that are drawn have other numbers among more. A new method explains all texts."""

    def limited(count: int, *changes: tuple[str, str]) -> str:
        data = 'source = "words.jsonl"\n'
        return changed(place, ALONE, (data, f"{data}limit = {count}\n{drawn}"), *changes)

    small = run(limited(8), tmp_path / "small", progress=False)
    fresh = run(limited(11, MORE), tmp_path / "fresh", progress=False)
    told: list[str] = []
    grown = run(limited(11, MORE), tmp_path / "grown", progress=False, reuse=[small],
                on_start=lambda examined: told.extend(estimate(examined).lines))  # fmt: skip
    assert sum("rows are taken over, not all of them for all 11 texts" in line for line in told) == 1
    for name, found in read_study(grown).runs.items():
        known, expected = read_study(small).runs[name], read_study(fresh).runs[name]
        (note,) = json.loads((found.folder / "reused.json").read_text())
        numbers = note["texts"]
        assert numbers == list(range(8)) if not drawn else numbers != list(range(8))
        for (row, seed, text), record in known.records.items():
            # Seconds and all: these are the records themselves.
            assert found.records[row, seed, numbers[text]] == replace(record, text=numbers[text])
        assert len(found.records) == len(expected.records)
        for key in expected.header.keys:
            # Orders and what is made of them may differ: texts have other neighbours, so that ties end otherwise.
            for here, there in zip(found.explanations(*key), expected.explanations(*key), strict=True):
                assert here.text == there.text
                assert here.scores == pytest.approx(there.scores, abs=1e-5)
        assert found.groups.keys() == expected.groups.keys()
        grown_pairs, fresh_pairs = read_agreement(grown / name), read_agreement(fresh / name)
        assert [pair.cosine.count for pair in grown_pairs] == [11] * len(fresh_pairs)
    resumed = run(limited(11, MORE), tmp_path / "grown", progress=False, resume=True)
    assert read_study(resumed).runs.keys() == read_study(fresh).runs.keys()


def test_what_more_texts_need_of_the_fewer_is_there_or_they_are_computed_again(place: Path, tmp_path: Path) -> None:
    """Metrics of all texts together, and agreement, need every explanation; scores of single texts do not."""

    def limited(count: int, *changes: tuple[str, str]) -> str:
        data = 'source = "words.jsonl"\n'
        return changed(place, ALONE, (data, f"{data}limit = {count}\n"), *changes)

    few = run(limited(8), tmp_path / "few", progress=False)
    published = shutil.copytree(few, tmp_path / "published", ignore=shutil.ignore_patterns("explanations.jsonl"))
    again = run(limited(11), tmp_path / "again", progress=False, reuse=[published])
    assert not list(again.glob("*/reused.json"))
    single = [("agreement = true\n", ""), (', "consistency(batch=8)"', "")]
    grown = run(limited(11, *single), tmp_path / "grown", progress=False, reuse=[published])
    assert len(list(grown.glob("*/reused.json"))) == 1


@pytest.mark.parametrize("drawn", ["", "sample = 3\n"])
def test_agreement_grows_without_the_explanations_of_the_fewer(place: Path, tmp_path: Path, drawn: str) -> None:
    """The pairs of the fewer texts come along; a pair of a new method has no values for them, and is left out."""

    def limited(count: int, *changes: tuple[str, str]) -> str:
        data = 'source = "words.jsonl"\n'
        single = (', "consistency(batch=8)"', "")
        return changed(place, ALONE, (data, f"{data}limit = {count}\n{drawn}"), single, *changes)

    few = run(limited(8), tmp_path / "few", progress=False)
    fresh = run(limited(11), tmp_path / "fresh", progress=False)
    published = shutil.copytree(few, tmp_path / "published", ignore=shutil.ignore_patterns("explanations.jsonl"))
    grown = run(limited(11, MORE), tmp_path / "grown", progress=False, reuse=[published])
    assert len(list(grown.glob("*/reused.json"))) == 1
    for name, found in read_study(grown).runs.items():
        assert [label for label, seed in found.header.keys if found.explains(label, seed)] == ["saliency"]
        pairs = {(pair.first, pair.second): pair for pair in read_agreement(grown / name)}
        expected = {(pair.first, pair.second): pair for pair in read_agreement(fresh / name)}
        assert pairs.keys() == expected.keys() != set()
        for both, pair in pairs.items():
            assert pair.cosine.count == expected[both].cosine.count
            assert pair.cosine.mean == pytest.approx(expected[both].cosine.mean, abs=1e-5)
        assert "parts" not in json.loads((grown / name / "agreement.json").read_text())
        (grown / name / "explanations.jsonl").unlink()
    known = {name: read_agreement(grown / name) for name in read_study(grown).runs}
    run(limited(11, MORE), tmp_path / "grown", progress=False, resume=True)
    assert {name: read_agreement(grown / name) for name in known} == known


def test_other_texts_under_the_same_name_are_not_taken_over(place: Path, tmp_path: Path) -> None:
    """The digest of the fewer texts decides, not their number or their file's name."""
    data, file = 'source = "words.jsonl"\n', place / "edited.jsonl"
    lines = (place / "words.jsonl").read_text().splitlines(keepends=True)
    edited = (data, 'source = "edited.jsonl"\n')
    file.write_text("".join(lines[:8]))
    few = run(changed(place, ALONE, edited), tmp_path / "few", progress=False)
    file.write_text("".join([lines[0].replace("film", "book"), *lines[1:]]))
    out = run(changed(place, ALONE, edited), tmp_path / "out", progress=False, reuse=[few])
    assert not list(out.glob("*/reused.json"))
    file.write_text("".join(lines))
    out = run(changed(place, ALONE, edited), tmp_path / "grown", progress=False, reuse=[few])
    assert len(list(out.glob("*/reused.json"))) == 1


def test_a_copy_from_fewer_texts_that_was_cut_short_is_finished_without_them(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, copied, add = 'source = "words.jsonl"\n', [], Run.add
    small = run(changed(place, ALONE, (data, f"{data}limit = 8\n")), tmp_path / "small", progress=False)

    def cut(taking: Run, rows: Sequence[tuple[Record, Explanation]]) -> None:
        if len(copied) == 2:
            raise KeyboardInterrupt
        copied.append(rows)
        add(taking, rows)

    file = changed(place, ALONE, MORE)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "add", cut)
        with pytest.raises(KeyboardInterrupt):
            run(file, tmp_path / "out", progress=False, reuse=[small])
    found = read_study(run(file, tmp_path / "out", progress=False, resume=True)).runs
    assert all(run_.is_done(*key, range(len(TEXTS))) for run_ in found.values() for key in run_.header.keys)


def test_shares_of_which_one_reuses_leave_nothing_undone(place: Path, tmp_path: Path) -> None:
    """The first begins without the smaller run: what is copied later changes no share."""
    data = 'source = "words.jsonl"\n'
    single = [ALONE, ("agreement = true\n", ""), (', "consistency(batch=8)"', "")]
    small = run(changed(place, (data, f"{data}limit = 8\n"), *single), tmp_path / "small", progress=False)
    file, out = changed(place, *single), tmp_path / "out"
    run(file, out, progress=False, sharing=Sharing(Shard(2, 2)))
    run(file, out, progress=False, sharing=Sharing(Shard(1, 2)), reuse=[small])
    assert list(out.glob("*/reused.json"))
    for found in read_study(out).runs.values():
        assert all(found.is_done(*key, range(len(TEXTS))) for key in found.header.keys)


def test_what_is_not_the_same_is_not_taken_over(whole: Path, place: Path, tmp_path: Path) -> None:
    longer = ("[settings]", "[settings]\nunit = 'token'")
    for number, change in enumerate([longer, ('metrics = ["auroc", ', 'metrics = ["auprc", "auroc", ')]):
        told: list[str] = []
        out = run(changed(place, ALONE, MORE, change), tmp_path / str(number), limit=4, progress=False, reuse=[whole],
                  on_start=lambda examined, lines=told: lines.extend(estimate(examined).lines))  # fmt: skip
        assert sum("0 of" in line and "because no folder has one for the same model" in line for line in told) == 1
        assert not list(out.glob("*/reused.json"))
    with pytest.raises(DataError, match=r"contains no run\.json, so"):
        run("study.toml", tmp_path / "out", reuse=[place / "bert"])


def test_records_without_explanations_do_for_what_needs_none(whole: Path, place: Path, tmp_path: Path) -> None:
    file = changed(place, ALONE, MORE, ("agreement = true\n", ""))
    source = shutil.copytree(whole, tmp_path / "published", ignore=shutil.ignore_patterns("explanations.jsonl"))
    out = run(file, tmp_path / "out", progress=False, reuse=[source])
    assert len(list(out.glob("*/reused.json"))) == 1
    found = read_study(out).runs["bert--words"]
    assert not all(found.explains(*key) for key in found.header.keys)


def test_agreement_comes_along_with_records_without_explanations(whole: Path, place: Path, tmp_path: Path) -> None:
    source = shutil.copytree(whole, tmp_path / "published", ignore=shutil.ignore_patterns("explanations.jsonl"))
    out = run(changed(place, ALONE, MORE), tmp_path / "out", progress=False, reuse=[source])
    assert len(list(out.glob("*/reused.json"))) == 1
    for name in read_study(out).runs:
        assert read_agreement(out / name) == read_agreement(whole / name), "nothing is known of saliency and the others"
    for path in source.glob("*/agreement.json"):
        path.unlink()
    again = run(changed(place, ALONE, MORE), tmp_path / "again", progress=False, reuse=[source])
    notes = [json.loads(path.read_text()) for path in again.glob("*/reused.json")]
    taken = [row for note in notes for entry in note for row in entry["rows"]]
    assert all(row.endswith(" by comprehensiveness") for row in taken), "agreement needs explanations or pairs"
    names = {name for pair in read_agreement(again / "bert--words") for name in (pair.first, pair.second)}
    assert "saliency" in names


def test_pairs_are_not_told_twice_where_methods_stand_in_another_order(
    whole: Path, place: Path, tmp_path: Path
) -> None:
    """The pairs come along beside the explanations of which they were made."""
    order = (
        'methods = ["occlusion", "kernel_shap(samples=12)", ',
        'methods = ["kernel_shap(samples=12)", "occlusion", ',
    )
    out = run(changed(place, ALONE, order), tmp_path / "out", progress=False, reuse=[whole])
    for name in read_study(out).runs:
        pairs = [frozenset((pair.first, pair.second)) for pair in read_agreement(out / name)]
        assert len(pairs) == len({*pairs}) == len(read_agreement(whole / name))


def test_where_rows_come_from_is_said_once(
    whole: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where taking them over was cut short."""
    copied, add = [], Run.add

    def cut(taking: Run, rows: Sequence[tuple[Record, Explanation]]) -> None:
        if len(copied) == 2:
            raise KeyboardInterrupt
        copied.append(rows)
        add(taking, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "add", cut)
        with pytest.raises(KeyboardInterrupt):
            run(changed(place, ALONE, MORE), tmp_path / "out", progress=False, reuse=[whole])
    out = run(changed(place, ALONE, MORE), tmp_path / "out", progress=False, reuse=[whole], resume=True)
    for name, found in read_study(out).runs.items():
        (note,) = json.loads((found.folder / "reused.json").read_text())
        assert sorted(note["rows"]) == sorted({row for row, _, _ in read_study(whole).runs[name].records})


def test_what_is_taken_over_need_not_be_possible_here(
    whole: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trained explainer, for one, may be gone."""

    def gone(self: Method, model: LanguageModel) -> None:
        raise DataError("the explainer is gone")

    file = changed(place, ALONE, MORE)
    monkeypatch.setattr(Occlusion, "check", gone)
    with pytest.raises(StudyError, match="the explainer is gone"):
        run(file, tmp_path / "out", progress=False)
    out = run(file, tmp_path / "out", progress=False, reuse=[whole])
    assert {row for row, _, _ in read_study(out).runs["bert--words"].records} >= {"occlusion", "saliency"}
    examined = examine(read(file), None, runs_in([whole]))
    assert {row.label for _, plan in examined.work() for row in plan.rows} == {"saliency"}
    with pytest.raises(StudyError, match="the explainer is gone"):
        run(changed(place, ALONE, MORE, ("[settings]", "[settings]\nunit = 'token'")), tmp_path / "t", reuse=[whole])


def test_a_model_of_the_same_name_is_another_one(whole: Path, place: Path, tmp_path: Path) -> None:
    source = shutil.copytree(whole, tmp_path / "source")
    header = read_marker(source, STUDY)
    assert header is not None
    header["models"]["bert"]["accuracy"] = {"held_out": 0.5}
    write_marker(source, STUDY, header)
    out = run(changed(place, MORE), tmp_path / "out", progress=False, reuse=[source])
    assert [path.parent.name for path in out.glob("*/reused.json")] == ["electra--words"]


def test_a_model_that_is_described_by_fewer_facts_is_the_same(whole: Path, place: Path, tmp_path: Path) -> None:
    source = shutil.copytree(whole, tmp_path / "source")
    header = read_marker(source, STUDY)
    assert header is not None
    assert header["models"]["bert"].pop("classes")
    write_marker(source, STUDY, header)
    out = run(changed(place, MORE), tmp_path / "out", progress=False, reuse=[source])
    assert sorted(path.parent.name for path in out.glob("*/reused.json")) == ["bert--words", "electra--words"]


def test_notes_that_were_changed_are_one_clear_line(place: Path, tmp_path: Path) -> None:
    out = run(changed(place, ALONE), tmp_path / "out", limit=4, progress=False)
    for written in ('{"rows": []}', "[3]", '[{"rows": 3}]', '[{"rows": [], "texts": ["1"]}]', "[", "[{}]"):
        (out / "bert--words" / "reused.json").write_text(written)
        with pytest.raises(DataError, match=r"reused\.json.*restore it, or delete it"):
            run("changed.toml", out, limit=4, progress=False, resume=True)
