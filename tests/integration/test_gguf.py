"""A causal language model in a GGUF file: loaded by its path, with the tokenizer that it holds."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

import raison
from raison.core.errors import InputError, LoadError
from tests.prompted import DAY
from tests.tiny import TINY, build_writer
from tests.tiny_gguf import tiny_llama, write_tiny


@pytest.fixture(scope="module")
def original() -> LlamaForCausalLM:
    return tiny_llama()


@pytest.fixture(scope="module")
def file(original: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny(path, original)
    return path


def test_it_is_the_model_that_was_written(file: Path, original: LlamaForCausalLM) -> None:
    loaded = raison.load(file, prompt=DAY)
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids).logits, original(ids).logits, atol=1e-5, rtol=1e-5)
    own = TINY["gpt2"]()[1]
    text = "The old sailor told a modest story"
    assert loaded.tokenizer(text)["input_ids"][-5:] == own(text)["input_ids"][-5:]


def test_it_classifies_and_writes(file: Path) -> None:
    classifies = raison.load(file, prompt=DAY)
    assert any(raison.explain(classifies, "a quiet pleasure", "occlusion", progress=False).scores)
    writes = raison.load(str(file))
    found = raison.explain(writes, "The old sailor told", "occlusion", output=" a story", progress=False)
    assert np.isfinite(found.scores).all()


def test_other_precision(file: Path) -> None:
    assert raison.load(file, dtype="bfloat16").model.dtype is torch.bfloat16


def test_an_encoder_decoder_is_refused_for_what_it_is(tmp_path: Path) -> None:
    """It has the tokenizer and the settings of a T5, which is as far as reading gets."""
    model, tokenizer = build_writer("t5")
    config, path = model.config, tmp_path / "t5.gguf"
    writer = gguf.GGUFWriter(path, "t5")
    writer.add_context_length(128)
    writer.add_embedding_length(config.d_model)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_block_count(config.num_layers)
    writer.add_head_count(config.num_heads)
    writer.add_key_length(config.d_kv)
    writer.add_vocab_size(config.vocab_size)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer.add_tokenizer_model("t5")
    writer.add_token_list(vocabulary)
    writer.add_token_scores([-1.0] * len(vocabulary))
    writer.add_token_types([1] * len(vocabulary))
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_tensor("token_embd.weight", model.get_input_embeddings().weight.detach().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(
        LoadError, match="does not contain a causal language model, the only kind that is read from GGUF"
    ):
        raison.load(path)


def test_what_does_not_fit_is_refused_in_one_line(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="device_map does not apply"):
        raison.load(file, device_map="auto")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:200])
    with pytest.raises(LoadError) as caught:
        raison.load(cut)
    assert "\n" not in str(caught.value)
    with pytest.raises(LoadError):
        raison.load(tmp_path / "none.gguf")
