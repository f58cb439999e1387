"""Encoder-decoders that write: loading, the command line, chats, limits, and what they begin with."""

import json

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import WhisperConfig, WhisperForConditionalGeneration
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core import errors
from raison.models.adapters.writing.generator import Generator
from tests.tiny import build_writer

PROMPT, OUTPUT = "the old sailor told", "a modest story"


@pytest.fixture
def folder(tmp_path):
    model, tokenizer = build_writer("t5")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_in_hand_and_its_folder_say_the_same(folder):
    model, tokenizer = build_writer("t5")
    held, loaded = raison.load(model, tokenizer), raison.load(str(folder))
    assert isinstance(held, Generator)
    assert isinstance(loaded, Generator)
    assert held.model is model
    settings = {"method": "occlusion", "output": OUTPUT}
    assert raison.explain(loaded, PROMPT, **settings).scores == raison.explain(held, PROMPT, **settings).scores


def test_an_adapter_of_a_writer(folder, tmp_path):
    model, tokenizer = build_writer("t5")
    wrapped = get_peft_model(model, LoraConfig(r=2, target_modules=["q", "v"], init_lora_weights=False))
    wrapped.save_pretrained(tmp_path / "adapter")
    named = tmp_path / "adapter" / "adapter_config.json"
    named.write_text(json.dumps(json.loads(named.read_text()) | {"base_model_name_or_path": str(folder)}))
    held = raison.explain(raison.load(wrapped.eval(), tokenizer), PROMPT, "occlusion", output=OUTPUT)
    loaded = raison.explain(raison.load(str(tmp_path / "adapter")), PROMPT, "occlusion", output=OUTPUT)
    plain = raison.explain(raison.load(str(folder)), PROMPT, "occlusion", output=OUTPUT)
    for own, same, other in zip(held.scores, loaded.scores, plain.scores, strict=True):
        assert own == pytest.approx(same, abs=1e-5)
        assert own != pytest.approx(other, abs=1e-5)


def test_command_line(folder, tmp_path):
    html = tmp_path / "page.html"
    common = ["explain", PROMPT, "--model", str(folder), "-M", "occlusion", "--output", OUTPUT]
    shown = CliRunner().invoke(app, [*common, "--html", str(html), "--contrast", "sea"])
    assert shown.exit_code == 0, shown.output
    assert "Written" in shown.output
    assert "modest" in html.read_text()
    data = CliRunner().invoke(app, [*common, "--json", "--earlier"])
    assert data.exit_code == 0, data.output
    found = json.loads(data.stdout)
    assert found["output"] == OUTPUT
    assert found["earlier"] is True


def test_views_and_frame():
    found = raison.explain(raison.load(*build_writer("bart")), PROMPT, "occlusion", output=OUTPUT, earlier=True)
    assert "strongest words" in str(found)
    assert "<table" in found.to_html()
    frame = found.to_frame()
    assert len(frame) == sum(len(row) for row in found.scores)
    assert "".join(token.text for token in found.tokens) == OUTPUT


def test_the_output_is_a_text_of_its_own():
    """No word of the prompt goes on in it, and there is nothing to warn of."""
    found = raison.explain(raison.load(*build_writer("t5")), PROMPT, "occlusion", output="story")
    assert found.output == "story"
    assert found.notes == {}


@pytest.mark.parametrize("name", ["bart", "m_bart", "t5"])
def test_what_the_decoder_begins_with(name):
    model, tokenizer = build_writer(name)
    source = raison.load(model, tokenizer).prompt(PROMPT)
    begins = {"bart": ["</s>", "<s>"], "m_bart": ["</s>", "de_DE"], "t5": ["<pad>"]}
    assert tokenizer.convert_ids_to_tokens(source.ids[source.border :]) == begins[name]
    assert list(source.ids[: source.border]) == tokenizer(PROMPT)["input_ids"]


def test_a_model_without_a_start_token_is_refused():
    model, tokenizer = build_writer("t5")
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    with pytest.raises(errors.LoadError, match="which token its decoder begins with"):
        raison.load(model, tokenizer)


def test_limits_hold_for_each_stack():
    model = raison.load(*build_writer("bart"))
    room = model.max_tokens
    long = "story " * (room - 20)
    assert len(raison.explain(model, PROMPT, "random", output="sea " * 20).tokens) >= 20
    for settings in ({"texts": long * 2, "output": OUTPUT}, {"texts": PROMPT, "output": long * 2}):
        with pytest.raises(errors.TextTooLongError, match=f"at most {room} of each"):
            raison.explain(model, settings["texts"], "random", output=settings["output"])


def test_chats_and_prompts_for_classes_are_refused(folder):
    with pytest.raises(errors.InputError, match="reads texts, not chats"):
        raison.explain(raison.load(str(folder)), [{"role": "user", "content": "slow"}], "occlusion", output=OUTPUT)
    with pytest.raises(errors.InputError, match="a prompt is for causal language models"):
        raison.load(str(folder), prompt="sentiment")


def test_models_that_read_no_text_are_refused():
    config = WhisperConfig(
        d_model=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        vocab_size=9,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=2,
    )
    with torch.random.fork_rng(devices=[]):
        model = WhisperForConditionalGeneration(config)
    with pytest.raises(errors.LoadError, match="WhisperForConditionalGeneration"):
        raison.load(model.eval(), build_writer("t5")[1])


def test_a_batch_of_prompts():
    model = raison.load(*build_writer("t5"))
    found = raison.explain(model, [PROMPT, "a boring plot"], "occlusion", max_new_tokens=2, progress=False)
    assert found[1].scores == raison.explain(model, "a boring plot", "occlusion", max_new_tokens=2).scores


def test_reduced_precision_is_close():
    model = raison.load(*build_writer("bart"))
    settings = {"method": "kernel_shap(samples=20)", "output": OUTPUT, "of": "logit"}
    exact = raison.explain(model, PROMPT, **settings)
    rough = raison.explain(model, PROMPT, precision="bfloat16", **settings)
    assert exact.scores != rough.scores
    for own, other in zip(exact.scores, rough.scores, strict=True):
        assert own == pytest.approx(other, abs=0.15)
