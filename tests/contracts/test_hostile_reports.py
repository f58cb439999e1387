"""Nothing from a study's, a training's or an audit's folder becomes markup of its report: page, Markdown or LaTeX."""

import json
import re
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from raison.jobs.store import RecordStore
from raison.report.tables.writers import escape_latex, escape_markdown
from raison.studies.reports import write
from tests import study_folder
from tests.contracts.test_hostile_pages import structure
from tests.unit.studies.kinds.trainings.test_sections import fill as fill_trainings
from tests.unit.studies.kinds.trust.test_sections import fill as fill_trust

HOSTILE = (
    "<script>alert(1)</script>'\"><svg/onload=alert(1)>\ud800\x00\x1b[31m",
    r"a|b `c` *d* _e_ [x](javascript:y) <u> \input{x} $^_%&#~ } \end{table}",
)
ESCAPED = string.punctuation + "–†"
"""Among these are all characters that are escaped in LaTeX."""
AUDIT = Path(__file__).parents[2] / "studies" / "audit_sst2" / "audit"


def tame(word: str) -> str:
    """A word that breaks a line where the other one does, and has nothing else of it."""
    return "".join(character if character in "(_/ " else "x" for character in word)


def renamed(value: Any, names: dict[str, str]) -> Any:
    """A JSON value with other names, as keys too."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def rewrite(folder: Path, names: tuple[str, ...], word: str) -> None:
    """Put the word before these names in every file of a folder, and into its study file's texts."""
    table = {name: f"{word} {name}" for name in names}
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("crc32", None)
        path.write_text(json.dumps(renamed(content, table)), encoding="utf-8")
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")]):
        store = RecordStore(path.with_name(path.name.removesuffix(".gz")))
        records = store.read().records
        path.unlink()
        store.path.write_text("".join(json.dumps(renamed(record, table)) + "\n" for record in records))
    for path in folder.glob("*.toml"):
        told = json.dumps(f"{re.sub('[^ -~]', '?', word)} says").replace("\\", r"\\")
        path.write_text(re.sub(r'^(title|source|about) = ".*"$', rf"\1 = {told}", path.read_text(), flags=re.M))


def made_study(folder: Path, word: str) -> Path:
    few = ("lime", "occlusion", "saliency", "random(draws=24)", "random")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_folder, "METHODS", {name: study_folder.METHODS[name] for name in few})
        study_folder.make(folder, study_folder.Made(("small", "wide"), 2, 2))
    for path in folder.rglob("study.toml"):
        path.write_text(path.read_text() + "\n[examples]\ntop = 2\n")
    names = ("lime", "occlusion", "demo/sst2", "reviews", "9.9", "negative", "positive", "entropy", "consistency")
    rewrite(folder, names, word)
    return write(folder, draw=False)


def made_trainings(folder: Path, word: str) -> Path:
    folder.mkdir()
    fill_trainings(folder)
    rewrite(folder, ("lime", "comp", "suff", "imdb", "minilm", "invented", "abc", "1", "comp beats lime"), word)
    return write(folder, draw=False)


def made_trust(folder: Path, word: str) -> Path:
    fill_trust(folder)
    kinds = ("saliency", "attention_rollout", "invented sst", "abc", "0", "sst", "gone at once", "small/model")
    rewrite(folder, (*kinds, "it is not differentiable"), word)
    return write(folder, draw=False)


def made_audit(folder: Path, word: str) -> Path:
    shutil.copytree(AUDIT, folder, ignore=shutil.ignore_patterns("report"))
    kinds = ("lime", "occlusion", "kernel_shap", "demo/sst2", "sst2_glue/sentiment-dev.tsv", "2.13.0+cpu")
    rewrite(folder, (*kinds, "its scores come from random draws"), word)
    return write(folder, draw=False)


REPORTS: dict[str, Callable[[Path, str], Path]] = {
    "study": made_study,
    "trainings": made_trainings,
    "trust": made_trust,
    "audit": made_audit,
}


def latex_skeleton(text: str) -> list[str]:
    """Commands, braces, specials and ends of lines, without what escaping writes; comments as lines."""
    text = re.sub(r"(?m)^%.*$", "%", text)
    escapes = {escape_latex(character) for character in ESCAPED} - {*ESCAPED}
    for escaped in sorted(escapes, key=len, reverse=True):
        text = text.replace(escaped, "")
    return re.findall(r"\\(?:[a-zA-Z]+|.)|[{}$&%#_^~\n]", text)


def report(kind: str, folder: Path, word: str) -> dict[str, list[Any]]:
    """The structure of every file of a report; files are named for methods, as are the links to them."""
    place = REPORTS[kind](folder, word).parent
    found: dict[str, list[Any]] = {}
    for number, path in enumerate(sorted(place.rglob("*.*"), key=lambda path: path.name.replace("x", ""))):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".tex":
            found[f"{number}.tex"] = latex_skeleton(text)
            continue
        html = MarkdownIt("commonmark").enable("table").render(text) if path.suffix == ".md" else text
        html = re.sub(r'(?:id|href)="[^"]*"', "", html)
        found[f"{number}{path.suffix}"] = structure(html)
    return found


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("kind", REPORTS)
def test_no_markup_of_a_report_comes_from_its_folder(kind: str, word: str, tmp_path: Path) -> None:
    hostile, plain = report(kind, tmp_path / "hostile", word), report(kind, tmp_path / "plain", tame(word))
    assert {Path(name).suffix for name in hostile} >= {".html", ".md", ".tex"}
    assert sorted(map(str, hostile.values())) == sorted(map(str, plain.values()))


@pytest.mark.parametrize("escape", [escape_markdown, escape_latex])
def test_what_no_file_can_hold_is_replaced(escape: Callable[[str], str]) -> None:
    assert escape("a\ud800b\x00c\x1bd\r\ne\u202ef") == "a\ufffdb\ufffdc\ufffdd e\ufffdf"
