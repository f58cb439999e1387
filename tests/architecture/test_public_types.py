"""What a type checker makes of the package, of the README's Python, and of calls whose results have one type."""

import ast
import doctest
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from raison import methods, metrics
from raison.core.registry import Catalogue

ROOT = Path(__file__).parents[2]

USES = """
from collections.abc import Sequence
from typing import assert_type

import numpy as np

from raison.core.model import LanguageModel
from raison.models.adapters.writing.generator import Generator


def uses(model: LanguageModel, writer: Generator, texts: Sequence[str], pairs: list[tuple[str, str]]) -> None:
    names = ["occlusion", "lime"]
    chat = [{"role": "user", "content": "Hello."}]
    assert_type(raison.explain(model, "a text"), raison.Explanation)
    assert_type(raison.explain(model, ("one", "two"), unit="token"), raison.Explanation)
    assert_type(raison.explain(model, texts, target=["negative", "positive"]), list[raison.Explanation])
    assert_type(raison.explain(model, pairs, names[0]), list[raison.Explanation])
    assert_type(raison.explain(model, "a text", target="each"), list[raison.Explanation])
    assert_type(raison.explain(model, texts, names[0], target="each", threshold=0.3), list[list[raison.Explanation]])
    assert_type(raison.evaluate(model, raison.explain(model, texts, target="each")), raison.Scores)
    assert_type(raison.explain(model, ("one", "two", "three")), list[raison.Explanation])
    assert_type(raison.explain(model, np.array(names)), list[raison.Explanation])
    assert_type(raison.explain(model, raison.template("{a}", {"a": "b"})), raison.Explanation)
    assert_type(raison.explain(model, "a text", units={"what": (2, 6)}), raison.Explanation)
    assert_type(raison.explain(model, [{"said": "a text"}], text="said"), list[raison.Explanation])
    assert_type(raison.explain(model, raison.data.load("sst2")), list[raison.Explanation])
    assert_type(raison.explain(writer, raison.Chat(chat), unit="part"), raison.GenerationExplanation)
    assert_type(raison.compare(model, np.array(names), "lime", "log_odds"), raison.Comparison)
    assert_type(raison.explain(writer, "a prompt", contrast=names), raison.GenerationExplanation)
    assert_type(raison.explain(writer, chat), raison.GenerationExplanation)
    assert_type(raison.explain(writer, texts), list[raison.GenerationExplanation])
    assert_type(raison.explain(model, "a text", raison.methods.KernelShap(samples=64)), raison.Explanation)
    assert_type(raison.compare(model, texts, names, (raison.metrics.Comprehensiveness(),)), raison.Comparison)
    assert_type(raison.evaluate(model, raison.explain(model, texts), tuple(names)), raison.Scores)
"""


def python_of(page: str) -> str:
    """The code of a page's Python blocks, without what it prints."""
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    examples = [doctest.DocTestParser().get_examples(block) for block in blocks]
    return "".join(
        "".join(example.source for example in found) if found else block
        for block, found in zip(blocks, examples, strict=True)
    )


def test_the_package_the_readme_and_the_front_door_pass_a_type_checker(tmp_path: Path) -> None:
    """In one run: what mypy reads of torch and of the package takes most of its time."""
    readme = python_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "raison.explain(" in readme
    (tmp_path / "public.py").write_text(readme + USES, encoding="utf-8")
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["packages"]
    assert "raison" in packages
    named = [word for package in ("public", *packages) for word in ("--package", package)]
    # A first run, as in CI, keeps nothing for a second one.
    cache = [] if (ROOT / ".mypy_cache").exists() else ["--cache-dir", os.devnull]
    found = subprocess.run(
        [Path(sys.executable).parent / "mypy", *cache, *named],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("catalogue", [methods, metrics], ids=["methods", "metrics"])
def test_type_checkers_know_every_class(catalogue: Catalogue) -> None:
    source = Path(catalogue.__file__).read_text(encoding="utf-8")
    [block] = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    lines = [ast.unparse(node) for node in block.body]
    classes = catalogue.CATALOGUE.classes()
    wanted = [f"from {catalogue.__name__}.{name} import {one} as {one}" for one, name in classes.items()]
    assert sorted(lines) == sorted(wanted)
