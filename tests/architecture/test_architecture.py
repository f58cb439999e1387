"""The tree is the architecture: layers, one file per method and metric, small files, a light import."""

import ast
import json
import re
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import jaxtyping
import pytest

from raison.core import dims
from raison.core.registry import class_name, name_of
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.studies.kind import every

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("src/raison", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
NO_TORCH = (
    *(f"numerics.statistics.{name}" for name in ("paired", "multiple", "ranks", "pareto")),
    "numerics.measures.agreement",
    "core.results.scores",
    "runs.statistics",
    "runs.agreement",
    "studies.claims",
    "studies.reports",
    *(f"studies.kinds.{kind.name}.{part}" for kind in every() for part in ("results", "sections")),
    "cli.report",
)
"""What reads results besides the report."""


def test_imports_respect_the_layers() -> None:
    found = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"]])
def test_linters(command: list[str]) -> None:
    """mypy: test_public_types.py."""
    found = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_generated_pages_are_fresh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, which has imported torch already, and without the checks of types, which tests of these make."""
    jaxtyping.config.update("jaxtyping_disable", True)
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.setattr(sys, "argv", ["docs/generate.py", "--check"])
    code = runpy.run_path(str(ROOT / "docs/generate.py"))["main"]()
    assert code == 0, capsys.readouterr().err


def too_long(text: str) -> list[str]:
    """What is longer than a file, or a function, may be."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    found = [node.name for node in functions if node.end_lineno - node.lineno >= 60]
    return [*found, *["the file"] * (text.count("\n") > 400)]


def test_what_is_too_long_is_found() -> None:
    function = "def f():\n" + "    pass\n" * 60
    assert too_long(function) == ["f"]
    assert too_long(function.replace("    pass\n", "", 1)) == []
    assert too_long("pass\n" * 401) == ["the file"]


def test_files_and_functions_stay_small() -> None:
    found = {str(path.relative_to(ROOT)): too_long(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: names for path, names in found.items() if names} == {}


def used_in(code: str) -> set[str]:
    """What code imports, the classes that it reads as attributes, and the names of which a text is one or a call.

    A text that is only compared with something, or mentions a name among other words, does not count.
    """
    found: set[str] = set()
    compared: set[ast.AST] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and node.attr[0].isupper():
            found.add(node.attr)
        elif isinstance(node, ast.Compare):
            compared |= {part for side in (node.left, *node.comparators) for part in (side, *getattr(side, "elts", ()))}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in compared:
            found.add(node.value.partition("(")[0])
    return found


def test_a_mention_of_a_method_is_not_a_use() -> None:
    mentions = "'lime is fine'\nassert name == 'lime' or name in ('lime', 'shap'), 'as lime'\nmatch('unknown lime')\n"
    assert "lime" not in used_in(f"{mentions}def lime():\n    'It is not lime.'  # lime\n    np.lime()\n")
    uses = (
        "from raison.methods.lime import Lime",
        "raison.methods.Lime()",
        "NAMES = ['lime']",
        "run('lime(samples=8)')",
    )
    assert all({"lime", "Lime"} & used_in(use) for use in uses)


@pytest.mark.parametrize("catalogue", [METHODS, METRICS])
def test_a_name_is_a_file_with_one_class_and_its_own_tests(catalogue: object) -> None:
    used = {
        name for path in (ROOT / "tests/reference").glob("*.py") for name in used_in(path.read_text(encoding="utf-8"))
    }
    for name in catalogue.names:
        cls = catalogue.get(name)
        assert (cls.__name__, name_of(cls)) == (class_name(name), name)
        assert used & {cls.__name__, name, name.removeprefix("aopc_")}, (
            f"{name} has no reference test: write one in tests/reference that imports {cls.__name__}"
        )
        assert cls.__doc__, f"{name} has no docstring"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_import_is_light() -> None:
    code = (
        "import sys, raison; raison.Explanation;"
        "import json; print(json.dumps([m for m in ('torch', 'transformers', 'scipy', 'pandas') if m in sys.modules]))"
    )
    assert json.loads(run_python(code)) == []


def test_what_reads_results_never_imports_torch() -> None:
    code = (
        "import importlib, pkgutil, sys, raison.report\n"
        "report = [module.name for module in pkgutil.walk_packages(raison.report.__path__, 'raison.report.')]\n"
        f"for name in [*report, *{[f'raison.{name}' for name in NO_TORCH]!r}]:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
        "print(len(report))"
    )
    assert int(run_python(code)) > 10


def test_command_line_help_is_light() -> None:
    code = (
        "import sys, raison.cli; import json;"
        "print(json.dumps([m for m in ('torch', 'transformers', 'scipy') if m in sys.modules]))"
    )
    assert json.loads(run_python(code)) == []


def test_public_names_and_what_a_function_needs() -> None:
    """In one process: both wait for torch."""
    code = (
        "import raison, sys\n"
        "raison.load(lambda texts: [[0.5, 0.5]] * len(texts), classes=['a', 'b'])\n"
        "print([name for name in ('sentence_transformers', 'transformers.pipelines') if name in sys.modules])\n"
        "import raison.explaining.explain, raison.judging.evaluate, raison.judging.compare\n"
        "print(all(callable(getattr(raison, n)) for n in ('load', 'explain', 'evaluate', 'compare')),"
        "raison.methods.KernelShap(samples=8).samples, raison.metrics.LogOdds.__name__)"
    )
    assert run_python(code).split() == ["[]", "True", "8", "LogOdds"]


def test_axes_that_modules_share_are_defined_once() -> None:
    known = {word for line in (dims.__doc__ or "").splitlines() for word in line.partition("  ")[0].split(", ")}
    used: dict[str, set[str]] = defaultdict(set)
    for source in (ROOT / "src").rglob("*.py"):
        for axes in re.findall(r'\b(?:Float|Int|Bool|Integer)\[[\w.]+,\s*"([^"]*)"\]', source.read_text()):
            for axis in re.findall(r"[a-z]{2,}", axes):
                used[axis].add(source.name)
    assert len(used) > 20
    assert {axis for axis, sources in used.items() if len(sources) > 2} - known == set()
