"""Studies of trainings with stand-ins for the trainings: whole, interrupted, shared, broken; the numbers are right."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

import raison
from raison.core.errors import DataError, InputError
from raison.data.dataset import Dataset
from raison.jobs.engine import Shard, Sharing, shard_of
from raison.studies.claims import verdicts
from raison.studies.file import StudyError, read
from raison.studies.folder import check_folder
from raison.studies.kinds.trainings.recipes import Recipes
from raison.studies.kinds.trainings.records import TrainingRecord
from raison.studies.kinds.trainings.results import read as read_trainings
from raison.studies.kinds.trainings.work import Examined
from raison.studies.reports import write
from raison.studies.runner import examine, execute
from tests.tiny import LABELS, TINY

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = [" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(30)]
FAITHFUL = "comprehensiveness(share=0.5)"

STUDY = f"""
schema = 1
kind = "trainings"
title = "Two tiny tasks"
seeds = [3]
controls = ["occlusion"]
metrics = ["{FAITHFUL}", "consistency(batch=5)"]

[tasks.one]
base = "tiny"
labels = ["negative", "neutral", "positive"]
even_at_chance = true
train = {{ source = "words.tsv", limit = 20 }}
test = {{ source = "words.tsv", limit = 10, sample = 1 }}
also = ["two"]

[tasks.two]
base = "tiny"
labels = ["negative", "neutral", "positive"]
even_at_chance = true
train = {{ source = "words.tsv" }}
dev = {{ source = "words.tsv", limit = 4 }}
test = {{ source = "words.tsv", limit = 8, sample = 2 }}

[plain]
epochs = 2

[training]
learning_rate = 0.5

[[trainings]]
name = "{{criteria}}, {{norm}}"
norm = "sparsemax"
grid = {{ criteria = [["comp"], ["comp", "cons"]], norm = ["softmax"] }}

[[trainings]]
name = "few texts"
criteria = ["comp"]
texts = 5
tasks = ["two"]

[[posthoc]]
methods = ["occlusion", "lime(samples=8)"]

[examples]
texts = 2
rows = ["few texts", "lime(samples=8)", "comp, softmax", "comp, softmax: occlusion"]

[[claims]]
says = "trained is better than random"
metric = "{FAITHFUL}"
above = "comp, softmax"
than = "random"

