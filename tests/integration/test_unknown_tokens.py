"""Texts that a vocabulary lacks: said in the notes, wherever scores are shown, and of as many texts as there are."""

import copy
import re
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import raison
from raison.core.inputs.unknown_tokens import MOST, unknown_in
from raison.core.model import LanguageModel
from raison.core.results.generation import GenerationExplanation
from raison.jobs.folder import AUDIT, COMPARISON, STUDY, WorkKind
from raison.report.explanations.html import page
from raison.report.explanations.terminal import explanation_plain, explanation_text
from raison.report.style.terminal_text import plain
from raison.report.tables.html import results_page
from raison.studies.reports import write
from tests.tiny import TINY
from tests.tokenizers import TOKENIZERS
from tests.work import WORKS, prepare

CHINESE = "这部 电影 good"
COMPARED = (COMPARISON, STUDY, AUDIT)
"""Work in whose folder explanations are compared."""
BYTES = ("gpt2", "qwen3", "roberta", "modernbert")
"""Families whose tiny tokenizers have every byte."""


def loaded(family: str) -> LanguageModel:
    return raison.load(*TINY[family]())


def test_share_and_units_are_those_of_the_tokenizer() -> None:
    model, tokenizer = TINY["bert"]()
    e = raison.explain(raison.load(model, tokenizer), CHINESE, "occlusion")
    ids = tokenizer(CHINESE, add_special_tokens=False)["input_ids"]
    found = unknown_in(e.notes)
    assert found is not None
    assert found.share == ids.count(tokenizer.unk_token_id) / len(ids) >= MOST
    assert [e.units[unit].text for unit in found.units] == ["这", "部", "电影"]
    assert "Warning: the model can hardly read this text" in plain(explanation_text(e))
    assert raison.Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("family", sorted(TINY))
def test_what_the_vocabulary_has_is_not_mentioned(family: str) -> None:
    assert "unknown_tokens" not in raison.explain(loaded(family), "a dull plot", "random").notes


@pytest.mark.parametrize("family", BYTES)
def test_a_vocabulary_of_bytes_lacks_nothing(family: str) -> None:
    assert "unknown_tokens" not in raison.explain(loaded(family), CHINESE, "random").notes


def test_tables_say_of_how_many_texts() -> None:
    model, texts = loaded("bert"), ["a dull plot", CHINESE, "这", "good"]
    found = raison.compare(model, texts, ["occlusion"], ["comprehensiveness"], progress=False)
    said = "2 of 4 texts have tokens outside the model's vocabulary (5 % or more), 2 of them mostly"
    [caution] = found.cautions
    assert caution.startswith(said)
    assert f"Warning: {said}" in " ".join(str(found).split())
    assert said.replace("'", "&#x27;") in results_page(found)
    assert "2 of 4 texts" in found.to_markdown()
    assert found.to_dict()["cautions"] == [caution]
    scores = raison.evaluate(
        model, raison.explain(model, texts, "occlusion", progress=False), ["entropy"], progress=False
    )
    assert scores.cautions == found.cautions
    clean = raison.compare(model, texts[:1], ["occlusion"], ["comprehensiveness"], progress=False)
    assert clean.cautions == ()
    assert "Warning" not in str(clean)


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: kind.name)
def test_a_report_that_is_made_later_says_it(kind: WorkKind, tmp_path: Path) -> None:
    place, out = prepare(tmp_path), tmp_path / "out"
    lines = (place / "words.tsv").read_text().splitlines(keepends=True)
    (place / "words.tsv").write_text("".join([*lines[:2], f"{CHINESE}\tnegative\n", *lines[3:]]))
    for _ in range(2):
        # Gone on with, too.
        WORKS[kind](place, out)
    page = write(out, None, False)
    texts = 2 if kind == AUDIT else len(lines)
    told = re.compile(rf"\b\d+ of {texts} texts have tokens outside.*, 1 of them mostly")
    written = [page, *(page.with_name(name) for name in ("tables.md", "tables.tex"))]
    for path in (path for path in written if path.exists()):
        assert told.search(path.read_text(encoding="utf-8")), path
    assert len([path for path in written if path.exists()]) >= 2


def test_prompts_that_cannot_be_read_are_said_too() -> None:
    tokenizer = copy.deepcopy(TOKENIZERS["unigram"]())
    config = GPT2Config(
        n_embd=32, n_head=4, n_layer=2, vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=1, pad_token_id=0
    )
    with torch.random.fork_rng(devices=[]):
        writer = raison.load(GPT2LMHeadModel(config).eval(), tokenizer)
    e = raison.explain(writer, "the 这部 电影", "occlusion", output=" good")
    assert isinstance(e, GenerationExplanation)
    assert "not in the model's vocabulary" in " ".join(explanation_plain(e).split())
    assert 'class="unit unread"' in page(e)
