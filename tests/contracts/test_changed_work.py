"""Work that is gone on with is about what it was begun with: whatever has become another one is named and refused."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import raison
from raison.core.errors import DataError
from raison.core.method import Property
from raison.core.registry import label_of
from raison.jobs import disk
from raison.jobs.folder import KINDS, SCRATCH, STUDY, WorkKind
from raison.jobs.identity import CONFIGURATION, DATA, SETTINGS, TOKENIZER, WEIGHTS, differing
from raison.methods import CATALOGUE
from raison.metrics import CATALOGUE as METRICS
from raison.models.derived.identity import files_identity
from tests.changed_work import CHANGES, changed
from tests.explainers import saved_encoder, trained_heads
from tests.folder_content import tree
from tests.interruptions import Cut, Interruption
from tests.tiny import TINY
from tests.untrained import untrained_for
from tests.work import TEXTS, WORKS, prepare

BEGUN = 12
STUDY_BEGUN = 21
"""Moments of writing before the first start is cut: what it is about is written down, and some of the work.

A study of methods writes down its own first; which model it is about stands in its runs.
"""
TRAINED = [name for name in CATALOGUE.names if Property.TRAINED in CATALOGUE.get(name).properties]
OF_A_MODEL = (WEIGHTS, TOKENIZER, CONFIGURATION)
CASES = [(kind, what) for kind in KINDS for what in CHANGES if kind != SCRATCH or what not in OF_A_MODEL]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def begun(place: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[WorkKind, Path]:
    """A folder of each kind whose work was cut short."""
    made = {}
    with pytest.MonkeyPatch.context() as patched:
        for number, (kind, work) in enumerate(WORKS.items()):
            made[kind] = tmp_path_factory.mktemp("begun") / f"kind-{number}"
            moment = STUDY_BEGUN if kind == STUDY else BEGUN
            patched.setattr(disk, "os", Interruption(moment).as_os())
            with pytest.raises(Cut):
                work(place, made[kind])
    return made


def test_every_part_of_an_identity_is_changed_once() -> None:
    assert set(CHANGES) == {*OF_A_MODEL, DATA, SETTINGS}
    assert {kind for kind, _ in CASES} == set(WORKS) == set(KINDS)


@pytest.mark.parametrize(("kind", "what"), CASES, ids=lambda one: one.name if isinstance(one, WorkKind) else one)
def test_what_differs_is_named_and_the_folder_stays_as_it_was(
    place: Path, begun: dict[WorkKind, Path], kind: WorkKind, what: str
) -> None:
    folder = begun[kind]
    before, names = tree(folder), sorted(folder.rglob("*"))
    assert kind.marker in before
    with changed(place, what), pytest.raises(DataError, match=rf"it differs in {what}( of \w+)?\): choose") as caught:
        WORKS[kind](place, folder)
    assert "\n" not in str(caught.value)
    assert (tree(folder), sorted(folder.rglob("*"))) == (before, names)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_the_same_again_goes_on(place: Path, begun: dict[WorkKind, Path], kind: WorkKind) -> None:
    """After all the others: what they refused was refused for what had changed, and not for good."""
    WORKS[kind](place, begun[kind])


@pytest.mark.parametrize("name", TRAINED)
def test_another_explainer_under_the_same_name(tmp_path: Path, name: str) -> None:
    """Beside the model, where it is found without being named."""
    place, out = prepare(tmp_path), tmp_path / "out"
    model = raison.load(place / ("writer" if name == "at2" else "tiny"))
    texts: list[str] | list[dict[str, object]] = list(TEXTS[:2])
    explainer = Path(model.name) / name
    if name == "at2":
        trained_heads(model, explainer, torch.ones(3, 4))
        texts = [{"question": "what?", "sources": {"a": "the sea.", "b": "an owl."}, "answer": "the sea."}]
    else:
        untrained_for(name, model, explainer)
    raison.compare(model, texts, [name], ["gini"], out=out, progress=False)
    raison.compare(model, texts, [name], ["gini"], out=out, progress=False)
    before = tree(out)
    if name == "at2":
        trained_heads(model, explainer, -torch.ones(3, 4))
    else:
        [path] = explainer.glob("*.safetensors")
        save_file({key: -value for key, value in load_file(path).items()}, path)
    with pytest.raises(DataError, match=f"it differs in files of {name}"):
        raison.compare(model, texts, [name], ["gini"], out=out, progress=False)
    assert tree(out) == before


OWN = """
from dataclasses import dataclass

import torch
from raison.core.method import Cost, Method


@dataclass(frozen=True)
class Even(Method):
    reference = ""
    passes = "0"

    def cost(self, units):
        return Cost(0)

    def attribute(self, problem, rngs):
        return torch.full((len(problem.encoding), max(problem.encoding.unit_counts)), {score})
"""


def test_changed_code_of_ones_own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = raison.load(*TINY["bert"]()), tmp_path / "out"
    monkeypatch.syspath_prepend(tmp_path)

    def compare(score: str) -> None:
        (tmp_path / "own_even.py").write_text(OWN.format(score=score), encoding="utf-8")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "own_even", raising=False)
        method = importlib.import_module("own_even").Even()
        raison.compare(model, list(TEXTS[:2]), [method], ["gini"], out=out, progress=False)

    compare("1.0")
    compare("1.0")
    before = tree(out)
    with pytest.raises(DataError, match="it differs in files of own_even.Even"):
        compare("20.0")
    assert tree(out) == before


def test_a_class_that_was_typed_in_counts_by_what_it_was_compiled_to() -> None:
    model = raison.load(*TINY["bert"]())

    def identity(score: str) -> dict[str, str]:
        typed: dict[str, Any] = {"__name__": "typed_in"}
        exec(OWN.format(score=score), typed)
        return files_identity(model, [typed["Even"]()])

    assert identity("1.0") == identity("1.0")
    assert differing(identity("1.0"), identity("2.0")) == ["files of typed_in.Even"]


def test_code_of_this_package_is_not_part_of_an_identity() -> None:
    model = raison.load(*TINY["bert"]())
    assert not files_identity(model, [CATALOGUE.create("saliency"), METRICS.create("gini")])


def test_every_trained_method_says_which_files_it_reads() -> None:
    assert TRAINED
    assert all("files" in vars(CATALOGUE.get(name)) for name in TRAINED)


def test_a_student_of_another_folder(tmp_path: Path) -> None:
    folder = saved_encoder(tmp_path)
    metric = METRICS.create(f"simulatability(student={folder!r})")
    model = raison.load(*TINY["bert"]())
    before = files_identity(model, [metric])
    assert before == files_identity(model, [metric]) != {}
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.001}))
    assert differing(before, files_identity(model, [metric])) == [f"files of {label_of(metric)}"]
    assert files_identity(model, [METRICS.create("simulatability")]) == {}
