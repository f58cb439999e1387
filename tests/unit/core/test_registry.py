"""raison methods, raison metrics and raison bibtex: what they print, and that it is the catalogue's own."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import raison
from raison.cli import app, listing
from raison.cli import catalogue as shown
from raison.core.errors import DataError, InputError, UnknownNameError
from raison.core.method import Method
from raison.core.nicknames import NICKNAMES
from raison.core.registry import Catalogue, class_name, name_of, no_class
from raison.methods import CATALOGUE as METHODS
from raison.methods.occlusion import Occlusion
from raison.metrics import CATALOGUE as METRICS

ROOT = Path(__file__).parents[3]


def out(*arguments: str, columns: int = 160) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)}, catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


@pytest.mark.parametrize(("kind", "catalogue"), [("methods", METHODS), ("metrics", METRICS)])
def test_what_the_source_says_is_what_the_class_has(kind: str, catalogue: Catalogue[Any]) -> None:
    assert listing.names(kind) == catalogue.names
    for name in catalogue.names:
        cls, read = catalogue.get(name), listing.entry(kind, name)
        assert read.settings == {field.name: field.default for field in fields(cls)}, name
        assert inspect.cleandoc(cls.__doc__) == read.doc
        if kind == "methods":
            assert ("signed" in read.functions) == (cls.signed is not Method.signed), name
        facts = ("outputs", "properties", "passes") if kind == "methods" else ("needs", "higher_is_better")
        for fact in ("reference", *facts):
            assert read.facts[fact] == getattr(cls, fact), (name, fact)
        if kind == "methods":
            assert read.facts["needs"] == {needed.name for needed in cls.needs}, name


@pytest.mark.parametrize(("kind", "name"), [("metrics", "gini"), ("methods", "reagent"), ("methods", "deep_lift")])
def test_a_class_with_a_computed_setting_is_imported(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it needs is listed by name, as when it is read."""
    expected = listing.entry(kind, name)
    (tmp_path / kind).mkdir()
    (tmp_path / kind / f"{name}.py").write_text(f"class {class_name(name)}:\n    size: int = len('computed')\n")
    monkeypatch.setattr(listing, "PACKAGE", tmp_path)
    listing.entry.cache_clear()
    found = listing.entry(kind, name)
    listing.entry.cache_clear()
    assert (found.settings, found.facts) == (expected.settings, expected.facts)


def test_a_file_without_its_class_or_facts_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "half_done.py").write_text("class HalfDone:\n    size: int = 3\n")
    monkeypatch.setattr(listing, "PACKAGE", tmp_path)
    listing.names.cache_clear()
    listing.entry.cache_clear()
    try:
        with pytest.raises(InputError, match=r"methods/half_done\.py: HalfDone does not state reference and passes"):
            listing.entry("methods", "half_done")
    finally:
        listing.names.cache_clear()
        listing.entry.cache_clear()
    assert no_class("raison.methods", "half_done").startswith("raison/methods/half_done.py has no class HalfDone")


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "halfway" / "methods"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (folder / "half_done.py").write_text("class HalfDone:\n    size: int = = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = r"^halfway/methods/half_done\.py, line 2, is not valid Python: invalid syntax\.$"
    with pytest.raises(InputError, match=said):
        Catalogue("halfway.methods", "method").get("half_done")
    monkeypatch.setattr(listing, "PACKAGE", folder.parent)
    listing.names.cache_clear()
    try:
        with pytest.raises(InputError, match=said):
            listing.entry("methods", "half_done")
        (folder / "half_done.py").write_bytes(b"size = '\xff'\n")
        listing._tree.cache_clear()
        with pytest.raises(InputError, match=r"methods/half_done\.py, line 1, is not valid Python: \(unicode error\)"):
            listing.entry("methods", "half_done")
        (folder / "half_done.py").write_bytes(b"size = 1\0\n")
        for read in (lambda name: listing.entry("methods", name), Catalogue("halfway.methods", "method").get):
            with pytest.raises(InputError, match=r"methods/half_done\.py is not valid Python: .* null bytes"):
                read("half_done")
    finally:
        listing.names.cache_clear()


WRITTEN = """
from raison.combining.shared import Base
from raison.core.method import Property


class Odd(Base):
    \"\"\"About.\"\"\"

    reference = "shapley1953value"
    {line}
"""
BASE = """
from typing import ClassVar

from raison.core.method import Method


class Base(Method):
    passes: ClassVar[str] = "0"

    @property
    def signed(self):
        return False
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package's methods whose `odd.py` is being written."""
    shutil.copytree(listing.PACKAGE / "core", tmp_path / "core")
    for name in ("methods", "combining"):
        (tmp_path / name).mkdir()
    shutil.copy(listing.PACKAGE / "methods" / "occlusion.py", tmp_path / "methods")
    (tmp_path / "combining" / "shared.py").write_text(BASE)
    monkeypatch.setattr(listing, "PACKAGE", tmp_path)
    monkeypatch.setattr(raison.methods, "__path__", [*raison.methods.__path__, str(tmp_path / "methods")])
    monkeypatch.setattr(METHODS, "names", (*METHODS.names, "odd"))
    listing.names.cache_clear()
    listing.entry.cache_clear()
    yield tmp_path / "methods" / "odd.py"
    listing.names.cache_clear()
    listing.entry.cache_clear()


def test_constants_without_a_type_and_functions_of_a_base_are_read(written: Path) -> None:
    written.write_text(WRITTEN.format(line="properties = frozenset({Property.DUMMY})"))
    [_, row] = json.loads(out("methods", "--json"))
    assert (row["properties"], row["below zero"]) == (["dummy"], "depends on its settings")
    assert (row["passes"], row["paper"]) == ("0", "Shapley 1953")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("properties = frozenset({Property.SIGNEDD})", "cannot be imported"),
        ("properties = Property.SIGNED", "Odd.properties is 'signed': give a frozenset."),
        ("reference = 'nobody'", f"{shown.BIBLIOGRAPHY} has no entry 'nobody'"),
        ("size: int = = 3", "is not valid Python"),
    ],
)
def test_a_list_names_an_unfinished_file_and_goes_on(written: Path, line: str, reason: str) -> None:
    written.write_text(WRITTEN.format(line=line))
    found = CliRunner().invoke(app, ["methods", "--json"], catch_exceptions=False)
    assert [row["method"] for row in json.loads(found.stdout)] == ["occlusion"]
    [told] = found.stderr.splitlines()
    assert "methods/odd.py" in told
    assert reason in told


