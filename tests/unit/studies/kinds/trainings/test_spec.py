"""Files of trainings: grids spread out, every mistake in a line of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from raison.core.errors import InputError
from raison.studies.file import Study, StudyError, read
from raison.studies.kinds.trainings.recipes import Recipes

FILE = """
schema = 1
kind = "trainings"
title = "Tables"
seeds = [0, 1]
metrics = ["aopc_sufficiency(removal='pad')", "consistency"]
[tasks.sst2]
base = "minilm"
labels = ["negative", "positive"]
train = { source = "sst2", split = "train", limit = 8 }
test = { source = "sst2", limit = 8 }
[tasks.qa]
base = "minilm"
kind = "spans"
train = { source = "squad", split = "train" }
test = { source = "squad" }
[plain]
rate = 1
[training]
epochs = 3
[[trainings]]
name = "IvRA {norm} by {criteria}"
grid = { criteria = [["suff"], ["suff", "cons"]], norm = ["softmax", "sparsemax"], rate = [0.1] }
[[trainings]]
name = "alone"
epochs = 9
tasks = ["sst2"]
[[posthoc]]
methods = ["lime(samples=500)", "random"]
tasks = ["sst2"]
[[claims]]
says = "it helps"
metric = "consistency(batch=64)"
above = "alone"
than = "lime(samples=500)"
task = "sst2"
"""


@dataclass(frozen=True, slots=True)
class Plain:
    """Settings of fine-tuning."""

    rate: float = 0.1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """Settings of training."""

    criteria: tuple[str, ...] = ()
    norm: Literal["softmax", "sparsemax"] = "softmax"
    epochs: int = 1
    rank: int | None = None
    rate: float = 0.1
    seed: int = 0
    progress: bool = True

    def __post_init__(self) -> None:
        if self.epochs > 99:
            raise InputError("epochs are at most 99.")


def called() -> None:
    raise AssertionError("a file is read without training anything")


RECIPES = Recipes(called, called, Plain, Trained, lambda _settings: "ivra")


def reading(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "tables" / "mini.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    study = read(path, RECIPES)
    assert study.kind.name == "trainings"
    return study


def test_a_grid_becomes_rows_with_names_and_settings(tmp_path: Path) -> None:
    whole = reading(tmp_path, FILE)
    study = whole.spec
    # The rate has no place in the name and follows behind.
    assert [row.name for row in study.rows] == [
        "IvRA softmax by suff, rate 0.1",
        "IvRA sparsemax by suff, rate 0.1",
        "IvRA softmax by suff+cons, rate 0.1",
        "IvRA sparsemax by suff+cons, rate 0.1",
        "alone",
    ]
    assert study.rows[2].settings == {"epochs": 3, "criteria": ["suff", "cons"], "norm": "softmax", "rate": 0.1}
    assert study.rows[2].folder == "ivra-softmax-by-suff-cons-rate-0.1"
    assert study.rows[4].settings == {"epochs": 9}
    assert [row.tasks for row in study.rows[3:]] == [("sst2", "qa"), ("sst2",)]
    assert whole.name == "tables-mini"


def test_posthoc_methods_claims_and_gains_are_written_as_the_records_do(tmp_path: Path) -> None:
    study = reading(tmp_path, FILE).spec
    assert [row.name for row in study.posthoc] == ["lime(samples=500)", "random"]
    assert {row.tasks for row in study.posthoc} == {("sst2",)}
    assert study.claims[0].metric == "consistency"
    assert study.claims[0].than == study.posthoc[0].name
    assert study.gains["suff"] == "aopc_sufficiency(removal='pad')"
    assert study.gains["cons"] == "consistency"
    assert "sim" not in study.gains


def test_random_scores_are_always_there(tmp_path: Path) -> None:
    study = reading(tmp_path, FILE.replace(', "random"]', "]")).spec
    assert study.posthoc[-1].name == "random"
    assert study.posthoc[-1].tasks == ("sst2", "qa")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[plain]\nrate", "[plain]\nrat", r"\[plain\]: unknown key 'rat'. Did you mean 'rate'"),
        ("epochs = 9", "epoch = 9", r"number 2 \('alone'\): unknown key 'epoch'. Did you mean 'epochs'"),
        ("epochs = 9", "epochs = 100", "epochs are at most 99"),
        ("epochs = 9", "epochs = 9.5", "epochs is 9.5; give a whole number"),
        ("epochs = 9", "seed = 9", "seed cannot be set here"),
        ('norm = ["softmax", "sparsemax"]', 'norm = ["softmax", "sparse"]', "unknown norm 'sparse'. Did you mean"),
        ("norm = [", "nrm = [", "unknown key 'nrm'. Did you mean 'norm'"),
        ("{norm}", "{nrom}", "in the name .*Did you mean 'norm'"),
        ("rate = [0.1]", "rate = []", "rate is \\[\\]; give a list of values"),
        ('name = "alone"\n', "", "name is missing"),
        ('name = "alone"', 'name = "plain"', "the row 'plain' is named twice; "),
        ('name = "alone"', 'name = "IvRA softmax, by suff: rate 0.1"', "would use the same folder as another row"),
        ('epochs = 9\ntasks = ["sst2"]', 'tasks = ["qb"]', "unknown task 'qb'"),
        ('epochs = 9\ntasks = ["sst2"]', 'tasks = ["qa"]', r"no record will have 'alone' and 'lime\(.*' on 'sst2'"),
        ('than = "lime(samples=500)"\ntask = "sst2"', 'than = "plain"', "plain is a model without explanations"),
        ('"consistency"]', '"consistancy"]', "metrics: unknown metric 'consistancy'. Did you mean 'consistency'"),
        ('"lime(samples=500)", "random"', '"lima"', "methods: unknown method 'lima'. Did you mean 'lime'"),
        ("split = \"train\", limit", "splt = \"train\", limit", r"\[tasks.sst2.train\]: unknown key 'splt'"),
        ('kind = "spans"', 'kind = "span"', "unknown kind 'span'. Did you mean 'spans'"),
        ('kind = "spans"', 'kind = "spans"\nlabels = ["a", "b"]', "labels belong to classification"),
        ('labels = ["negative", "positive"]', 'labels = ["positive"]', "labels must name at least two"),
        ('labels = ["negative", "positive"]\n', 'also = ["qa"]\nlabels = ["a", "b"]\n', "'qa' has another kind"),
        ("[tasks.qa]", '[tasks."q a"]', "a name may contain only"),
        ("[plain]", "[settings]\nseeds = [1]\n[plain]", "seeds are the whole study's"),
        ("[plain]", "[gains]\nsuf = 'consistency'\n[plain]", "unknown criterion 'suf'. Did you mean 'suff'"),
        ("[plain]", "[gains]\nsuff = 'entropy'\n[plain]", "the study does not measure 'entropy': add it to metrics"),
        ('above = "alone"', 'above = "alne"', "unknown row 'alne'. Did you mean 'alone'"),
        ('than = "lime(samples=500)"', 'than = "alone"', "compares alone with itself"),
        ('above = "alone"', 'above = "occlusion"', r"'occlusion': add it to a list of methods in \[\[posthoc\]\]"),
        ('metric = "consistency(batch=64)"', 'metric = "gini"', "does not measure 'gini': add it to metrics, or name"),
        ('metric = "consistency(batch=64)"', 'metric = "acuracy"', "Did you mean 'accuracy'"),
        ('task = "sst2"\n', 'task = "sst"\n', "unknown task 'sst'. Did you mean 'sst2'"),
        ("title = ", "titel = ", "title is missing"),
        ("title = ", 'controls = ["random", "random"]\ntitle = ', "controls: random is named twice"),
        ("title = ", 'controls = ["ivra"]\ntitle = ', "controls: the row 'alone' itself is explained by ivra"),
        ("title = ", 'controls = ["randm"]\ntitle = ', "controls: unknown method 'randm'. Did you mean 'random'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in FILE
    with pytest.raises(StudyError, match=line):
        reading(tmp_path, FILE.replace(old, new))


def test_no_training_has_the_name_of_a_control(tmp_path: Path) -> None:
    text = FILE.replace("title = ", 'controls = ["random"]\ntitle = ')
    text = text.replace("[[posthoc]]", '[[trainings]]\nname = "alone: random"\n[[posthoc]]')
    with pytest.raises(StudyError, match="the row 'alone: random' is named twice"):
        reading(tmp_path, text)


def test_a_claim_for_every_task_needs_one_that_both_rows_have(tmp_path: Path) -> None:
    everywhere = FILE.replace('than = "lime(samples=500)"\ntask = "sst2"', 'than = "lime(samples=500)"')
    assert reading(tmp_path, everywhere).spec.claims[0].task is None
    with pytest.raises(StudyError, match="no record will have .* on any task"):
        reading(tmp_path, everywhere.replace('epochs = 9\ntasks = ["sst2"]', 'tasks = ["qa"]'))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = FILE.replace("epochs = 9", "epochs = 100").replace('task = "sst2"\n', 'task = "x"\n')
    text = text.replace("rate = 1", "r = 1")
    with pytest.raises(StudyError) as found:
        reading(tmp_path, text)
    assert len(found.value.mistakes) == 3
