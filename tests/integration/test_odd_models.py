"""Models and files that are unlike the usual: they work, or one line says why not and what to do."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedModel,
)

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, LoadError, TextTooLongError
from raison.models.loading.load import load
from raison.models.loading.ready_made.zoo import fresh_classifier
from tests.tiny import LABELS, TINY, build, build_language_model
from tests.tokenizers import TOKENIZERS

TEXT = "the old sailor told a modest story about the sea, and nobody believed him at all"
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = TINY["bert"]()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def longformer() -> PreTrainedModel:
    tokenizer = TOKENIZERS["roberta"]()
    return LongformerForSequenceClassification(
        LongformerConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_attention_heads=4,
            intermediate_size=64,
            num_hidden_layers=2,
            max_position_embeddings=130,
            attention_window=[8, 8],
            id2label=dict(enumerate(LABELS)),
            pad_token_id=tokenizer.pad_token_id,
            sep_token_id=tokenizer.sep_token_id,
        )
    ).eval()


@pytest.mark.parametrize("method", ["integrated_gradients", "saliency", "occlusion"])
def test_a_model_that_pads_by_itself(method: str) -> None:
    """Longformer pads its input to whole windows, also where embeddings are given in place of ids."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loaded = load(longformer(), TOKENIZERS["roberta"]())
    one, other = raison.explain(loaded, [TEXT, "a modest story"], method=method)
    alone = raison.explain(loaded, "a modest story", method=method)
    assert other.scores == pytest.approx(alone.scores, abs=1e-5)
    assert any(one.scores)


@pytest.mark.parametrize("summary", ["last", "mean", "cls_index"])
def test_a_model_that_would_read_padding_gets_none(summary: str) -> None:
    """XLNet reads the last position of a row, or all: with padding, its answers depended on the batch."""
    model, tokenizer = TINY["xlnet"]()
    model.config.summary_type = model.sequence_summary.summary_type = summary
    loaded = load(model, tokenizer)
    texts = [TEXT, "a modest story", "no", "a dull tale"]
    with torch.no_grad():
        together = loaded.ask(Passes).logits(loaded.encode(texts))
        alone = torch.cat([model(**tokenizer(text, return_tensors="pt")).logits for text in texts])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    assert (together.std(0) > 1e-3).all()


def block_sparse(tokens: int = 4) -> PreTrainedModel:
    tokenizer = TOKENIZERS["bert"]()
    config = BigBirdConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        num_hidden_layers=2,
        max_position_embeddings=256,
        block_size=tokens,
        id2label=dict(enumerate(LABELS)),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BigBirdForSequenceClassification(config).eval()


def test_a_model_that_changes_itself_on_a_short_text_is_left_as_it_was() -> None:
    """BigBird puts full attention in place of block-sparse attention on the first short text, and stays so."""
    given, tokenizer = block_sparse(), TOKENIZERS["bert"]()
    kinds = [type(module) for module in given.modules()]
    state = torch.get_rng_state()
    loaded = load(given, tokenizer)
    assert torch.equal(torch.get_rng_state(), state)
    scores = raison.explain(loaded, TEXT, "attention_rollout", progress=False).scores
    assert any(scores)
    assert [type(module) for module in given.modules()] == kinds
    with torch.no_grad():
        own = loaded.ask(Passes).logits(loaded.encode([TEXT]))
        assert torch.equal(own, given(**tokenizer(TEXT, return_tensors="pt")).logits)
    given.classifier.out_proj.bias.data += 1
    with torch.no_grad():
        assert torch.allclose(loaded.ask(Passes).logits(loaded.encode([TEXT])), own + 1, atol=1e-5), (
            "the weights are the same"
        )


def test_a_text_that_block_sparse_attention_would_read_is_refused() -> None:
    loaded = load(block_sparse(), TOKENIZERS["bert"]())
    assert loaded.max_tokens == 44
    with pytest.raises(TextTooLongError, match="44"):
        raison.explain(loaded, " ".join([TEXT] * 3), "occlusion", progress=False)


