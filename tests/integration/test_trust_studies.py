"""Studies of trust with stand-ins for the work: whole, interrupted, broken; mistakes; then small ones with the work."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import DataError
from raison.jobs.origins import REUSED
from raison.runs.task_accuracy import Labels, read_labels
from raison.studies.claims import verdicts
from raison.studies.file import StudyError, read
from raison.studies.folder import check_folder
from raison.studies.kinds.trust.results import read as read_trust
from raison.studies.kinds.trust.work import Examined
from raison.studies.reports import write
from raison.studies.runner import examine, execute
from raison.trust.implementation import operations as real_works
from raison.trust.results import ATTACKS, SIMILARITIES, AttackVariant, store_of
from tests.tiny import LABELS, TINY
from tests.trust_stand_in import Randomised, Stand, Swaps

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = [" ".join(WORDS[i % 5 : i % 5 + 4 + i % 9]) for i in range(9)]
STUDY = """
schema = 1
kind = "trust"
title = "A tiny one"
methods = ["saliency", "attention_rollout", "random"]

[settings]
unit = "word"
seed = 3

[models.one]
name = "MODEL"

[data.words]
source = "words.tsv"
limit = 8
sample = 1

[randomisation]
texts = 6
orders = ["cascading"]
draws = 2

[attacks]
texts = 4
objectives = ["unconstrained", "constrained"]
steps = 3
substitution = { swaps = 1, tries = 4 }

[figure]
x = "model"

[[claims]]
says = "the first block takes all"
measure = "spearman"
order = "cascading"
blocks = "all"
below = "saliency"
than = "attention_rollout"

[[claims]]
says = "attacked more than by noise"
measure = "rank_change"
attack = "embedding"
objective = "constrained"
above = "saliency"
than_attack = "noise"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trust")
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(folder / "tiny")
    tokenizer.save_pretrained(folder / "tiny")
    (folder / "words.tsv").write_text("".join(f"{text}\t{LABELS[i % 3]}\n" for i, text in enumerate(TEXTS)))
    (folder / "mini.toml").write_text(STUDY.replace("MODEL", str(folder / "tiny")))
    return folder


@pytest.fixture(scope="module")
def examined(place: Path) -> Examined:
    works = Stand().works()
    return examine(read(place / "mini.toml", works))


@pytest.fixture(scope="module")
def whole(place: Path, examined: Examined) -> tuple[Path, Stand]:
    stand = Stand()
    return run(examined, stand, place / "whole"), stand


def run(examined: Examined, stand: Stand, folder: Path) -> Path:
    return execute(replace(examined, study=replace(examined.study, tools=stand.works())), folder, progress=False)


def content(folder: Path) -> tuple[str, str]:
    """All records as text, for NaN equals nothing."""
    (found,) = read_trust(folder).runs.values()
    return repr(sorted(found.similarities.items())), repr(sorted(found.attacks.items()))


def test_all_that_is_asked_for_is_there(whole: tuple[Path, Stand], examined: Examined) -> None:
    study = read_trust(whole[0])
    found = study.runs["one--words"]
    assert set(found.similarities) == set(found.wanted_similarities())
    assert set(found.attacks) == set(found.wanted_attacks())
    assert len(found.similarities) == 2 * 1 * 3 * 2 * 6
    # Three texts off the boundary: two objectives with their controls on saliency, substitution on all.
    assert len(found.attacks) == 3 * (4 + 3)
    assert found.missing == 0
    assert found.randomised == ("saliency", "attention_rollout")
    assert found.variants[AttackVariant("noise", "constrained")] == ("saliency",)
    assert found.variants[AttackVariant("substitution", "constrained")] == ("saliency", "attention_rollout", "random")
    assert found.header.randomisation is not None
    assert found.header.randomisation.left_out == {"random": "no parameters"}
    assert study.header.models["one"].blocks == 3
    assert (study.header.models["one"].parameters or 0) > 1000


def test_settings_of_the_file_reach_the_work(examined: Examined) -> None:
    study = examined.study.spec
    assert study.randomisation is not None
    assert study.randomisation.plan == Randomised(("cascading",), 2, 3)
    assert study.attacks is not None
    assert [(plan.objective, plan.steps, plan.seed) for plan in study.attacks.plans] == [
        ("unconstrained", 3, 3),
        ("constrained", 3, 3),
    ]
    assert study.attacks.substitution == Swaps(1, 4, 3)
    assert study.settings.seed == 3


