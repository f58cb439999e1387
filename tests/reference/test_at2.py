"""AT2 against the paper's sums written out, on a model whose one head decides, and on planted weights."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import raison
from raison.core.errors import DataError, InputError, LoadError, UnsupportedError
from raison.data.question_rows import QuestionRow
from raison.explaining.answers import Answers
from raison.models.adapters.writing.generator import Generator
from raison.models.adapters.writing.writer import Writer
from raison.models.anatomy import answer_rows
from raison.models.derived.cards import FILE
from raison.models.derived.explainers import TOLERANCE
from raison.models.derived.trained_heads import read_card
from raison.numerics.attention.head_weights import Ablated, correlations, learned_weights
from raison.training.recipes import at2 as recipe
from raison.training.recipes.at2 import At2Settings, train_at2
from tests.explainers import trained_heads
from tests.tiny import build_language_model, build_writer

SOURCES = {
    "sea": "the old sailor told a story about the sea. it was quiet.",
    "plot": "a dull plot and nobody believed him at all.",
}
ANSWER = "the sailor told it. a quiet story."
WORDS = "Answer the question from sources. Question: Answer: who? yes no key one two three four five six".split()


def cited(writer: Generator, folder: Path, **changes: object) -> raison.Citations:
    method = f"at2(checkpoint={str(folder)!r})"
    given = {"answer": ANSWER, "template": "plain", "draws": 0, "method": method, **changes}
    return raison.cite(writer, "who told a story?", SOURCES, **given)


def owners_of(c: raison.Citations, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """The number of the source that each token of the prompt belongs to; white space goes with the word after it."""
    owners: list[int | None] = []
    for left, right in reversed(offsets):
        words = [place for place in range(left, right) if c.prompt[place].strip()]
        homes = [n for n, (start, end) in enumerate(c.removed) if words and start <= words[0] < end]
        owners.append(homes[0] if homes else None if words or not owners else owners[-1])
    return owners[::-1]


@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_equals_the_sums_written_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Generator(*build_language_model(name), name)
    weights = torch.randn(3, 4, generator=torch.Generator().manual_seed(3)).double()
    trained_heads(writer, tmp_path, weights)
    # Several blocks of rows, of which one reaches over the border of two statements.
    monkeypatch.setattr(answer_rows, "TOGETHER", 5)
    c = cited(writer, tmp_path)
    prompt = writer.prompt(c.prompt)
    output = writer.output(prompt, " " + ANSWER)[0]
    ids = [*prompt.ids, *output.ids]
    eager = build_language_model(name)[0]
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        maps = eager(torch.tensor([ids]), output_attentions=True).attentions
    owners = owners_of(c, prompt.offsets)
    first = len(prompt.ids)
    for number, statement in enumerate(c.statements):
        expected = [0.0] * len(c.sources)
        for token in range(first, first + statement.tokens):
            for place, owner in enumerate(owners):
                for layer in range(3):
                    for head in range(4):
                        if owner is not None:
                            share = float(maps[layer][0, head, token - 1, place])
                            expected[owner] += float(weights[layer, head]) * share / statement.tokens
        np.testing.assert_allclose(c.scores[number], expected, atol=2e-5)
        first += statement.tokens
    # A statement alone is as among others, and a source is the sum of its sentences and its label.
    spans = [(c.statements[1].start, c.statements[1].end)]
    np.testing.assert_allclose(cited(writer, tmp_path, statements=spans).scores[0], c.scores[1], atol=1e-6)
    np.testing.assert_allclose(cited(writer, tmp_path, within="source").scores, c.scores, atol=1e-6)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_token_has_the_row_that_predicts_it(earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Generator(*build_language_model("mistral"), "mistral")
    weights = torch.randn(3, 4, generator=torch.Generator().manual_seed(3)).double()
    trained_heads(writer, tmp_path, weights)
    monkeypatch.setattr(answer_rows, "TOGETHER", 3)
    method, asked = f"at2(checkpoint={str(tmp_path)!r})", "who told a story about the sea?"
    e = raison.explain(writer, asked, method, output=" the sailor told it.", unit="token", earlier=earlier)
    prompt = writer.prompt(asked)
    ids = [*prompt.ids, *(token.id for token in e.tokens)]
    eager = build_language_model("mistral")[0]
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        maps = eager(torch.tensor([ids]), output_attentions=True).attentions
    assert len(e.tokens) > 3
    for number in range(len(e.tokens)):
        row = len(prompt.ids) + number - 1
        seen = range(prompt.added, row + 1 if earlier else len(prompt.ids))
        expected = [
            sum(float(weights[a, b] * maps[a][0, b, row, place]) for a in range(3) for b in range(4)) for place in seen
        ]
        own = [score for score in e.scores[number] if score is not None]
        np.testing.assert_allclose(own, expected, atol=2e-5)


def test_every_token_is_read_once_and_few_rows_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_rows, "TOGETHER", 5)
    model = build_language_model("llama")[0]
    ids, groups, read = list(range(5, 45)), [range(20, 27), range(30, 36)], []
    model.base_model.register_forward_pre_hook(
        lambda _module, _args, given: read.append(given["input_ids"].tolist()[0]), with_kwargs=True
    )
    found = answer_rows.mean_rows(model, ids, groups)
    assert [token for part in read for token in part] == ids[:36]
    assert [len(part) for part in read] == [20, 5, 5, 5, 1]
    assert found.shape == (2, 3, 4, 40)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 3, 4).double())
    assert float(found[0, :, :, 26:].abs().max()) > 0 == float(found[0, :, :, 27:].abs().max())


def test_equal_weights_are_the_mean_attention(tmp_path: Path) -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    trained_heads(writer, tmp_path, torch.full((3, 4), 1 / 12))
    c = cited(writer, tmp_path)
    other = cited(writer, tmp_path, method="attention_average(queries='prediction')")
    for number, statement in enumerate(c.statements):
        np.testing.assert_allclose(np.array(c.scores[number]) * statement.tokens, other.scores[number], atol=1e-5)


def keyed_writer() -> Generator:
    """A model that says "yes" after "Answer:" as far as the first head of its last layer finds "key".

    The other heads look at all tokens alike and write nothing.
    """
    words = {word: number for number, word in enumerate(["[UNK]", *dict.fromkeys(WORDS)])}
    inner = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = WhitespaceSplit()
    size, half = 64, 32
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(words),
            n_embd=size,
            n_head=2,
            n_layer=2,
            n_positions=256,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for block in model.transformer.h:
            block.ln_1.weight.fill_(1)
        model.transformer.ln_f.weight.fill_(1)
        model.transformer.wte.weight.copy_(4 * torch.eye(len(words), size))
        attention = model.transformer.h[1].attn
        # Conv1D: inputs x outputs, of queries, keys and values.
        attention.c_attn.weight[words["Answer:"], 0] = 4
        attention.c_attn.weight[words["key"], size] = 4
        attention.c_attn.weight[words["key"], 2 * size] = 1
        attention.c_proj.weight[0, half + 20] = 4
        model.lm_head.weight[words["yes"], half + 20] = 2
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
    return Generator(model, tokenizer, "keyed")


def keyed_rows(count: int) -> list[QuestionRow]:
    """Three sources each, of which one has the key."""
    random = np.random.default_rng(5)
    rows = []
    for number in range(count):
        texts = [" ".join(random.choice(WORDS[-6:], 6 + 6 * place)) for place in random.permutation(3)]
        home = int(random.integers(3))
        texts[home] += " key"
        rows.append(QuestionRow(number, "who?", {f"{place}": text for place, text in enumerate(texts)}, "yes"))
    return rows


def test_training_finds_the_head_that_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, rows = keyed_writer(), keyed_rows(12)
    settings = At2Settings(questions=10, held_out=3, ablations=8, steps=300, learning_rate=0.02, progress=False)
    # Cut short, and gone on with.
    answered, calls = recipe.answers_of, []

    def cut(writer: Writer, rows: Sequence[QuestionRow]) -> Answers:
        calls.append(rows)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return answered(writer, rows)

    monkeypatch.setattr(recipe, "answers_of", cut)
    with pytest.raises(KeyboardInterrupt):
        train_at2(writer, rows, tmp_path / "cut", settings)
    # The second of five finished questions is lost.
    lines = (tmp_path / "cut" / recipe.JOURNAL).read_text().splitlines(keepends=True)
    (tmp_path / "cut" / recipe.JOURNAL).write_text("".join(lines[:1] + lines[2:]))
    card = train_at2(writer, rows, tmp_path / "cut", settings)
    assert len(calls) == 6 + 1 + 5
    whole = train_at2(writer, rows, tmp_path / "whole", settings)
    assert (card.weights, card.said) == (whole.weights, whole.said)
    weights = np.array(card.weights)
    assert np.abs(weights).sum() == pytest.approx(1, abs=1e-4)
    assert weights[1, 0] > 0.9
    reached = card.provenance["correlation"]
    assert reached["held_out"] > 0.99 > reached["held_out_equal_weights"]
    assert read_card(tmp_path / "cut", "keyed") == card
    assert sorted(path.name for path in (tmp_path / "cut").iterdir() if path.name[0] != ".") == [FILE, "training.json"]
    for row in rows[-2:]:
        [home] = [name for name, text in (row.sources or {}).items() if "key" in text]
        method = f"at2(checkpoint={str(tmp_path / 'cut')!r})"
        c = raison.cite(writer, "who?", row.sources, answer="yes", method=method, draws=0)
        assert c.top(0) == home
        assert c.scores[0][int(home)] == pytest.approx(weights[1, 0], abs=0.15)
    with pytest.raises(DataError, match="it differs in data"):
        train_at2(writer, rows[1:], tmp_path / "cut", settings)


def test_questions_with_a_single_source_are_left_out(tmp_path: Path) -> None:
    rows = keyed_rows(6)
    single = [QuestionRow(row.number, row.question, {"0": "one key"}, row.answer) for row in rows]
    settings = At2Settings(questions=5, held_out=2, ablations=4, steps=3, progress=False)
    card = train_at2(keyed_writer(), [*rows[:2], single[2], rows[3], single[4]], tmp_path / "some", settings)
    assert card.provenance["data"]["left_out"] == 2
    assert card.provenance["statements"] == {"learned": 2, "held_out": 1}
    with pytest.raises(InputError, match="too few questions with at least 2 sources: 2 statements for training and 0"):
        train_at2(keyed_writer(), [*rows[:2], *single[2:]], tmp_path / "none", settings)


def test_planted_weights_are_recovered() -> None:
    drawn = torch.Generator().manual_seed(7)
    planted = torch.randn(2, 4, generator=drawn).double()
    statements = []
    for _ in range(40):
        attention = torch.rand(5, 2, 4, generator=drawn).double()
        keeps = torch.rand(16, 5, generator=drawn) < 0.5
        effects = torch.einsum("slh,lh->s", attention, planted)
        statements.append(Ablated(attention, keeps, 3 * (2 * keeps.double() - 1) @ effects - 1.5))
    own = statements[0]
    # Of an answer on which no source bears, or whose sources were never removed, nothing is learned.
    silent = Ablated(own.attention, own.keeps, torch.zeros(16, dtype=torch.float64))
    whole = Ablated(own.attention, torch.ones(16, 5, dtype=torch.bool), own.log_odds)
    found = learned_weights([*statements, silent, whole], steps=400, learning_rate=0.05)
    assert float(found.abs().sum()) == pytest.approx(1)
    torch.testing.assert_close(found, planted / planted.abs().sum(), atol=0.01, rtol=0)
    assert correlations(found, statements).min() > 0.99
    effects = torch.einsum("slh,lh->s", own.attention, found).tolist()
    predicted = [
        sum(effect if kept else -effect for effect, kept in zip(effects, row, strict=True))
        for row in own.keeps.tolist()
    ]
    literal = np.corrcoef(predicted, own.log_odds)[0, 1]
    assert float(correlations(found, [own])[0]) == pytest.approx(literal, abs=1e-6)
    assert correlations(found, [silent, whole]).abs().max() < 1e-6


def test_what_cannot_be_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "cache"))
    writer = Generator(*build_language_model("llama"), "llama")
    with pytest.raises(LoadError, match=r"train them \(raison train at2 --model llama\)"):
        cited(writer, tmp_path / "nowhere")
    other = Generator(*build_language_model("qwen3"), "qwen3")
    trained_heads(other, tmp_path / "other", torch.ones(3, 4))
    with pytest.raises(UnsupportedError, match=r"trained for qwen3 and do not explain llama.*raison train at2"):
        cited(writer, tmp_path / "other")
    trained_heads(writer, tmp_path / "small", torch.ones(2, 4))
    with pytest.raises(LoadError, match="weights for 2 layers of 4 heads, and its attention has 3 layers of 4 heads"):
        cited(writer, tmp_path / "small")
    card = json.loads((tmp_path / "small" / FILE).read_text())
    for name, value in (("weights", [[1.0], [1.0, 2.0]]), ("said", [2.0]), ("schema", 9), ("weights", "much")):
        (tmp_path / "small" / FILE).write_text(json.dumps(card | {name: value}))
        with pytest.raises(LoadError, match=r"explainer\.json"):
            read_card(tmp_path / "small", "llama")
    two_stacks = Generator(*build_writer("t5"), "t5")
    with pytest.raises(UnsupportedError, match="processed by two stacks"):
        cited(two_stacks, tmp_path / "small")
    rows = [QuestionRow(0, "who?", SOURCES, "the sailor."), QuestionRow(1, "what?", SOURCES, "a plot.")]
    with pytest.raises(UnsupportedError, match="answer_attention"):
        train_at2(two_stacks, rows, tmp_path / "out", At2Settings(questions=2, held_out=1, progress=False))
    with pytest.raises(InputError, match="give more questions"):
        train_at2(writer, rows, tmp_path / "out", At2Settings(questions=2, held_out=2, ablations=2, progress=False))


def test_weights_of_a_model_that_was_trained_since_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tiny model is sure of nothing.
    monkeypatch.setattr("raison.models.derived.trained_heads.TOLERANCE", 0.01)
    writer = Generator(*build_language_model("llama"), "llama")
    trained_heads(writer, tmp_path, torch.ones(3, 4))
    cited(writer, tmp_path)
    with torch.no_grad():
        for parameter in writer.core.parameters():
            parameter.mul_(8)
    with pytest.raises(UnsupportedError, match="the two models' probabilities differ by"):
        cited(writer, tmp_path)


def test_a_model_that_knows_little_is_told_from_another(tmp_path: Path) -> None:
    writer = Generator(*build_language_model("llama"), "llama")
    trained_heads(writer, tmp_path, torch.ones(3, 4))
    cited(writer, tmp_path)
    content = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    # A tiny model is sure of nothing, so a tenth of its probabilities differs little from them.
    assert max(content["said"]) < TOLERANCE
    (tmp_path / FILE).write_text(json.dumps(content | {"said": [share / 10 for share in content["said"]]}))
    with pytest.raises(UnsupportedError, match="the two models' probabilities differ by a factor of 10"):
        cited(writer, tmp_path)


def test_the_docs_have_the_correlations_of_the_shipped_weights() -> None:
    root = Path(__file__).parents[2]
    found = read_card(root / "studies/models/smollm2-answers/at2", "smollm2-answers").provenance["correlation"]
    said = " ".join((root / "docs/training.md").read_text(encoding="utf-8").split())
    assert f"the correlation is {found['held_out']:.2f}; equal weights for all heads" in said
    assert f"heads reach {found['held_out_equal_weights']:.2f} (" in said