@pytest.mark.parametrize("kind", [BertForMultipleChoice, BertForNextSentencePrediction])
def test_other_heads_are_named(folder: Path, kind: type) -> None:
    kind(TINY["bert"]()[0].config).save_pretrained(folder)
    with pytest.raises(LoadError, match=f"is a {kind.__name__}, which does not classify texts"):
        load(folder)


@pytest.mark.parametrize("length", [0, 5, 1000])
def test_a_cut_file_of_weights(folder: Path, length: int) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:length])
    with pytest.raises(LoadError, match="its weights are damaged or cut off"):
        load(folder)


def test_pickled_weights_are_refused_with_the_line_that_converts_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder.rename(folder.with_name("it's $(a) model"))
    before = load_file(folder / WEIGHTS)
    torch.save(before, folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()
    with pytest.raises(LoadError, match="pytorch_model.bin, a pickle file, which could run arbitrary code") as caught:
        load(folder)
    command = shlex.split(str(caught.value).partition("convert it once: ")[2].rstrip("."))
    assert command[:2] == ["python", "-c"]
    # In this process: another one would import torch and transformers again.
    monkeypatch.setattr(sys, "argv", ["-c", *command[3:]])
    exec(command[2], {"__name__": "__main__"})
    loaded = load(f"{folder}-safetensors")
    assert torch.equal(loaded.model.classifier.weight, before["classifier.weight"])


@pytest.mark.parametrize("lost", ["bert.encoder.layer.1.output.dense.weight", "classifier.weight"])
def test_weights_that_are_missing_are_named_and_not_made_up(folder: Path, lost: str) -> None:
    state = load_file(folder / WEIGHTS)
    del state[lost]
    save_file(state, folder / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(LoadError, match=f"lacks.* {lost}"):
        load(folder)
    # Only a new head is meant to be new.
    if lost.startswith("bert"):
        with pytest.raises(LoadError, match=f"lacks the weights {lost}"):
            fresh_classifier(folder, ("a", "b", "c"))
    else:
        fresh_classifier(folder, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "[]"),
        ("config.json", '{"model_type": "bert", "hidden_size": "many"}'),
        ("config.json", '{"model_type": "nothing"}'),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"added_tokens": [], "model": {"type": "none"}}'),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", "{"),
    ],
)
def test_broken_files_of_a_folder(folder: Path, file: str, content: str) -> None:
    (folder / file).write_text(content)
    with pytest.raises(LoadError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_weights_of_other_sizes(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 10}))
    with pytest.raises(LoadError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("device", ["cud", "cuda:99", "", "xpu"])
def test_a_device_that_is_not_here(folder: Path, device: str) -> None:
    with pytest.raises(LoadError, match="cannot load the model onto"):
        load(folder, device=device)


def test_what_was_written_is_evaluated_on_its_writer_alone() -> None:
    writer = load(*build_language_model("gpt2"))
    written = raison.explain(writer, "the old sailor", method="random", max_new_tokens=2)
    assert raison.evaluate(writer, written, ["comprehensiveness"])["comprehensiveness"].values
    classifier = load(*TINY["bert"]())
    with pytest.raises(InputError, match="evaluate needs explanations of its predictions"):
        raison.evaluate(classifier, [written])


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta_v2", "t5", "gpt2", "qwen3"])
def test_a_folder_without_a_tokenizer_is_refused(family: str, tmp_path: Path) -> None:
    """transformers makes up a tokenizer to which every word is unknown."""
    model, tokenizer = build(family)
    model.save_pretrained(tmp_path)
    with pytest.raises(LoadError, match=r"has no tokenizer: save the model's own there \(tokenizer.save_pretrained\)"):
        load(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load(tmp_path).encode(["the sea"], "word").unit_counts == (2,)
