"""Training a language model that answers from sources, end to end on a tiny random model and invented articles."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from raison.cli.train.commands import app
from raison.core.errors import DataError
from raison.data.sourced.articles import articles
from raison.data.sourced.passages import SourcedQuestions
from raison.data.sourced.planted import planted
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.ready_made import zoo
from raison.training.objectives.next_tokens import NextTokens
from raison.training.preparation.passage_batches import ReadingBatches, tree_batch
from raison.training.recipes.answers import AnswersSettings, adapted, exact, held_out_questions, train_answers
from tests.reading import build_chatting, write_articles
from tests.tiny import build_language_model

QUICK = AnswersSettings(epochs=1, fewest=2, most=3, questions=3, rank=2, test_limit=2, progress=False)


@pytest.fixture(scope="module")
def writer() -> Generator:
    model, tokenizer = build_chatting()
    return Generator(model, tokenizer, "llama")


@pytest.fixture
def squad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two articles to learn from, and one of those that tests see."""
    folder = write_articles(tmp_path / "data" / "squad")
    monkeypatch.setenv("RAISON_DATA", str(folder.parent))
    return folder


def test_a_tree_has_the_logits_of_its_rows(writer: Generator) -> None:
    sources = {"a": "the sea is old.", "b": "a captain saw it."}
    asked = (("who saw it?", "a captain"), ("who saw the sea?", "the captain"), ("what is old?", "the sea"))
    batch = tree_batch(writer, SourcedQuestions(sources, asked))
    model = build_language_model("llama")[0]
    logits = adapted(model, QUICK)(batch.inputs)
    wanted, answers = [], []
    for question, answer in asked:
        source = tree_batch(writer, SourcedQuestions(sources, ((question, answer),)))
        ids, labels = source.inputs["tokens"], source.labels
        assert labels[-1] == writer.tokenizer.eos_token_id
        assert ids[-len(labels) + 1 :].tolist() == labels[:-1].tolist()
        with torch.no_grad():
            wanted.append((labels.tolist(), writer.core(ids[None]).logits[0, -len(labels) :]))
        answers += labels.tolist()
    assert sorted(batch.labels.tolist()) == sorted(answers)
    start = 0
    while wanted:
        # Rows are sorted by their tokens, and the order of the questions is another one.
        place = next(n for n, (own, _) in enumerate(wanted) if batch.labels[start : start + len(own)].tolist() == own)
        own, plain = wanted.pop(place)
        torch.testing.assert_close(logits[start : start + len(own)].detach(), plain, atol=1e-5, rtol=1e-4)
        start += len(own)
    apart = [tree_batch(writer, SourcedQuestions(sources, (one,))).inputs["tokens"] for one in asked]
    assert len(batch.inputs["tokens"]) < 0.7 * sum(map(len, apart))


def test_an_epoch_goes_on_where_it_stopped(writer: Generator, squad: Path) -> None:
    batches = ReadingBatches(writer, articles("train"), QUICK, steps=6)
    whole = list(batches.epoch(1))
    assert len(whole) == len(batches) == 6
    rest = list(batches.epoch(1, 4))
    assert [one.labels.tolist() for one in rest] == [one.labels.tolist() for one in whole[4:]]
    other = list(batches.epoch(2))
    assert [one.labels.tolist() for one in other] != [one.labels.tolist() for one in whole]


def test_the_loss_falls_on_what_is_learned(writer: Generator) -> None:
    batch = tree_batch(writer, SourcedQuestions({"a": "the sea is old."}, (("what is old?", "the sea"),)))
    module = adapted(build_language_model("llama")[0], AnswersSettings(rank=4))
    parameters = [one for one in module.parameters() if one.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    losses = []
    for _ in range(20):
        loss = NextTokens().loss(module, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


def test_train_answers_writes_an_adapter_that_is_the_trained_model(
    writer: Generator, squad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    writer.model.save_pretrained(base)
    writer.tokenizer.save_pretrained(base)
    monkeypatch.chdir(tmp_path)
    command = ["answers", "--out", "out", "--base", "base", "--epochs", "1", "--most", "3", "--rank", "2",
               "--test-limit", "2"]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "5 passages" in result.output
    card = zoo.read_card(tmp_path / "out")
    assert card["command"] == "raison train answers --out out --base base --epochs 1 --most 3 --rank 2 --test-limit 2"
    assert set(card["exact"]) == {"trained", "base"}
    # The held-out article has no 9 other paragraphs.
    assert set(card["exact"]["base"]) == {"5 passages", "made-up facts", "combined facts"}
    tensors = load_file(tmp_path / "out" / zoo.ADAPTER)
    assert {value.dtype for value in tensors.values()} == {torch.float16}
    model, tokenizer = zoo.language_model(base, tmp_path / "out")
    again = Generator(model, tokenizer, "again")
    for name, known in held_out_questions(articles("test"), 2).items():
        assert card["exact"]["trained"][name] == sum(exact(again, one) for one in known) / len(known)
    changed = [n for n, p in model.named_parameters() if not torch.equal(p, dict(writer.model.named_parameters())[n])]
    assert changed
    assert all("self_attn" in name for name in changed)
    with pytest.raises(DataError):
        train_answers(str(base), squad, QUICK)


def test_a_run_can_be_cut_short(
    writer: Generator, squad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    writer.model.save_pretrained(base)
    writer.tokenizer.save_pretrained(base)
    monkeypatch.setattr("raison.training.recipes.answers.held_out_questions", lambda *_: {})
    card = train_answers(str(base), tmp_path / "out", replace(QUICK, stop_after=2))
    assert card["steps"] == 2
    assert card["settings"]["stop_after"] == 2


def test_another_chat_template_is_another_training(
    writer: Generator, squad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    writer.model.save_pretrained(base)
    writer.tokenizer.save_pretrained(base)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raison.training.recipes.answers.adapted", cut)
    with pytest.raises(KeyboardInterrupt):
        train_answers(str(base), out, QUICK)
    template = base / "chat_template.jinja"
    template.write_text(template.read_text() + "so :\n")
    with pytest.raises(DataError, match="it differs in tokenizer"):
        train_answers(str(base), out, QUICK)


def test_without_squad_it_says_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAISON_DATA", raising=False)
    with pytest.raises(DataError, match="squad"):
        train_answers("smollm2", tmp_path / "out", QUICK)
    assert not (tmp_path / "out").exists()


def test_no_held_out_fact_was_trained_on() -> None:
    """Of the facts that two epochs of a few seeds draw, none is asked in the end."""
    asked = held_out_questions((), 60)
    assert set(asked) == {"made-up facts", "combined facts"}
    facts = {(known.question, known.answer) for questions in asked.values() for known in questions}
    for seed in (0, 1, 100_003, 100_004):
        for kind in ("single", "combined"):
            learned = islice(planted(kind, others=6, seed=1 + seed), 600)
            assert not facts & {(known.question, known.answer) for known in learned}