@pytest.mark.parametrize("stop", [1, 5, 13, 15])
def test_a_stopped_study_goes_on_and_equals_one_that_was_not(
    examined: Examined, whole: tuple[Path, Stand], tmp_path: Path, stop: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(examined, Stand(stop), tmp_path)
    assert read_trust(tmp_path).runs["one--words"].missing > 0
    stand = Stand()
    run(examined, stand, tmp_path)
    assert len(stand.calls) == len(whole[1].calls) - (stop - 1)
    assert content(tmp_path) == content(whole[0])
    again = Stand()
    run(examined, again, tmp_path)
    assert again.calls == []


def test_broken_lines_are_done_again(examined: Examined, whole: tuple[Path, Stand], tmp_path: Path) -> None:
    run(examined, Stand(), tmp_path)
    path = tmp_path / "one--words" / SIMILARITIES
    content_before = path.read_text()
    path.write_text(content_before[:-30])
    assert read_trust(tmp_path).runs["one--words"].dropped == 1
    stand = Stand()
    run(examined, stand, tmp_path)
    assert len(stand.calls) == 1
    assert content(tmp_path) == content(whole[0])


def test_another_study_or_one_without_resume_is_refused(examined: Examined, whole: tuple[Path, Stand]) -> None:
    folder, study = whole[0], examined.study
    with pytest.raises(DataError, match="--resume"):
        check_folder(folder, study, None, False)
    check_folder(folder, study, None, True)
    with pytest.raises(DataError, match="all rows"):
        check_folder(folder, study, 5, True)
    with pytest.raises(DataError, match="another study"):
        check_folder(folder, replace(study, text=study.text + "#"), None, True)
    other = dict(examined.header) | {"methods": ["saliency"]}
    with pytest.raises(DataError, match="differs in methods"):
        run(replace(examined, header=other), Stand(), folder)


def test_limit_takes_fewer_texts_of_the_same_draw(examined: Examined) -> None:
    few = examine(examined.study, 3)
    entry = few.header["runs"][0]
    assert (entry["randomisation"]["texts"], entry["attacks"]["texts"], few.header["limit"]) == (3, 3, 3)
    assert set(few.data["words"].texts) <= set(examined.data["words"].texts)


def test_models_are_judged_by_their_accuracy_on_the_study_s_own_data(
    whole: tuple[Path, Stand], examined: Examined, place: Path
) -> None:
    rows = examined.labels["words"].rows
    model = raison.load(str(place / "tiny"))
    right = [raison.explain(model, row.text, "random", progress=False).prediction == row.label for row in rows]
    labels = read_labels(whole[0])
    assert labels.accuracies == {"one--words": np.mean(right)}
    assert len(rows) == 8
    assert labels.accuracies["one--words"] < labels.majorities["words"] + 0.1
    for verdict in verdicts(read_trust(whole[0])):
        assert (verdict.finding, verdict.accuracy) == ("not judged", np.mean(right))


def test_claims_and_report_are_made_of_the_records(whole: tuple[Path, Stand], tmp_path: Path) -> None:
    study = read_trust(whole[0])
    stated = verdicts(replace(study, labels=Labels(study.labels.majorities, {"one--words": 1.0})))
    # The second draw of saliency's last point is undefined: the first stands alone.
    assert [verdict.finding for verdict in stated] == ["too few", "too few"]
    on_side = [one.difference.low > 0 if one.side == "above" else one.difference.high < 0 for one in stated]
    assert on_side == [True, True]
    page = write(whole[0], tmp_path).read_text(encoding="utf-8")
    for words in ("cascading", "words substituted", "no parameters", "number 2"):
        assert words in page
    assert "unfinished" not in page


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("draws = 2", "draws = 0", "[randomisation]: draws is at least 1"),
        ("draws = 2", "drows = 2", "Did you mean 'draws'"),
        ('orders = ["cascading"]', 'orders = ["forward"]', "[randomisation]: orders is"),
        ("texts = 6", "texts = 0", "[randomisation]: texts is 0"),
        ("steps = 3", 'steps = "many"', "[attacks]: steps is 'many'"),
        ("steps = 3", 'objective = "constrained"', "write objectives = [...]"),
        ('"unconstrained", "constrained"]', '"constraint"]', "Did you mean 'constrained'"),
        ("{ swaps = 1, tries = 4 }", "{ swops = 1 }", "[attacks.substitution]: unknown key 'swops'"),
        ("{ swaps = 1, tries = 4 }", "3", "a table, or false"),
        ("seed = 3", "seeds = [3]", "[settings]: unknown key 'seeds'"),
        ("draws = 2", "seed = 2", "write it under [settings]"),
        ('"saliency", "attention_rollout"', '"salience", "attention_rollout"', "Did you mean 'saliency'"),
        ('x = "model"', 'x = "modell"', "Did you mean 'model'"),
        ('order = "cascading"', 'order = "sideways"', "[[claims]] number 1: unknown order"),
        ('blocks = "all"\n', "", "spearman needs blocks"),
        ('measure = "spearman"', 'measure = "spearman_area"', "blocks does not belong to spearman_area"),
        ('than_attack = "noise"', "", "than is missing"),
        ('than_attack = "noise"', 'than_objective = "constrained"', "compares saliency with itself"),
        ('than_attack = "noise"', 'than = 0.3\nthan_attack = "noise"', "leave than_attack out"),
        ('below = "saliency"', 'below = "occlusion"', "the study has no method 'occlusion': add it to methods"),
        ('measure = "spearman"', 'model = "one"\nmeasure = "spearman"', "model is not a key of a claim; select a run"),
        ('[models.one]\nname = "MODEL"', '[models.one]\nnome = "MODEL"', "Did you mean 'name'"),
    ],
)
def test_mistakes_are_named(place: Path, old: str, new: str, mistake: str) -> None:
    assert old in STUDY
    (place / "wrong.toml").write_text(STUDY.replace(old, new, 1))
    with pytest.raises(StudyError) as caught:
        read(place / "wrong.toml", Stand().works())
    assert any(mistake in line for line in caught.value.mistakes), caught.value.mistakes


