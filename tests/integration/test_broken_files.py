"""A file of a discovered folder is being written: it is named where it is asked for, and stops nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from transformers import PreTrainedConfig

import raison
from raison.core.errors import DataError, InputError, RaisonError, UnsupportedError
from raison.data import named, sets
from raison.explaining.diagnosis import doctor
from raison.methods import CATALOGUE
from raison.methods.occlusion import Occlusion
from raison.metrics import CATALOGUE as METRIC_CATALOGUE
from raison.metrics.gini import Gini
from raison.models import families
from raison.models.families import UNKNOWN, family_of
from raison.studies import kinds
from raison.studies.file import read
from raison.studies.kind import Kind, kind_of
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

    def cost(self{units}):
        return {cost}

    def attribute(self, problem, rngs):
        return torch.zeros(len(problem.encoding), max(problem.encoding.unit_counts))
"""
METRIC = """
from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Metric


@dataclass(frozen=True)
class {name}(Metric):
    \"\"\"A metric that is being written.\"\"\"

    reference: ClassVar[str] = "x"
    higher_is_better: ClassVar[bool] = {better}
    {constant}

    def measure(self{arguments}):
        return 0.0
"""


def method(
    name: str, setting: str = "", reference: str = " = 'x'", cost: str = "Cost(0)", units: str = ", units"
) -> str:
    return METHOD.format(name=name, setting=setting, reference=reference, cost=cost, units=units)


def metric(name: str, constant: str = "", better: str = "True", arguments: str = ", explanation, evidence") -> str:
    return METRIC.format(name=name, constant=constant, better=better, arguments=arguments)


BROKEN = {
    "unfound": ("import not_installed\n", "cannot be imported (ModuleNotFoundError: No module named 'not_installed')"),
    "raising": ("raise RuntimeError('boom')\n", "cannot be imported (RuntimeError: boom): correct it, or move it out"),
    "demanding": (method("Demanding", "k: int"), "Demanding has no default for k, and every setting needs one"),
    "sourceless": (method("Sourceless", reference=""), "Sourceless does not state reference"),
    "costless": (method("Costless", cost="units // 0"), "Costless.cost fails for 20 units (ZeroDivisionError: "),
    "numeric": (method("Numeric", cost="3"), "Numeric.cost returns 3 for 20 units: return a Cost"),
    "unitless": (method("Unitless", units=""), "Unitless.cost has to take (units), as Method.cost does"),
    "needy": (
        method("Needy", 'needs = frozenset({"attention"})'),
        "Needy.needs is frozenset({'attention'}): give a frozenset of capabilities, such as",
    ),
    "worded": (
        method("Worded", 'properties: ClassVar[str] = "tokenwise"'),
        "Worded.properties is 'tokenwise': give a frozenset of properties, such as",
    ),
    "misspelt": (
        method("Misspelt", 'properties: ClassVar[frozenset] = frozenset({"signd"})'),
        "Misspelt.properties is frozenset({'signd'}): give a frozenset of properties",
    ),
    "undecided": (
        method("Undecided", 'properties: ClassVar[frozenset] = frozenset({"signed", "unsigned"})'),
        "Undecided.properties has SIGNED and UNSIGNED: leave one out",
    ),
    "classed": (
        method("Classed", 'outputs: ClassVar[str] = "classes"'),
        "Classed.outputs is 'classes': give a frozenset of some of classes, labels, number, statement",
    ),
    "peculiar": (
        method("Peculiar", 'statement_value: ClassVar[str] = "odds"'),
        "Peculiar.statement_value is 'odds': give one of probability, logit, log_odds, margin, log_probability",
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


METRICS = {
    "needing": (
        metric("Needing", 'needs = frozenset({"attention"})'),
        "Needing.needs is frozenset({'attention'}): give",
    ),
    "directed": (metric("Directed", better="'up'"), "Directed.higher_is_better is 'up': give True, False, or None if"),
    "alone": (
        metric("Alone", arguments=""),
        "Alone.measure has to take (explanation, evidence), as Metric.measure does",
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_broken_metric_stops_no_other(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, reason = METRICS[name]
    (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    beside(raison.metrics, tmp_path, monkeypatch)
    monkeypatch.setattr(METRIC_CATALOGUE, "names", tuple(sorted([*METRIC_CATALOGUE.names, name])))
    explained = raison.explain(Linear(), TEXTS[0], "occlusion")
    with pytest.raises(InputError) as caught:
        raison.evaluate(Linear(), explained, name, progress=False)
    told = str(caught.value)
    assert told.startswith(f"raison/metrics/{name}.py: {reason}")
    assert "\n" not in told
    assert raison.evaluate(Linear(), explained, "gini", progress=False).metrics


def test_a_class_of_the_caller_s_own_is_checked_as_well() -> None:
    @dataclass(frozen=True)
    class Numeric(Occlusion):
        def cost(self, units: int) -> int:  # type: ignore[override]
            return units

    @dataclass(frozen=True)
    class Directed(Gini):
        higher_is_better = "up"  # type: ignore[assignment]

    with pytest.raises(InputError, match=r"^the method cannot be used: Numeric\.cost returns 20 for 20 units: return"):
        raison.explain(Linear(), TEXTS[0], Numeric())
    explained = raison.explain(Linear(), TEXTS[0], "occlusion")
    with pytest.raises(InputError, match=r"^the metric cannot be used: Directed\.higher_is_better is 'up': give True"):
        raison.evaluate(Linear(), explained, Directed, progress=False)


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


KINDS = {
    "spec": ("def tools(): ...\n", "spec.py has no parse, which raison.studies.kind describes."),
    "arguments": (
        "def tools(): ...\ndef parse(table): ...\n",
        "spec.py: parse has to take (table, place, tools), as raison.studies.kind describes.",
    ),
}


@pytest.mark.parametrize("what", KINDS)
def test_a_kind_that_lacks_something_is_named(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, reason = KINDS[what]
    folder = tmp_path / "kinds" / f"lacking_{what}"
    folder.mkdir(parents=True)
    (folder / "spec.py").write_text(content, encoding="utf-8")
    beside(kinds, tmp_path / "kinds", monkeypatch)
    (tmp_path / "study.toml").write_text(f"kind = 'lacking_{what}'\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "study.toml")
    assert str(caught.value) == f"raison/studies/kinds/lacking_{what}/{reason}"


RESULTS = """
from raison.jobs.folder import COMPARISON
FOLDERS = {folders}
def read(folder): ...
def places(results, claim): ...
def sample(results, claim, place): ...
"""


def test_a_kind_without_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_results("homeless", "()", tmp_path, monkeypatch)
    with pytest.raises(InputError, match=r"^raison/studies/kinds/homeless/results\.py: FOLDERS is \(\): list at least"):
        _ = Kind("homeless").folder


def test_a_marker_of_two_kinds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_results("abroad", "(COMPARISON,)", tmp_path, monkeypatch)
    out = tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"^run\.json marks .*kinds/abroad/results\.py and .*comparison/results\.py name"
    ):
        kind_of(out)


def with_results(name: str, folders: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a kind with such results be found."""
    folder = place / "kinds" / name
    folder.mkdir(parents=True)
    (folder / "spec.py").write_text("", encoding="utf-8")
    (folder / "results.py").write_text(RESULTS.format(folders=folders), encoding="utf-8")
    beside(kinds, place / "kinds", monkeypatch)
