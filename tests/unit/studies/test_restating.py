"""Claims are stated anew about finished records, and the folder says what changed after they had been seen."""

import json
import shutil
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.jobs.folder import STUDY, read_marker, working_in
from raison.report.tables.records import Claims, Text
from raison.studies.claims import claims_section, verdicts
from raison.studies.file import StudyError, read
from raison.studies.folder import check_header, decides
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.kinds.trust.results import TrustClaim
from raison.studies.restating import Restated, restate
from tests.unit.studies.test_claims import write_run

HEAD = """
schema = 1
title = "{title}"
source = "Nobody, table 1"
methods = ["occlusion", "lime"]
metrics = ["auroc", "consistency"]

[models.m]
name = "demo/sst2"

[data.d]
source = "sst2"
"""
FIRST = '[[claims]]\nsays = "one"\nmetric = "auroc"\nabove = "occlusion"\nthan = "lime"\n'
SECOND = '[[claims]]\nsays = "two"\nmetric = "auroc"\nabove = "lime"\nthan = 0.5\n'
MARKED = SECOND + 'caveat = "exploratory"\n'


def file_of(folder: Path, *claims: str, title: str = "A small one", extra: str = "") -> Path:
    path = folder / "file.toml"
    path.write_text(HEAD.format(title=title) + extra + "".join(claims), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished study whose only claim is the first."""
    study = read(file_of(tmp_path, FIRST))
    found = tmp_path / "found"
    write_run(found / "m--d", names=("occlusion", "lime", "random"))
    header = {"schema": 1, "kind": "comparison", "name": "s", "digest": study.digest, "limit": None, "versions": {}}
    claims = [claim.to_dict() for claim in study.spec.claims]
    (found / "study.toml").write_text(study.text, encoding="utf-8")
    (found / "study.json").write_text(json.dumps({**header, "runs": ["m--d"], "claims": claims}), encoding="utf-8")
    return found


def test_a_new_claim_has_to_say_that_it_came_later(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"number 2: it is new after the records.* add caveat = \"exploratory\"\."):
        restate(file_of(tmp_path, FIRST, SECOND), folder)
    assert [claim.says for claim in read_study(folder).header.claims] == ["one"]
    done = restate(file_of(tmp_path, FIRST, MARKED), folder)
    assert (done.claims, done.added, done.withdrawn) == (2, ("two",), ())
    assert [(found.says, found.caveat) for found in verdicts(read_study(folder))] == [
        ("one", None),
        ("two", "exploratory"),
    ]


def test_a_claim_that_is_left_out_stays_as_withdrawn(folder: Path, tmp_path: Path) -> None:
    done = restate(file_of(tmp_path, MARKED), folder)
    assert (done.claims, done.withdrawn) == (1, ("one",))
    claims, text = claims_section(read_study(folder)).parts
    assert isinstance(claims, Claims)
    assert text == Text("Withdrawn after the records had been seen (1 claim): one.")
    # It is new where it comes back.
    with pytest.raises(StudyError, match="number 1: it is new"):
        restate(file_of(tmp_path, FIRST, MARKED), folder)
    restate(file_of(tmp_path, FIRST + 'caveat = "exploratory"\n'), folder)
    assert [claim.says for claim in read_study(folder).header.withdrawn] == ["two"]


def test_words_can_change_and_the_study_is_the_same(folder: Path, tmp_path: Path) -> None:
    file = file_of(tmp_path, FIRST.replace('"one"', '"the first"'), title="Another title")
    done = restate(file, folder)
    assert (done.added, done.withdrawn) == ((), ())
    study = read_study(folder)
    assert (study.title, study.digest, study.text) == ("Another title", read(file).digest, file.read_text())
    assert [claim.says for claim in study.header.claims] == ["the first"]


def test_a_kill_between_the_two_files_is_mended_by_doing_it_again(folder: Path, tmp_path: Path) -> None:
    file, own = file_of(tmp_path, MARKED), folder / "study.toml"
    before = own.read_bytes()
    restate(file, folder)
    own.write_bytes(before)
    assert [claim.says for claim in read_study(folder).header.claims] == ["two"]
    assert restate(file, folder) == Restated(1, (), ())
    assert own.read_bytes() == file.read_bytes()
    assert [claim.says for claim in read_study(folder).header.withdrawn] == ["one"]


def test_the_folders_own_file_is_no_new_statement(folder: Path, tmp_path: Path) -> None:
    own = folder / "study.toml"
    with pytest.raises(DataError, match="is the folder's own record of its study: change a copy"):
        restate(own, folder)
    own.write_text(own.read_text() + '[settings]\nunit = "token"\n')
    copy = tmp_path / "copy.toml"
    copy.write_bytes(own.read_bytes())
    with pytest.raises(DataError, match="is not the file that .* was run with: it was changed"):
        restate(copy, folder)


def test_another_file_name_does_not_keep_a_study_from_going_on(folder: Path, tmp_path: Path) -> None:
    file = file_of(tmp_path, FIRST, title="Another").rename(tmp_path / "second.toml")
    restate(file, folder)
    header = read_marker(folder, STUDY) or {}
    assert header["name"] == "second"
    known = header | {"identity": {}}
    (folder / "study.json").write_text(json.dumps(known))
    check_header(folder, STUDY, known | {"name": "third"})


@pytest.mark.parametrize(
    ("again", "refused"),
    [
        ('above = "lime"\nthan = 0.5\ncaveat = "by construction"\n', True),
        ('above = "lime"\nthan = 0.5\ncaveat = "exploratory"\n', False),
        ('below = "lime"\nthan = 0.5\n', True),
        ('below = "lime"\nthan = 0.5\ncaveat = "exploratory"\n', False),
    ],
)
def test_what_was_stated_later_stays_so_when_it_comes_back(
    folder: Path, tmp_path: Path, again: str, refused: bool
) -> None:
    restate(file_of(tmp_path, FIRST, MARKED), folder)
    restate(file_of(tmp_path, FIRST), folder)
    file = file_of(tmp_path, FIRST, f'[[claims]]\nsays = "two"\nmetric = "auroc"\n{again}')
    if refused:
        with pytest.raises(StudyError, match='number 2: .* caveat = "exploratory"'):
            restate(file, folder)
    else:
        assert restate(file, folder).added == ("two",)


def test_a_study_that_withdraws_all_claims_still_knows_them(folder: Path, tmp_path: Path) -> None:
    restate(file_of(tmp_path), folder)
    assert restate(file_of(tmp_path, title="Another"), folder) == Restated(0, (), ())
    assert [claim.says for claim in read_study(folder).header.withdrawn] == ["one"]


def test_a_claim_that_stands_the_other_way_round_is_the_same(folder: Path, tmp_path: Path) -> None:
    turned = '[[claims]]\nsays = "one"\nmetric = "auroc"\nbelow = "lime"\nthan = "occlusion"\n'
    assert restate(file_of(tmp_path, turned), folder) == Restated(1, (), ())
    opposite = turned.replace("below", "above")
    with pytest.raises(StudyError, match="number 1: it is new after the records"):
        restate(file_of(tmp_path, opposite), folder)


def test_a_claim_of_which_the_records_have_nothing_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "m--d")
    write_run(folder / "m--d", names=("occlusion", "saliency", "random"))
    with pytest.raises(StudyError, match="number 2: the records of .* do not have what it compares"):
        restate(file_of(tmp_path, FIRST, MARKED), folder)


def test_what_would_need_other_records_is_refused(folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=r"differs from what .* was run with in settings: its records answer other"):
        restate(file_of(tmp_path, FIRST, extra='[settings]\nunit = "token"\n'), folder)
    with pytest.raises(DataError, match="contains no study of methods: give the folder of a run of"):
        restate(file_of(tmp_path, FIRST), tmp_path)
    with working_in(folder, STUDY), pytest.raises(DataError, match="another process is working in"):
        restate(file_of(tmp_path, MARKED), folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert "withdrawn" not in (read_marker(folder, STUDY) or {})


def test_a_caveat_cannot_be_taken_away(folder: Path, tmp_path: Path) -> None:
    restate(file_of(tmp_path, FIRST, SECOND + 'caveat = "by construction"\n'), folder)
    with pytest.raises(StudyError, match=r'number 2: it had a caveat .* keep caveat = "by construction"\.'):
        restate(file_of(tmp_path, FIRST, SECOND), folder)
    restate(file_of(tmp_path, FIRST, MARKED), folder)
    for caveat in ("", 'caveat = "by construction"\n'):
        with pytest.raises(StudyError, match=r'number 2: it was stated after .* keep caveat = "exploratory"\.'):
            restate(file_of(tmp_path, FIRST, SECOND + caveat), folder)


def test_a_folder_whose_header_has_no_claims_is_compared_with_its_file(folder: Path, tmp_path: Path) -> None:
    header = json.loads((folder / "study.json").read_text())
    del header["claims"]
    (folder / "study.json").write_text(json.dumps(header))
    spelled = FIRST.replace('"lime"', '"lime()"')
    (folder / "study.toml").write_text(HEAD.format(title="A small one") + spelled)
    done = restate(file_of(tmp_path, FIRST), folder)
    assert (done.claims, done.added, done.withdrawn) == (1, (), ())


def test_a_folder_whose_settings_are_its_file_is_resumed_with_the_new_one(folder: Path, tmp_path: Path) -> None:
    header = json.loads((folder / "study.json").read_text())
    written = header | {"identity": {"settings": header["digest"], "data": "0"}}
    (folder / "study.json").write_text(json.dumps(written))
    file = file_of(tmp_path, FIRST, title="Another")
    restate(file, folder)
    known = read_marker(folder, STUDY) or {}
    assert known["identity"] == {"settings": read(file).digest, "data": "0"}


def trust(**given: object) -> TrustClaim:
    told = {"says": "it", "measure": "rank_change", "attack": "embedding", "objective": "constrained"}
    return TrustClaim(**{**told, **given})


@pytest.mark.parametrize(
    ("one", "other", "repeats"),
    [
        ({"above": "a", "than": "b"}, {"below": "a", "than": "b"}, True),
        ({"above": "a", "than": "b"}, {"above": "b", "than": "a", "than_attack": "embedding"}, True),
        ({"above": "a", "than": "b"}, {"above": "a", "than": "b", "attack": "noise"}, False),
        ({"above": "a", "than_objective": "unconstrained"}, {"above": "a", "than": "b"}, False),
        (
            {"above": "a", "than_objective": "unconstrained"},
            {"below": "a", "objective": "unconstrained", "than_objective": "constrained"},
            True,
        ),
        (
            {"above": "a", "than": "b", "than_objective": "unconstrained"},
            {"above": "b", "than": "a", "than_objective": "unconstrained"},
            False,
        ),
        ({"above": "a", "than": "b", "by": 0.1}, {"below": "b", "than": "a", "by": 0.1}, True),
        ({"above": "a", "than": "b", "by": 0.1}, {"below": "a", "than": "b", "by": 0.1}, False),
        ({"above": "a", "than": "b", "by": 0.0}, {"above": "a", "than": "b"}, True),
        ({"above": "a", "than": 1}, {"below": "a", "than": 1.0}, True),
        ({"above": "a", "than": 1}, {"above": "a", "than": "1"}, False),
    ],
)
def test_the_other_row_has_its_own_attack(one: dict, other: dict, repeats: bool) -> None:
    own, others = trust(**one).compared, trust(**other).compared
    assert decides(own, others) is decides(others, own) is repeats


@pytest.mark.parametrize(
    ("second", "repeated"),
    [
        (FIRST, True),
        (FIRST.replace("above", "below"), True),
        ('[[claims]]\nsays = "it"\nmetric = "auroc"\nabove = "lime"\nthan = "occlusion"\nrun = "m--d"\n', True),
        (FIRST.replace("auroc", "consistency"), False),
        (FIRST + "by = 0.1\n", False),
        (FIRST.replace('"lime"', "0.5"), False),
    ],
)
def test_a_claim_that_another_decides_is_a_mistake(tmp_path: Path, second: str, repeated: bool) -> None:
    file = file_of(tmp_path, FIRST, second)
    if not repeated:
        assert len(read(file).spec.claims) == 2
        return
    with pytest.raises(StudyError, match="number 2: it compares the same rows as number 1, whose verdict decides it"):
        read(file)


def test_a_header_that_somebody_wrote_otherwise_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    header = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(header | {"claims": [7, {"says": 1}]}))
    with pytest.raises(DataError, match=r"study\.json"):
        restate(file_of(tmp_path, FIRST), folder)