def test_a_study_that_asks_for_nothing(place: Path) -> None:
    (place / "wrong.toml").write_text(STUDY[: STUDY.index("[randomisation]")])
    with pytest.raises(StudyError, match="it is empty"):
        read(place / "wrong.toml", Stand().works())


def test_a_claim_needs_its_part(place: Path) -> None:
    text = STUDY[: STUDY.index("[attacks]")] + STUDY[STUDY.index("[figure]") :]
    (place / "wrong.toml").write_text(text)
    with pytest.raises(StudyError, match=r"rank_change needs the table \[attacks\]"):
        read(place / "wrong.toml", Stand().works())


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("steps = 3", "k = 9", "k is above a text's units"),
        ('"attention_rollout", "random"', '"mp_pi"', "model 'one' on data 'words'"),
        ('methods = ["saliency", "attention_rollout", "random"]', 'methods = ["random"]', "leaves out every method"),
        ('source = "words.tsv"', 'source = "nowhere.tsv"', "nowhere.tsv"),
    ],
)
def test_what_only_data_and_models_tell_is_told_before_anything_runs(
    place: Path, old: str, new: str, mistake: str
) -> None:
    text = STUDY.replace("MODEL", str(place / "tiny")).replace(old, new, 1)
    (place / "wrong.toml").write_text(text[: text.index("[[claims]]")])
    works = Stand().works()
    with pytest.raises(StudyError) as caught:
        examine(read(place / "wrong.toml", works))
    assert any(mistake in line for line in caught.value.mistakes), caught.value.mistakes


def test_kinds_are_told_apart(place: Path) -> None:
    assert read(place / "mini.toml", Stand().works()).kind.name == "trust"
    (place / "other.toml").write_text('schema = 1\nkind = "trost"\n')
    with pytest.raises(StudyError, match="Did you mean 'trust'"):
        read(place / "other.toml")


