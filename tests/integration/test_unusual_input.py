"""Input that is unusual, or nearly right: it is taken as meant, or refused in one line that says what it is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from transformers import AutoModelForSeq2SeqLM, BartConfig
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import AnswerError, InputError, UnknownNameError
from tests.copying import copying_writer
from tests.tiny import TINY, build_language_model

SOURCES = {"a": "the old sailor told a story .", "b": "a dull plot ."}
ANSWER = "the old sailor told a story ."


def one(texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


@pytest.mark.parametrize("count", [1.5, True, "3", float("nan"), 0, -1])
def test_a_number_of_new_tokens_is_a_whole_number(count: Any) -> None:
    writer = raison.load(*build_language_model("llama"))
    with pytest.raises(InputError, match="max_new_tokens cannot be .*: give a whole number of at least 1"):
        raison.explain(writer, "a good film", "occlusion", max_new_tokens=count, progress=False)
    written = raison.explain(writer, "a good film", "occlusion", max_new_tokens=np.int64(2), progress=False)
    assert len(written.scores) == 2


@pytest.mark.parametrize("output", ["\n", "\u200b"])
def test_an_output_without_a_token_is_refused(output: str) -> None:
    _, tokenizer = TINY["bert"]()
    size = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
    config = BartConfig(vocab_size=len(tokenizer), decoder_attention_heads=2, pad_token_id=0, **size)
    writer = raison.load(AutoModelForSeq2SeqLM.from_config(config).eval(), tokenizer)
    with pytest.raises(InputError, match=r"the output .* has no token|the output is empty"):
        raison.explain(writer, "a good film", "occlusion", output=output, progress=False)


@pytest.mark.parametrize(
    ("methods", "metrics", "says"), [([], "sufficiency", "no method given"), ("occlusion", [], "no metric given")]
)
def test_a_comparison_of_nothing_is_refused(methods: Any, metrics: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        raison.compare(raison.load(*TINY["bert"]()), ["a good film"], methods, metrics, progress=False)


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_sources_and_documents_may_be_any_sequence(make: Any) -> None:
    writer = copying_writer([*SOURCES.values(), ANSWER, "who told it?", "from {sources} {question}"])
    settings: dict[str, Any] = {"answer": ANSWER, "template": "from {sources} {question}", "draws": 0}
    found = raison.cite(writer, "who told it?", make([*SOURCES.values()]), **settings)
    assert found.scores == raison.cite(writer, "who told it?", [*SOURCES.values()], **settings).scores
    model = raison.load(lambda pairs: [float(len(set(a) & set(b))) for a, b in pairs], classes=["shared"], pairs=True)
    documents = ["a dull plot", "the old sailor"]
    ranked = raison.explain(model, ("who told it?", make(documents)), "occlusion", progress=False)
    assert ranked.scores == raison.explain(model, ("who told it?", documents), "occlusion", progress=False).scores


def test_a_set_has_no_order() -> None:
    writer = copying_writer([*SOURCES.values(), ANSWER])
    with pytest.raises(InputError, match="sources are"):
        raison.cite(writer, "who told it?", {*SOURCES.values()}, answer=ANSWER)  # type: ignore[arg-type]
    model = raison.load(lambda pairs: [0.5] * len(pairs), classes=["shared"], pairs=True)
    with pytest.raises(InputError):
        raison.explain(model, ("who told it?", {"a plot", "a sailor"}), "occlusion")  # type: ignore[call-overload]


def test_a_setting_of_cite_that_does_not_exist_is_named(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"metod": "occlusion"}
    with pytest.raises(UnknownNameError, match="Did you mean 'method'"):
        raison.cite_file(copying_writer([ANSWER]), "rows.jsonl", tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (lambda texts: None, "returned None: it may lack a return statement"),
        (lambda texts: 0.5, "returned 0.5 for a list of 2 texts"),
        (lambda texts: [{"bad": 0.2, "good": 0.8} for _ in texts], "a mapping with the keys bad, good"),
    ],
)
def test_what_a_function_returns_is_told(returned: Any, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        raison.load(returned, classes=["no", "yes"])


def test_a_functions_rows_may_name_their_classes() -> None:
    def named(texts: list[str]) -> list[dict[str, float]]:
        return [{"yes": 1 / (1 + len(text)), "no": 1 - 1 / (1 + len(text))} for text in texts]

    def plain(texts: list[str]) -> list[list[float]]:
        return [[1 - 1 / (1 + len(text)), 1 / (1 + len(text))] for text in texts]

    found, expected = (
        raison.explain(raison.load(function, classes=["no", "yes"]), "a good film", "occlusion", target="yes")
        for function in (named, plain)
    )
    assert found.scores == expected.scores


@pytest.mark.parametrize("classes", [2, "rating"])
def test_classes_are_a_list(classes: Any) -> None:
    with pytest.raises(InputError, match="give a list"):
        raison.load(one, classes=classes)


def test_a_threshold_is_a_number() -> None:
    model = raison.load(lambda texts: [[0.2, 0.7]] * len(texts), classes=["a", "b"], multi_label=True)
    threshold: Any = "x"
    with pytest.raises(InputError, match="threshold='x' is not a probability"):
        raison.explain(model, "a good film", "occlusion", target="each", threshold=threshold)


def test_statements_out_of_order_are_told_so() -> None:
    writer = copying_writer([*SOURCES.values(), ANSWER, "who told it?", "from {sources} {question}"])
    with pytest.raises(InputError, match="in the order of the answer"):
        raison.cite(
            writer, "who?", SOURCES, answer=ANSWER, statements=[(8, 14), (0, 7)], template="{sources} {question}"
        )


def test_files_say_which_column_they_are_read_from(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "two.csv").write_text("title,text,review\none,a dull plot,a good film\ntwo,so sad,a story\n")
    (tmp_path / "other.csv").write_text("foo,bar\na dull plot,a good film\nso sad,a story\n")
    asked = ["explain", "--model", str(tmp_path / "model"), "--method", "occlusion", "--format", "jsonl"]
    done = CliRunner().invoke(app, [*asked, "--data", str(tmp_path / "two.csv"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "two.csv: text: 'text'; label: none" in done.stderr
    found = CliRunner().invoke(app, [*asked, "--data", str(tmp_path / "other.csv"), "--out", str(tmp_path / "other")])
    assert found.exit_code != 0
    with pytest.raises(raison.RaisonError, match=r"the first line \(foo \| bar\) has none of the usual names"):
        raison.data.load(tmp_path / "other.csv")


def test_a_hostile_name_of_a_column_does_not_reach_the_terminal(tmp_path: Path) -> None:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    name = "\x1b]0;evil\x07"
    (tmp_path / "bad.csv").write_text(f"text,{name}\na dull plot,a good film\nso sad,a story\n")
    place = ["--model", str(tmp_path / "model"), "--data", str(tmp_path / "bad.csv"), "--text-column", name]
    explained = ["explain", "--method", "occlusion", "--out", str(tmp_path / "out"), "--format", "jsonl"]
    for asked in (explained, ["estimate", "--methods", "occlusion"]):
        done = CliRunner().invoke(app, [*asked, *place])
        assert done.exit_code == 0, done.output
        assert "evil" in done.stderr
        assert "\x1b" not in done.stderr


def test_one_message_is_a_chat() -> None:
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    writer = raison.load(model, tokenizer)
    message = {"role": "user", "content": "a good film"}
    found, expected = (
        raison.explain(writer, given, "occlusion", output=" and more", progress=False) for given in (message, [message])
    )
    assert found.scores == expected.scores


def test_a_line_that_is_not_json_names_the_place_in_it(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a dull plot"}\n{"text":"x"\n')
    with pytest.raises(raison.RaisonError, match=r"line 2.*column 12"):
        raison.data.load(tmp_path / "rows.jsonl")


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "raison", "--version"], capture_output=True, text=True, check=True)
    assert raison.__version__ in done.stdout


def test_no_output_for_no_prompt_is_refused_by_a_classifier() -> None:
    model = raison.load(one, classes=["length"])
    with pytest.raises(InputError, match="output applies to generative language models"):
        raison.explain(model, ["a film"], output=[])


def test_rationales_may_come_one_by_one() -> None:
    model = raison.load(one, classes=["length"])
    texts, marks = ["a film", "so good"], [[(0, 1)], [(3, 7)]]
    explained = raison.explain(model, texts, "occlusion", progress=False)
    given = raison.evaluate(model, explained, "auroc", rationales=marks, progress=False)["auroc"].values
    assert raison.evaluate(model, explained, "auroc", rationales=iter(marks), progress=False)["auroc"].values == given
    rows = raison.compare(model, texts, "occlusion", "auroc", rationales=iter(marks), progress=False)
    assert rows["occlusion"]["auroc"].values == given