def test_a_class_of_the_caller_s_own_has_no_name_of_the_catalogue() -> None:
    """Otherwise a metric that explains again would take the catalogue's method of this name."""

    @dataclass(frozen=True)
    class Saliency(Occlusion):
        pass

    Saliency.__module__ = "mine.saliency"
    assert name_of(Saliency) == "saliency.Saliency"
    assert name_of(Occlusion()) == "occlusion"


def test_settings_cannot_change() -> None:
    assert METHODS.create("ensemble(methods=['saliency', 'occlusion'])") == METHODS.create(
        "ensemble(methods=('saliency', 'occlusion'))"
    )

    @dataclass(frozen=True)
    class Listed(Occlusion):
        widths: list[int] = field(default_factory=list)

    @dataclass(frozen=True)
    class Mapped(Occlusion):
        widths: dict[str, int] = field(default_factory=dict)

    assert METHODS.create(Listed([1, 2])).widths == (1, 2)
    with pytest.raises(InputError, match=r"Mapped cannot be compared .*settings do not change"):
        METHODS.create(Mapped())


def test_a_missing_method_is_not_answered_with_the_first_of_the_alphabet() -> None:
    with pytest.raises(InputError, match="name one, such as 'auto'"):
        METHODS.create(None)  # type: ignore[arg-type]


HELP = [
    "explain",
    "compare",
    "audit",
    "methods",
    "metrics",
    "bibtex",
    "cite",
    "doctor",
    "estimate",
    "report",
    "study restate",
    "study run",
]
HELP += ["study check", "serve", "train classifier", "train aml", "train ivra", "train scratch", "train answers"]
HELP += ["train amortized-shap", "train at2"]


def test_lists_and_help_pages_do_not_wait_for_torch() -> None:
    calls = [["--version"], ["methods"], ["metrics"], ["bibtex", "all"], *([*page.split(), "--help"] for page in HELP)]
    script = (
        "import sys\nfrom raison.cli import main\n"
        f"for arguments in {calls!r}:\n"
        "    sys.argv = ['raison', *arguments]\n"
        "    try:\n        main()\n    except SystemExit as stop:\n        assert not stop.code, arguments\n"
        "    assert not {'torch', 'transformers', 'scipy'} & set(sys.modules), arguments\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "nickname", ["ig", "gradcam", "Grad-CAM", "shap", "loo", "lrp", "gradient", "attention", "comp"]
)
def test_what_others_call_it_is_understood(nickname: str) -> None:
    catalogue = METRICS if nickname == "comp" else METHODS
    expected = NICKNAMES[nickname.lower().replace("-", "_")]
    with pytest.raises(UnknownNameError, match=f"Did you mean {' or '.join(map(repr, expected))}"):
        catalogue.get(nickname)


def test_every_nickname_is_of_something_and_nothing_s_own_name() -> None:
    known = {*METHODS.names, *METRICS.names}
    assert all(set(meant) <= known for meant in NICKNAMES.values())
    assert not known & NICKNAMES.keys()


def test_the_version_is_printed() -> None:
    assert out("--version") == f"raison {raison.__version__}\n"


