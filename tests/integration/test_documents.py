"""Every command and every line of Python in README.md and docs/ runs as it stands, from the root of a clone.

Demo models have the lowest of their layers only, except with RAISON_ALL_FAMILIES=1: whole, they take most of their
time. MiniLM is whole on pages that show what it says or use its shipped explainer. Of SmolLM2 without an adapter, an
example expects the one source that these layers find, too.
"""

import shlex
import shutil
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import LoadError
from raison.models.loading.load import load
from raison.models.loading.ready_made import base_weights, zoo
from raison.studies import plans
from tests.conftest import ALL
from tests.fake_server import Fake, running

ROOT = Path(__file__).parents[2]
PORT = 8080
"""Where docs/served.md has its server; a small one of the tests' stands in for it."""
GENERATED = ("docs/methods.md", "docs/metrics.md")
PAGES = [
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if str(path.relative_to(ROOT)) not in GENERATED
]
INSTALL = ("python3", "pip", "pytest")
"""What a line of shell may do besides: whoever runs this test has done it."""


_LOADED: dict[str, Any] = {}
"""The demo models that the examples loaded last: none of them leaves its model changed."""
MOST_LOADED = 6
"""One with SmolLM2 takes half a gigabyte."""
LAYERS = 5
"""Of the 30 layers of SmolLM2, those that the examples run if no adapter has learned on the others."""
WHOLE = ("README.md", "docs/aml.md", "docs/usage.md")
"""Pages whose examples run all six layers of MiniLM; on the others one."""


def load_once(*args: Any, **settings: Any) -> Any:
    """raison.load, but one demo model for all examples that ask for the same, on any page."""
    if not str(args[0]).startswith("demo/"):
        return load(*args, **settings)
    key = repr((args, sorted(settings.items()), zoo.merged is one_layer))
    _LOADED[key] = _LOADED.pop(key) if key in _LOADED else load(*args, **settings)
    for oldest in [*_LOADED][:-MOST_LOADED]:
        del _LOADED[oldest]
    return _LOADED[key]


def few_layers(folder: Path, adapter: Path | None, whole: Any = zoo.language_model) -> Any:
    """What zoo.language_model reads, without the upper layers if no adapter has learned on them."""
    model, tokenizer = whole(folder, adapter)
    if adapter is None:
        del model.model.layers[LAYERS:]
        model.config.num_hidden_layers = LAYERS
    return model, tokenizer


def one_layer(model: Any, adapter: Path, whole: Any = zoo.merged) -> Any:
    """What zoo.merged makes, without the upper layers if it is a BERT."""
    model = whole(model, adapter)
    if model.config.model_type == "bert":
        del model.bert.encoder.layer[1:]
        model.config.num_hidden_layers = 1
    return model


def commands(example: Example) -> None:
    """Run a block's lines, as the installed command does, in this process: otherwise each would import torch again."""
    for line in example.parsed.replace("\\\n", " ").splitlines():
        for command in line.split(" && "):
            name, *arguments = shlex.split(command, comments=True)
            if Path(name).name in INSTALL:
                continue
            assert Path(name).name == "raison", command
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, f"{command}\n{done.exception}\n{done.output[-2000:]}"


def toml(example: Example) -> None:
    """Read a block."""
    tomllib.loads(example.parsed)


def parsed(page: str) -> Document:
    """A page with its blocks; those of Python share names."""
    parsers = [PythonCodeBlockParser(), CodeBlockParser("bash", commands), CodeBlockParser("toml", toml)]
    return Sybil(parsers=parsers).parse(ROOT / page)


@pytest.mark.demo
@pytest.mark.in_turn(1)
@pytest.mark.parametrize("page", [page for page in PAGES if list(parsed(page))])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for base in ("minilm", *(("smollm2",) if "smollm2" in (ROOT / page).read_text(encoding="utf-8") else ())):
            base_weights.fetch(base, progress=False)
    except LoadError as error:
        pytest.skip(f"the demo models' weights cannot be fetched: {error}")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # A clone has no data sets beside it, and no Hub has to be asked.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("RAISON_DATA", raising=False)
    monkeypatch.setattr(raison, "load", load_once)
    monkeypatch.setattr(plans, "load_model", load_once)
    if not ALL:
        monkeypatch.setattr(zoo, "language_model", few_layers)
        if page not in WHOLE:
            monkeypatch.setattr(zoo, "merged", one_layer)
    with running(Fake(), PORT) if page == "docs/served.md" else nullcontext():
        for example in parsed(page):
            example.evaluate()


@pytest.mark.parametrize("page", PAGES)
def test_no_example_is_left_out(page: str) -> None:
    """A block with a command or with Python says so, or nothing would run it.

    A server runs until it is told to end (tests/integration/test_serve_live.py).
    """
    fence = ""
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            fence = "" if fence else line.removeprefix("```") or "none"
        elif fence not in ("bash", "python"):
            command = line.strip().startswith(("raison ", "import raison", "raison."))
            assert not command or line.startswith("raison serve "), f"{page}, line {number}"
