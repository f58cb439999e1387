"""A tiny Llama of random weights as a GGUF file in single precision, which transformers and llama.cpp read alike."""

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.tiny import TINY

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


def tiny_llama(longest: int = 128) -> LlamaForCausalLM:
    """The model, which reads texts of up to this many tokens."""
    _, tokenizer = TINY["gpt2"]()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=longest,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


def write_tiny(path: Path, model: LlamaForCausalLM) -> None:
    """The model with its tokenizer as a file."""
    _, tokenizer = TINY["gpt2"]()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(model.config.max_position_embeddings)
    writer.add_embedding_length(32)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(8)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    writer.add_vocab_size(len(tokenizer))
    inner = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer.add_tokenizer_model("gpt2")
    # llama.cpp's own rules of GPT-2, without its warning.
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token == tokenizer.eos_token else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in inner["merges"]])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id):
        add(tokenizer.eos_token_id)
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
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