def test_commands_check_run_go_on_and_report(place: Path, tmp_path: Path) -> None:
    file, out = str(place / "mini.toml"), str(tmp_path / "out")
    runner = CliRunner()
    checked = runner.invoke(app, ["study", "check", file])
    assert checked.exit_code == 0, checked.output
    assert "can be run" in checked.output
    assert "random is not attacked by" in checked.output
    ran = runner.invoke(app, ["study", "run", file, "--out", out, "--limit", "3", "--json"])
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["records"] == said["wanted"] > 0
    again = runner.invoke(app, ["study", "run", file, "--out", out, "--limit", "3"])
    assert isinstance(again.exception, DataError)
    assert "--resume" in str(again.exception)
    onward = runner.invoke(app, ["study", "run", file, "--out", out, "--limit", "3", "--resume"])
    assert onward.exit_code == 0, onward.output
    reported = runner.invoke(app, ["report", out])
    assert reported.exit_code == 0, reported.output
    assert "Spearman" in (tmp_path / "out/report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def small(place: Path) -> Path:
    """The study of two texts, with the work itself."""
    return execute(examine(read(place / "mini.toml", real_works()), 2), place / "small", progress=False)


def test_the_work_itself_is_what_is_written(small: Path) -> None:
    found = read_trust(small).runs["one--words"]
    assert found.missing == 0
    assert found.randomised == ("saliency", "attention_rollout")
    assert {record.of for record in found.similarities.values()} == {found.blocks}
    assert any(abs(record.spearman) < 1 for record in found.similarities.values())


def test_a_larger_study_takes_over_what_a_smaller_one_has(place: Path, small: Path, tmp_path: Path) -> None:
    text = (place / "mini.toml").read_text().replace('["saliency", ', '["occlusion", "saliency", ')
    (place / "larger.toml").write_text(text.replace("draws = 2", 'draws = 3\nhow = "initial"'))
    larger = examine(read(place / "larger.toml"), 3)
    fresh = execute(larger, tmp_path / "fresh", progress=False)
    grown = execute(larger, tmp_path / "grown", progress=False, sources=[small])
    (known,), (found,), (plain,) = (read_trust(folder).runs.values() for folder in (small, grown, fresh))
    assert found.missing == 0
    assert found.attacks.keys() == plain.attacks.keys()
    for key, record in plain.similarities.items():
        assert found.similarities[key].spearman == pytest.approx(record.spearman, abs=1e-6, nan_ok=True)
    for attack, attacked in plain.attacks.items():
        assert found.attacks[attack].sum_change == pytest.approx(attacked.sum_change, abs=1e-4)
    for name, of_it in ((SIMILARITIES, known.similarities), (ATTACKS, known.attacks)):
        reused = [line for line in store_of(grown, found.name, name).read().records if line.get(REUSED)]
        assert len(reused) == len(of_it) > 0


@pytest.mark.parametrize(
    "change",
    [("seed = 3", "seed = 4"), ('unit = "word"', 'unit = "token"'), ("draws = 2", 'draws = 2\nhow = "permuted"')],
)
def test_what_another_seed_unit_or_plan_made_is_not_taken_over(
    place: Path, small: Path, tmp_path: Path, change: tuple[str, str]
) -> None:
    text = (place / "mini.toml").read_text()
    assert change[0] in text
    (place / "changed.toml").write_text(text.replace(*change))
    grown = execute(examine(read(place / "changed.toml"), 2), tmp_path / "grown", progress=False, sources=[small])
    lines = store_of(grown, "one--words", SIMILARITIES).read().records
    assert lines
    assert not any(line.get(REUSED) for line in lines)


def test_another_model_of_the_name_is_another_origin(place: Path, small: Path, tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    with torch.no_grad():
        model.classifier.weight[0, 0] += 1
    moved = tmp_path / "moved"
    for part in (model, tokenizer):
        part.save_pretrained(moved / "tiny")
    shutil.copy(place / "words.tsv", moved / "words.tsv")
    (moved / "mini.toml").write_text(STUDY.replace("MODEL", str(moved / "tiny")))
    other = execute(examine(read(moved / "mini.toml"), 2), tmp_path / "other", progress=False, sources=[small])
    assert not any(line.get(REUSED) for line in store_of(other, "one--words", ATTACKS).read().records)
