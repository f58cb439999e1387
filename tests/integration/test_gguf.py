"""A causal language model in a GGUF file: loaded by its path, with the tokenizer that it holds."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import raison
from raison.core.errors import InputError, LoadError
from tests.prompted import DAY
from tests.tiny import TINY, build_writer

gguf = pytest.importorskip("gguf")

PLACES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of a layer's tensors in the file, and in transformers."""
HEADS, LAYERS = 4, 2


def turned(weight: np.ndarray) -> np.ndarray:
    """The rows of queries and keys as llama.cpp has them: the halves of a head's rotations in turn."""
    halves = weight.reshape(HEADS, 2, len(weight) // HEADS // 2, -1)
    return halves.swapaxes(1, 2).reshape(weight.shape)


@pytest.fixture(scope="module")
def original() -> LlamaForCausalLM:
    _, tokenizer = TINY["gpt2"]()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=128,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def file(original: LlamaForCausalLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    _, tokenizer = TINY["gpt2"]()
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(32)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(8)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(original.config.rms_norm_eps)
    writer.add_vocab_size(len(tokenizer))
    inner = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token == tokenizer.eos_token else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in inner["merges"]])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id):
        add(tokenizer.eos_token_id)
    state = {name: tensor.numpy() for name, tensor in original.state_dict().items()}
    writer.add_tensor("token_embd.weight", state["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", state["model.norm.weight"])
    writer.add_tensor("output.weight", state["lm_head.weight"])
    for layer in range(LAYERS):
        for name, place in PLACES.items():
            weight = state[f"model.layers.{layer}.{place}.weight"]
            writer.add_tensor(f"blk.{layer}.{name}.weight", turned(weight) if name in ("attn_q", "attn_k") else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
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
    with pytest.raises(LoadError, match="another model than a causal language model, and no other is read from GGUF"):
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