def test_every_command_has_a_help_page_that_is_tested() -> None:
    group = typer.main.get_command(app)
    found = [f"{name} {under}" for name, entry in group.commands.items() for under in getattr(entry, "commands", ())]
    found += [name for name, entry in group.commands.items() if not getattr(entry, "commands", None)]
    assert sorted(found) == sorted(HELP)


def test_the_table_of_methods_has_a_row_for_each() -> None:
    printed = out("methods", columns=200)
    assert re.search(r"method\s+about\s+needs\s+properties\s+passes per text\s+paper", printed)
    for name in METHODS.names:
        assert re.search(rf"^ ?{name} ", printed, re.MULTILINE), name
    kernel_shap = next(line for line in printed.splitlines() if line.strip().startswith("kernel_shap"))
    assert "Lundberg and Lee" in re.sub(r"\s+", " ", printed)
    assert "min(samples, 2^n)" in kernel_shap


@pytest.mark.parametrize("columns", [40, 80, 120, 160])
def test_no_word_is_broken_in_a_terminal_of_any_width(columns: int) -> None:
    printed = out("methods", columns=columns)
    assert max(map(len, printed.splitlines())) <= columns
    words = set(printed.replace(",", " ").split())
    for row in json.loads(out("methods", "--json")):
        said = " ".join([row["method"], row["about"], *row["needs"], *row["properties"], row["passes"], row["paper"]])
        assert set(said.replace(",", " ").split()) <= words


def test_json_says_everything_that_a_class_does() -> None:
    rows = json.loads(out("methods", "--json"))
    assert [row["method"] for row in rows] == list(METHODS.names)
    for row in rows:
        cls = METHODS.get(row["method"])
        wanted = {needed.name for needed in cls.needs} | ({"classes"} if "number" not in cls.outputs else set())
        assert row["needs"] == sorted(wanted)
        assert row["properties"] == sorted(cls.properties)
        assert (row["passes"], row["reference"]) == (cls.passes, cls.reference)
        assert re.search(r"\S+ \d{4}$", row["paper"]), row["paper"]
    assert [row["metric"] for row in json.loads(out("metrics", "--json"))] == list(METRICS.names)
    assert "comprehensiveness" in out("metrics")


def test_bibtex_prints_each_entry_once_and_further_ones_of_the_docstring() -> None:
    printed = out("bibtex", "kernel_shap(samples=64)", "gradient_shap" if "gradient_shap" in METHODS.names else "lime")
    assert printed.count("@inproceedings{lundberg2017unified,") == 1
    assert printed.count("@inproceedings{covert2021improving,") == 1
    for entry in printed.strip().split("\n\n"):
        assert entry.startswith("@")
        assert entry.count("{") == entry.count("}")


def test_bibtex_knows_metrics_and_all() -> None:
    assert "{deyoung2020eraser," in out("bibtex", "comprehensiveness")
    found = json.loads(out("bibtex", "all", "--json"))
    cited = {name for entry in found for name in entry["cited_by"]}
    assert cited == {*METHODS.names, *METRICS.names}
    assert all(entry["bibtex"].partition("{")[2].startswith(entry["key"] + ",") for entry in found)


def test_bibtex_of_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'kernel_shap'"):
        CliRunner().invoke(app, ["bibtex", "kernelshap"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("author = {Abnar, Samira and Zuidema, Willem},\n  year = {2020},", "Abnar and Zuidema 2020"),
        ("author = {M{\\'e}lis, D. and B, C. and D, E.},\n  year={2019},", "M\\'elis et al. 2019"),
        ("year = {1953},\n  author = {Shapley, Lloyd S.},", "Shapley 1953"),
        ("note = {nobody},", "What and why"),
        ("year = {2022},", "What and why 2022"),
    ],
)
def test_papers_by_author_and_year(entry: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"@misc{{key2020x,\n  {entry}\n  title = {{What and why}},\n}}"
    monkeypatch.setattr(shown, "bibliography", lambda: {"key2020x": text})
    assert shown.paper("key2020x") == expected
    with pytest.raises(DataError, match="has no entry 'other'"):
        shown.paper("other")


def test_the_thesis_is_cited_by_its_title() -> None:
    assert shown.paper("oxford2022assessing") == "Assessing the Interpretability of Large Language Models 2022"
    assert "author" not in shown.bibtex("oxford2022assessing")


def test_every_entry_of_the_bibliography_is_read() -> None:
    text = (ROOT / "docs" / shown.BIBLIOGRAPHY).read_text(encoding="utf-8")
    assert list(shown.bibliography()) == re.findall(r"^@\w+\{(.+),$", text, re.MULTILINE)


def test_an_installed_package_carries_the_bibliography() -> None:
    """Where `bibliography` looks first."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    included = build["targets"]["wheel"]["force-include"]
    assert included == {f"docs/{shown.BIBLIOGRAPHY}": f"raison/{shown.BIBLIOGRAPHY}"}
    assert "docs" in build["targets"]["sdist"]["include"]