[[claims]]
says = "right more often than by chance"
metric = "accuracy"
above = "plain"
than = 0.33
task = "two"
"""


@dataclass(frozen=True, slots=True)
class Plain:
    """Settings of the stand-in for fine-tuning."""

    epochs: int = 1
    seed: int = 0
    progress: bool = True


@dataclass(frozen=True, slots=True)
class Trained:
    """Settings of the stand-in for training."""

    criteria: tuple[str, ...] = ()
    norm: Literal["softmax", "sparsemax"] = "softmax"
    learning_rate: float = 0.1
    decay: float = 1.0
    texts: int | None = None
    seed: int = 0
    progress: bool = True

    def __post_init__(self) -> None:
        if not self.criteria:
            raise InputError("no criterion: give criteria.")


class Works:
    """Stand-ins that move weights by their settings, note what they were called with, and stop when told to."""

    def __init__(self, stop: int | None = None) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.stop = stop

    def recipes(self) -> Recipes:
        return Recipes(self.fine_tune, self.train, Plain, Trained, lambda _settings: "attention_average")

    def fine_tune(self, base: str, data: Dataset, out: Path, settings: Plain, dev: Dataset | None) -> dict[str, Any]:
        model, tokenizer = TINY["bert"]()
        assert data.labels == LABELS
        assert all(row.label in (0, 1, 2) for row in data.rows)
        self._save(model, tokenizer, out, (base, len(data), settings.epochs, settings.seed, dev is None))
        return {"history": {"losses": {"task": [0.7, 0.5]}, "seconds": 2.0}}

    def train(self, model: Any, data: Dataset, out: Path, settings: Trained, dev: Dataset | None, command: str) -> Any:
        assert command.startswith("raison study run")
        about = (len(data), *settings.criteria, settings.norm, settings.texts, settings.seed, dev is None)
        self._save(model.model, model.tokenizer, out, about)
        losses = {name: [1.0, 0.5 + settings.seed / 10] for name in (*settings.criteria, "task")}
        return SimpleNamespace(history={"losses": losses, "scores": {}, "seconds": 10.0 + (settings.texts or 20)})

    def _save(self, model: Any, tokenizer: Any, out: Path, about: tuple[Any, ...]) -> None:
        told = tuple(map(str, about))
        self.calls.append(told)
        if self.stop is not None and len(self.calls) == self.stop:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(int.from_bytes("".join(told).encode()) % 2**31)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.03 * torch.randn(parameter.shape, generator=generator)
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trainings")
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(folder / "tiny")
    tokenizer.save_pretrained(folder / "tiny")
    (folder / "words.tsv").write_text("".join(f"{text}\t{LABELS[i % 3]}\n" for i, text in enumerate(TEXTS)))
    (folder / "mini.toml").write_text(STUDY)
    return folder


@pytest.fixture(scope="module")
def examined(place: Path) -> Examined:
    recipes = Works().recipes()
    return examine(read(place / "mini.toml", recipes))


@pytest.fixture(scope="module")
def whole(place: Path, examined: Examined) -> tuple[Path, Works]:
    works = Works()
    return run(examined, works, place / "whole"), works


def run(examined: Examined, works: Works, folder: Path, shard: Shard | None = None) -> Path:
    own = replace(examined, study=replace(examined.study, tools=works.recipes()))
    return execute(own, folder, progress=False, sharing=Sharing(shard or Shard()))


def content(folder: Path) -> dict[Any, Any]:
    """All records without what depends on the clock."""
    return {key: timeless(record) for key, record in read_trainings(folder).records.items()}


def timeless(record: TrainingRecord) -> dict[str, Any]:
    plain = record.to_dict()
    del plain["explaining"]["seconds"]
    return plain


def test_every_row_task_and_seed_has_its_record(whole: tuple[Path, Works]) -> None:
    folder, works = whole
    study = read_trainings(folder)
    # Task one: plain, three post-hoc and two trainings with a control each, on two tests; task two has one training
    # more, and one test.
    assert len(study.records) == (1 + 3 + 2 * 2) * 2 + 1 + 3 + 3 * 2
    assert set(study.records) == set(study.wanted)
    assert len(works.calls) == 2 + 2 + 3
    assert {call[1:3] for call in works.calls if call[0].endswith("tiny")} == {("20", "2"), ("30", "2")}


def test_numbers_are_those_of_evaluating_by_hand(place: Path, tmp_path: Path) -> None:
    text = STUDY.replace("seeds = [3]", "seeds = [3]\nkeep = true").replace('also = ["two"]', "")
    (place / "kept.toml").write_text(text)
    recipes = Works().recipes()
    examined = examine(read(place / "kept.toml", recipes))
    folder = execute(examined, tmp_path / "kept", progress=False)
    record = read_trainings(folder).records["two", "two", "comp+cons, softmax", 3]
    model = raison.load(folder / "trainings/two/comp-cons-softmax-3")
    rows = examined.data["two"].test.rows
    found = raison.explain(model, [row.text for row in rows], method="attention_average", seed=3)
    scores = raison.evaluate(model, found, [FAITHFUL, "consistency(batch=5)"], progress=False)
    assert record.scores[FAITHFUL] == pytest.approx(scores[FAITHFUL].values, abs=1e-6)
    flat = [value for group in record.groups["consistency(batch=5)"] for value in group]
    assert flat == pytest.approx(scores["consistency(batch=5)"].values, abs=1e-6)
    right = [int(e.prediction == LABELS[row.label]) for e, row in zip(found, rows, strict=True)]
    assert list(record.correct) == right
    assert record.accuracy == sum(right) / len(rows)
    assert (record.method, record.texts, record.training_seconds) == ("attention_average", 30, 30.0)
    assert record.settings["criteria"] == ["comp", "cons"]
    assert record.settings["learning_rate"] == 0.5
    assert len(record.explaining.evaluations) == len(rows)


def test_a_few_texts_are_a_setting(whole: tuple[Path, Works]) -> None:
    records = read_trainings(whole[0]).records
    assert records["two", "two", "few texts", 3].texts == 5
    assert records["two", "two", "comp, softmax", 3].texts == 30


def test_models_are_deleted_and_judgements_stay(whole: tuple[Path, Works]) -> None:
    assert not list(whole[0].rglob("*.safetensors"))
    assert len(list(whole[0].glob("trainings/two/*/judged/two/records.jsonl"))) == 1 + 3


def test_a_stopped_study_goes_on_and_equals_one_that_was_not(
    examined: Examined, whole: tuple[Path, Works], tmp_path: Path
) -> None:
    """Stopped again and again, while the first, the second and the sixth model were being made."""
    made = 0
    for stop in (1, 2, 6):
        works = Works(stop - made)
        with pytest.raises(KeyboardInterrupt):
            run(examined, works, tmp_path)
        # Nothing that was through is done again, but for the model that was being made.
        made += len(works.calls) - 1
        assert made == stop - 1
        assert len(read_trainings(tmp_path).records) < len(read_trainings(whole[0]).records)
    works = Works()
    run(examined, works, tmp_path)
    assert len(works.calls) == len(whole[1].calls) - made
    assert content(tmp_path) == content(whole[0])


def test_no_explainer_of_a_model_at_chance_is_trained(place: Path, tmp_path: Path) -> None:
    strict, works = STUDY.replace("even_at_chance = true\n", ""), Works()
    (place / "strict.toml").write_text(strict)
    examined = examine(read(place / "strict.toml", works.recipes()))
    said = r"\[tasks.one\], seed 3: the plain model has hardly learned .* on the test texts, largest class .* --resume"
    with pytest.raises(InputError, match=said):
        run(examined, works, tmp_path)
    assert [call[0].endswith("tiny") for call in works.calls] == [True], "fine-tuned, and nothing trained from it"
    # The key says to go on: the folder is the same study's, and the plain model is not made again.
    (place / "strict.toml").write_text(STUDY)
    study = read(place / "strict.toml", works.recipes())
    check_folder(tmp_path, study, None, resume=True)
    run(examine(study), works, tmp_path)
    assert len(works.calls) == 2 + 2 + 3


@pytest.mark.thorough
def test_two_processes_share_the_work(examined: Examined, whole: tuple[Path, Works], tmp_path: Path) -> None:
    first, second = Works(), Works()
    run(examined, second, tmp_path, Shard(2, 2))
    assert 0 < len(read_trainings(tmp_path).records) < len(read_trainings(whole[0]).records)
    run(examined, first, tmp_path, Shard(1, 2))
    assert len(first.calls) + len(second.calls) == len(whole[1].calls)
    assert content(tmp_path) == content(whole[0])
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["trainings-1.jsonl", "trainings-2.jsonl"]


def test_broken_lines_are_left_out_and_done_again(
    examined: Examined, whole: tuple[Path, Works], tmp_path: Path
) -> None:
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "trainings.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + b'{"task": "one"}\n' + b"".join(lines[5:-1]) + lines[-1][:40])
    study = read_trainings(tmp_path)
    assert study.dropped == 2
    assert len(study.records) == len(lines) - 1
    works = Works()
    run(examined, works, tmp_path)
    assert len(works.calls) == 2
    assert content(tmp_path) == content(whole[0])


def test_another_study_or_one_without_resume_is_refused(examined: Examined, whole: tuple[Path, Works]) -> None:
    folder, study = whole[0], examined.study
    with pytest.raises(DataError, match="--resume"):
        check_folder(folder, study, None, False)
    check_folder(folder, study, None, True)
    with pytest.raises(DataError, match="all rows"):
        check_folder(folder, study, 5, True)
    with pytest.raises(DataError, match="another study"):
        check_folder(folder, replace(study, text=study.text + "#"), None, True)
    other = dict(examined.header) | {"seeds": [9]}
    with pytest.raises(DataError, match="differs in seeds"):
        run(replace(examined, header=other), Works(), folder)


def test_limit_takes_the_first_rows(examined: Examined, tmp_path: Path) -> None:
    few = examine(examined.study, 6)
    assert [len(few.data["one"].train), len(few.data["one"].test), len(few.data["two"].dev or ())] == [6, 6, 4]
    assert few.header["limit"] == 6


def test_claims_and_report_are_made_of_the_records(whole: tuple[Path, Works], tmp_path: Path) -> None:
    study = read_trainings(whole[0])
    stated = verdicts(study)
    assert [(verdict.run, verdict.finding != "missing") for verdict in stated] == [
        ("one", True),
        ("two", True),
        ("two", True),
    ]
    page = write(whole[0], tmp_path, draw=False).read_text()
    for words in ("comp, softmax", "one on two", "Average relative gain (%), texts all", "few texts", "lime(<wbr>"):
        assert words in page
    assert "Unfinished" not in page


def test_examples_are_of_the_rows_that_were_asked_for(whole: tuple[Path, Works], tmp_path: Path) -> None:
    write(whole[0], tmp_path, draw=False)
    paper = (tmp_path / "examples.md").read_text(encoding="utf-8")
    one, two = paper.split("\n## ")[1:]
    few, others = "few texts", ["lime(samples=8)", "comp, softmax", "comp, softmax: occlusion"]
    assert [_methods(part) for part in (one, two)] == [2 * others, 2 * [few, *others]]
    assert "**" in one
    assert str(whole[0]) not in paper
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="examples.html"' in page
    assert "records only" not in page


def _methods(markdown: str) -> list[str]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")][2:]
    return [line.split(" | ")[3] for line in lines]


def test_without_explanations_there_are_no_examples_and_the_page_says_so(
    whole: tuple[Path, Works], tmp_path: Path
) -> None:
    copy = tmp_path / "records"
    shutil.copytree(whole[0], copy, ignore=shutil.ignore_patterns("judged"))
    page = write(copy, tmp_path / "report", draw=False).read_text(encoding="utf-8")
    assert "records only: the page of examples needs the folder trainings" in page
    assert not list((tmp_path / "report").glob("examples*"))


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ('labels = ["negative", "neutral", "positive"]\neven_at_chance = true\ntrain = { source = "words.tsv" }',
         'labels = ["bad", "neutral", "positive"]\ntrain = { source = "words.tsv" }', "'negative' is none of"),
        ('base = "tiny"\nlabels = ["negative", "neutral", "positive"]\neven_at_chance = true\n'
         'train = { source = "words.tsv" }',
         'base = "minilmm"\nlabels = ["negative", "neutral", "positive"]\ntrain = { source = "words.tsv" }',
         "Did you mean 'minilm'"),
        ('metrics = ["', 'metrics = ["auroc", "', "auroc needs rationales"),
        ('source = "words.tsv", limit = 20', 'source = "nowhere.tsv"', "nowhere.tsv"),
        ('methods = ["occlusion"', 'methods = ["mp_pi"', "one"),
    ],
)  # fmt: skip
def test_what_only_data_and_models_tell_is_told_before_anything_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, mistake: str
) -> None:
    assert old in STUDY
    monkeypatch.chdir(place)
    (place / "wrong.toml").write_text(STUDY.replace('also = ["two"]', "").replace(old, new, 1))
    recipes = Works().recipes()
    with pytest.raises(StudyError, match=mistake.replace("(", r"\(")) as found:
        examine(read(place / "wrong.toml", recipes))
    assert all("Traceback" not in line for line in found.value.mistakes)


def test_shards_are_read_from_the_command_line() -> None:
    assert shard_of("2/3") == Shard(2, 3)
    for wrong in ("0/2", "3/2", "half", "1/2/3"):
        with pytest.raises(InputError, match="1/2"):
            shard_of(wrong)
