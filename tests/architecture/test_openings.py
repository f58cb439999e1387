"""Nothing that is loaded may run code of its own: every call that reads a model says so, in one file."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli import app
from raison.core.errors import RaisonError
from tests.tiny import TINY

SOURCE = Path(__file__).parents[2] / "src" / "raison"
READER = SOURCE / "models" / "loading" / "pretrained.py"
READS = ("from_pretrained", "from_config", "pipeline")
"""Names of calls of transformers and PEFT by which code in a folder could run."""


def calls(name: str) -> Iterator[tuple[Path, ast.Call]]:
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if name in text else ():
            if isinstance(node, ast.Call) and _called(node) == name:
                yield file, node


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def settings(node: ast.Call) -> dict[str | None, str]:
    return {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}


@pytest.mark.parametrize("name", READS)
def test_no_call_trusts_remote_code(name: str) -> None:
    found = list(calls(name))
    bad = [f"{file.name}:{node.lineno}" for file, node in found if settings(node).get("trust_remote_code") != "False"]
    assert not bad
    assert name != "from_pretrained" or found


def test_models_are_read_in_one_file_and_from_safetensors() -> None:
    found = [(file, node) for file, node in calls("from_pretrained")]
    assert {file for file, _ in found} == {READER}
    models = [node for _, node in found if not ast.unparse(node.func).startswith(("Auto", "Peft"))]
    assert models
    assert all(settings(node).get("use_safetensors") == "True" for node in models)
    assert all(settings(node).get("weights_only") == "True" for _, node in calls("load") if _of_torch(node))


def _of_torch(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "torch.load"


CODE = """
from pathlib import Path
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
Path({trace!r}).write_text("ran")
class Config(BertConfig):
    model_type = "{kind}"
class Model(BertForSequenceClassification):
    config_class = Config
class Tokens(BertTokenizerFast):
    pass
"""
AUTO = {
    "AutoConfig": "theirs.Config",
    "AutoModel": "theirs.Model",
    "AutoModelForCausalLM": "theirs.Model",
    "AutoModelForSequenceClassification": "theirs.Model",
    "AutoModelForQuestionAnswering": "theirs.Model",
    "AutoTokenizer": ["theirs.Tokens", "theirs.Tokens"],
}


@pytest.mark.parametrize("kind", ["bert", "theirs"])
@pytest.mark.parametrize("command", ["explain", "doctor", "train"])
def test_a_folder_with_code_runs_none_of_it_whatever_is_piped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, command: str
) -> None:
    """transformers asks on standard input whether the code may run, and a text that begins with "y" says yes."""
    folder, trace = tmp_path / "model", tmp_path / "trace"
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name in ("config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text()) | {"auto_map": AUTO}
        if name == "config.json":
            content["model_type"] = kind
        else:
            content["tokenizer_class"] = "Tokens"
        (folder / name).write_text(json.dumps(content))
    (folder / "theirs.py").write_text(CODE.format(trace=str(trace), kind=kind))
    (tmp_path / "texts.tsv").write_text("text\tlabel\nyes, fine\tgood\nno, bad\tbad\n")
    data = ["--train", "texts.tsv", "--test", "texts.tsv"]
    arguments = {
        "explain": ["explain", "-m", str(folder), "--method", "occlusion", "-"],
        "doctor": ["doctor", str(folder)],
        "train": ["train", "classifier", *data, "--base", str(folder), "--out", "out"],
    }[command]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments, input="y\ny\ny\ny\n")
    assert not trace.exists()
    assert done.exception is None or isinstance(done.exception, (RaisonError, SystemExit))
