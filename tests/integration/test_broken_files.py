"""A file of a discovered folder is being written: it is named where it is asked for, and stops nothing else."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from transformers import PreTrainedConfig

import raison
from raison.core.errors import DataError, InputError, RaisonError, UnsupportedError
from raison.data import named, sets
from raison.explaining.diagnosis import doctor
from raison.methods import CATALOGUE
from raison.models import families
from raison.models.families import UNKNOWN, family_of
from raison.studies import kinds
from raison.studies.kind import kind_of
from raison.web.component.model_facts import facts_of
from raison.web.server.facts import catalogue
from tests.toys import TEXTS, Linear

METHOD = """
from dataclasses import dataclass
from typing import ClassVar

import torch
from raison.core.method import Cost, Method


@dataclass(frozen=True)
class {name}(Method):
    \"\"\"A method that is being written.\"\"\"

    {setting}
    reference: ClassVar[str]{reference}
    passes: ClassVar[str] = "0"

    def cost(self, units):
        return Cost({forwards})

    def attribute(self, problem, rngs):
        return torch.zeros(len(problem.encoding), max(problem.encoding.unit_counts))
"""
BROKEN = {
    "unfound": ("import not_installed\n", "cannot be imported (ModuleNotFoundError: No module named 'not_installed')"),
    "raising": ("raise RuntimeError('boom')\n", "cannot be imported (RuntimeError: boom): correct it, or move it out"),
    "demanding": (
        METHOD.format(name="Demanding", setting="k: int", reference=" = 'x'", forwards=0),
        "Demanding has no default for k, and every setting needs one",
    ),
    "sourceless": (
        METHOD.format(name="Sourceless", setting="", reference="", forwards=0),
        "Sourceless does not state reference",
    ),
    "costless": (
        METHOD.format(name="Costless", setting="", reference=" = 'x'", forwards="units // 0"),
        "Costless fails with its default settings (ZeroDivisionError: ",
    ),
    "baseless": ("class Baseless: ...\n", "Baseless has to be a class that is derived from Method"),
}


def beside(package: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder's files be found among those of a package."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_method_stops_no_other(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, reason = BROKEN[name]
    (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    beside(raison.methods, tmp_path, monkeypatch)
    monkeypatch.setattr(CATALOGUE, "names", tuple(sorted([*CATALOGUE.names, name])))
    model = raison.load(lambda texts: [[0.2, 0.8]] * len(texts), classes=("no", "yes"))

    with pytest.raises(InputError) as caught:
        raison.explain(model, TEXTS[0], name)
    told = str(caught.value)
    assert told.startswith(f"raison/methods/{name}.py")
    assert reason in told
    assert "\n" not in told
    with pytest.raises(UnsupportedError, match="These methods work: .*occlusion"):
        raison.explain(model, TEXTS[0], "saliency")
    with pytest.raises(InputError, match=r"a method that offers several, such as .*random"):
        raison.explain(model, TEXTS[0], "occlusion", select="comprehensiveness")
    assert doctor(model).methods[name] == [told]
    assert facts_of("model", Linear()).unable[name] == told
    assert name not in {known.name for known in catalogue().methods}
    assert "occlusion" in {known.name for known in catalogue().methods}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("setless", "X = 1\n", "has no data set"), ("absent", "import not_installed\n", "cannot be imported")],
)
def test_a_broken_data_set_stops_no_other(
    name: str, content: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("text,label\ngood film,1\nbad film,0\n", encoding="utf-8")
    beside(sets, tmp_path, monkeypatch)
    named.cache_clear()
    try:
        assert len(raison.data.load(tmp_path / "rows.csv")) == 2
        assert raison.data.named()["sst2"].labels == ("negative", "positive")
        with pytest.raises(DataError, match="is not the folder of a known data set"):
            raison.data.load(tmp_path)
        with pytest.raises(RaisonError, match=rf"raison/data/sets/{name}\.py {reason}"):
            raison.data.load(name, split="test")
    finally:
        named.cache_clear()


class Novel(PreTrainedConfig):
    model_type = "novel"


class Bert(PreTrainedConfig):
    model_type = "bert"


@pytest.fixture
def unread_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files are families, too; they are read once it is asked for one."""
    beside(families, tmp_path, monkeypatch)
    families._known.cache_clear()
    yield tmp_path
    families._known.cache_clear()


def test_a_family_that_cannot_be_read_stops_no_type_that_another_names(unread_families: Path) -> None:
    (unread_families / "unread.py").write_text("X = 1\n", encoding="utf-8")
    assert family_of(Bert()) is not UNKNOWN
    with pytest.raises(InputError, match=r"'novel' has is unknown: raison/models/families/unread\.py has no family"):
        family_of(Novel())


def test_a_type_that_two_families_name_is_refused(unread_families: Path) -> None:
    for name in ("first", "second"):
        content = "from raison.models.families import Family\n\nFAMILY = Family(model_types=('novel',))\n"
        (unread_families / f"{name}.py").write_text(content, encoding="utf-8")
    assert family_of(Bert()) is not UNKNOWN
    with pytest.raises(InputError, match=r"'novel' belongs to one family, and .*first\.py and .*second\.py name it"):
        family_of(Novel())


def test_a_kind_that_cannot_be_read_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kinds" / "adrift"
    folder.mkdir(parents=True)
    (folder / "spec.py").write_text("", encoding="utf-8")
    (folder / "results.py").write_text("import not_installed\n", encoding="utf-8")
    beside(kinds, tmp_path / "kinds", monkeypatch)
    out = tmp_path / "out"
    raison.compare(Linear(), TEXTS, "occlusion", "gini", out=out, progress=False)
    assert kind_of(out).name == "comparison"
    with pytest.raises(DataError, match=r"no work of the kinds that can be read, and .*/adrift/results\.py cannot be"):
        kind_of(tmp_path)
