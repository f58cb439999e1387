"""Models of 500 classes, and of 250,000 entries of vocabulary: nothing grows with them that need not."""

import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.model import LanguageModel
from raison.report.style import phrases
from tests.integration.test_long_texts import Largest
from tests.tiny import TINY

MANY, VOCABULARY = 500, 250_000
TEXT = "a dull plot , but the acting is good and the end is a quiet pleasure"


def classifier(classes: int, problem: str | None = None) -> tuple[BertForSequenceClassification, object]:
    _, tokenizer = TINY["bert"]()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.3,
        id2label={number: f"class{number:03}" for number in range(classes)},
        label2id={f"class{number:03}": number for number in range(classes)},
        problem_type=problem,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BertForSequenceClassification(config).eval(), tokenizer


def load(classes: int, problem: str | None = None) -> LanguageModel:
    return raison.load(*classifier(classes, problem))


def test_the_page_lists_the_highest_classes_and_the_explained_one() -> None:
    model = load(MANY)
    lowest = raison.explain(model, TEXT, "occlusion", progress=False)
    order = sorted(range(MANY), key=lowest.probabilities.__getitem__)
    explanation = raison.explain(model, TEXT, "occlusion", target=model.classes[order[0]], progress=False)
    page = explanation.to_html()
    named = {name for name in model.classes if name in page}
    assert named == {model.classes[i] for i in (order[0], *order[-phrases.FEW :])}
    assert f"and {MANY - phrases.FEW - 1} others" in page
    few = raison.explain(load(3), TEXT, "occlusion", progress=False).to_html()
    assert len(page) < len(few) + 1000


def test_many_labels_of_one_text() -> None:
    model = load(MANY, "multi_label_classification")
    explanation = raison.explain(model, TEXT, "occlusion", progress=False)
    assert len(explanation.decided) > 2 * phrases.FEW
    told = phrases.verdict(explanation).line
    assert told.endswith(f"and {len(explanation.decided) - phrases.FEW} others")


def test_few_classes_are_all_listed() -> None:
    explanation = raison.explain(load(3), TEXT, "occlusion", progress=False)
    assert phrases.shares(explanation).count("class") == 3


def test_doctor_does_not_list_five_hundred_names(tmp_path: object) -> None:
    model, tokenizer = classifier(MANY)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)  # type: ignore[attr-defined]
    told = CliRunner().invoke(app, ["doctor", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert f"and {MANY - 10} others" in " ".join(told.output.split())
    assert "class499" not in told.output


def test_methods_take_the_same_room_for_many_classes() -> None:
    """But for logits of the rows that are evaluated, and their decomposition: rows or tokens times classes."""
    for method in ("occlusion", "integrated_gradients(steps=4)", "kernel_shap(samples=32)", "decompx", "deep_lift"):
        sizes = []
        for classes in (3, MANY):
            with Largest() as seen:
                raison.explain(load(classes), TEXT, method, progress=False)
            sizes.append(seen.numbers)
        assert sizes[1] <= sizes[0] + 64 * MANY, method


def test_logits_of_a_large_vocabulary_are_made_for_the_read_rows_alone() -> None:
    _, tokenizer = TINY["gpt2"]()
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_head=2, n_inner=32, n_layer=1, n_positions=512)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = raison.load(GPT2LMHeadModel(config).eval(), tokenizer)
    table = VOCABULARY * config.n_embd
    for words in (40, 120):
        text = " ".join([TEXT] * (words // 10))
        with Largest() as seen:
            found = raison.explain(model, text, "integrated_gradients(steps=2)", output=" good", progress=False)
        tokens = len(tokenizer(text)["input_ids"])
        assert found is not None
        assert seen.numbers <= max(table, 16 * VOCABULARY) < tokens * VOCABULARY
