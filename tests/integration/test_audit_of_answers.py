"""An audit of answers that a language model wrote: what is asked, what is left out, and what it says of the cost."""

import json
from html import unescape
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import InputError
from raison.explaining.answers import answers_of, own_answers
from raison.explaining.settings import Settings
from raison.models.adapters.writing.generator import Generator
from raison.studies.kinds.audit.results import Audit
from raison.studies.kinds.audit.results import read as read_audit
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.kinds.audit.work import estimate_audit
from raison.studies.reports import write
from tests.tiny import build_language_model

SOURCES = {"sea": "the old sailor told a story.", "plot": "a dull plot.", "owl": "she sold a film."}
ASKED = ["who told a story?", "what plot?", "what was sold?"]
WORDS = (" the", " sailor", " film")
METHODS = ["occlusion", "input_x_gradient"]
PLAN = AuditPlan(randomised=2, changed=2, attacked=2)


@pytest.fixture(scope="module")
def rows(writer: Generator) -> list[dict[str, object]]:
    """Questions with the model's own answers, and one with another answer."""
    found: list[dict[str, object]] = []
    for question in ASKED:
        own = raison.cite(
            writer, question, SOURCES, max_new_tokens=3, template="plain", draws=0, method="random", within="source"
        ).answer
        found.append({"question": question, "sources": SOURCES, "answer": own, "gold": "sea"})
    return [*found, {"question": ASKED[0], "sources": SOURCES, "answer": "nobody believed him."}]


@pytest.fixture(scope="module")
def writer() -> Generator:
    """A random model that writes three words only, so that what it writes is read again as the same tokens."""
    model, tokenizer = build_language_model("llama")
    words = [tokenizer.encode(word, add_special_tokens=False)[0] for word in WORDS]
    own = model.lm_head.weight.detach()[words]
    # The other words have the logit 0, and one of two opposite rows is above it.
    model.lm_head.weight.data.zero_()[words] = torch.stack([own[0], -own[0], own[1]])
    return Generator(model, tokenizer, "llama")


@pytest.fixture(scope="module")
def folder(writer: Generator, rows: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("audit") / "first"
    raison.audit(writer, rows, METHODS, out=place, plan=PLAN, template="plain", progress=False)
    return place


@pytest.fixture(scope="module")
def audited(folder: Path) -> Audit:
    return read_audit(folder)


def test_answers_that_the_model_does_not_give_are_left_out(
    writer: Generator, rows: list[dict[str, object]], audited: Audit
) -> None:
    told = answers_of(writer, rows, "plain")
    kept = own_answers(writer, told)
    assert kept.answers == told.answers[: len(ASKED)]
    assert (audited.header.texts, audited.header.others) == (len(ASKED), 1)
    assert ("1 more answer", "not the model's own") in audited.left_out
    others = [row | {"answer": "nobody believed him."} for row in rows[:2]]
    with pytest.raises(InputError, match="gives 0 of these 2 answers"):
        raison.audit(writer, others, METHODS, out="nowhere", template="plain")


def test_every_method_gets_its_numbers_and_no_attack(audited: Audit) -> None:
    assert sorted(one.method for one in audited.methods) == sorted(METHODS)
    for one in audited.methods:
        known = {found.question: found.value for found in one.evidence}
        assert known["faithful"] is not None
        assert known["parameters"] is not None
        assert known["attacks"] is None
        assert "predicts none" in one["attacks"].says
        # Three answers are too few to judge by.
        assert {found.light for found in one.evidence} == {"grey"}
    assert audited.trust.missing == 0
    assert {pair.first for pair in audited.agreement} | {pair.second for pair in audited.agreement} == {
        *METHODS,
        "random",
    }


def test_the_report_speaks_of_answers(folder: Path, audited: Audit, tmp_path: Path) -> None:
    page = unescape(write(folder, tmp_path / "report", draw=False).read_text(encoding="utf-8"))
    assert "log-probability of the answer" in page
    assert "two sources are swapped" in page
    assert "How similar the methods' explanations are" in page
    told = json.loads(json.dumps(audited.to_dict(), allow_nan=False))
    assert {pair["first"] for pair in told["agreement"]} <= {*METHODS, "random"}


def test_a_finished_audit_does_nothing_more(writer: Generator, rows: list[dict[str, object]], folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    raison.audit(writer, rows, METHODS, out=folder, plan=PLAN, template="plain", progress=False)
    assert {path: path.read_bytes() for path in folder.rglob("*.jsonl")} == before


def test_the_estimate_names_what_is_done(writer: Generator, rows: list[dict[str, object]]) -> None:
    told = estimate_audit(writer, rows, METHODS, plan=PLAN, template="plain")
    assert set(told.parts) == {"faithfulness", "harmless changes", "randomised blocks"}
    assert min(told.parts.values()) > 0
    assert told.seconds < 60


def test_the_command_and_a_study_of_a_file(
    writer: Generator, rows: list[dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writer.model.save_pretrained("llama")
    writer.tokenizer.save_pretrained("llama")
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = "audit --model llama --data rows.jsonl --methods occlusion --unit part --template plain --json".split()
    result = CliRunner().invoke(app, [*base, "--estimate"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["seconds"] > 0
    Path("audit.toml").write_text(
        """
schema = 1
kind = "audit"
title = "Answers"
methods = ["occlusion"]
[settings]
unit = "part"
[model]
name = "llama"
[data]
source = "rows.jsonl"
template = "plain"
[texts]
randomised = 2
changed = 2
"""
    )
    result = CliRunner().invoke(app, ["study", "run", "audit.toml", "--out", "out"])
    assert result.exit_code == 0, result.output
    assert read_audit(Path("out")).header.others == 1


def test_units_of_another_kind_are_refused(writer: Generator, rows: list[dict[str, object]]) -> None:
    with pytest.raises(InputError, match="unit='part'"):
        raison.audit(writer, rows, METHODS, out="nowhere", settings=Settings("word"), template="plain", plan=PLAN)
