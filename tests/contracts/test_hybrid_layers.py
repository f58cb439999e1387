"""Models whose layers do not all have attention: linear attention, state spaces and convolutions mix tokens, too."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
)

import raison
from raison.core.errors import LoadError, UnsupportedError
from tests.tiny import build_architecture

HYBRID: dict[str, dict[str, Any]] = {
    "qwen3_5_text": {
        "head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
    },
    "lfm2": {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "recurrent_gemma": {"lru_width": 32, "num_hidden_layers": 3, "head_dim": 8},
    "falcon_h1": {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "head_dim": 8},
}
PROMPT = "a quiet film with a good end"
OUTPUT = " and more"


@pytest.fixture(params=sorted(HYBRID), name="built")
def _built(request: pytest.FixtureRequest) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return build_architecture(request.param, **({"num_hidden_layers": 4} | HYBRID[request.param]))


@pytest.mark.parametrize("method", ["attention_average", "attention_rollout", "attn_lrp", "rpi"])
def test_attention_alone_does_not_explain_them(
    built: tuple[PreTrainedModel, PreTrainedTokenizerFast], method: str
) -> None:
    with pytest.raises(UnsupportedError, match="mix tokens otherwise|state spaces next to their attention"):
        raison.explain(raison.load(*built), PROMPT, method, output=OUTPUT)


def test_perturbed_prompts_have_the_models_own_values(built: tuple[PreTrainedModel, PreTrainedTokenizerFast]) -> None:
    model, tokenizer = built
    explanation = raison.explain(raison.load(*built), PROMPT, "occlusion", output=OUTPUT, of="log_probability")
    encoded = tokenizer(PROMPT, return_offsets_mapping=True)
    written = [token.id for token in explanation.tokens]

    def values(ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*ids, *written]])).logits[0, len(ids) - 1 : -1]
        return logits.double().log_softmax(-1)[torch.arange(len(written)), written]

    assert explanation.removal == "unk"
    for number, unit in enumerate(explanation.units):
        without = [
            tokenizer.unk_token_id if unit.start - 1 <= start < end <= unit.end else token
            for token, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]
        literal = values(encoded["input_ids"]) - values(without)
        scores = [row[number] for row in explanation.scores]
        assert scores == pytest.approx(literal.tolist(), abs=1e-5)


def test_a_model_that_also_reads_images_is_loaded_as_its_language_model(tmp_path: Path) -> None:
    text, tokenizer = build_architecture("qwen3_5_text", **({"num_hidden_layers": 4} | HYBRID["qwen3_5_text"]))
    seeing = {"hidden_size": 16, "intermediate_size": 16, "depth": 1, "num_heads": 2, "out_hidden_size": 32}
    config = Qwen3_5Config(text_config=text.config.to_dict(), vision_config=seeing)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        whole = Qwen3_5ForConditionalGeneration(config).eval()
    whole.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = raison.explain(raison.load(tmp_path), PROMPT, "occlusion", output=OUTPUT)
    own = AutoTokenizer.from_pretrained(tmp_path)
    ids, written = own(PROMPT)["input_ids"], [token.id for token in found.tokens]
    with torch.no_grad():
        logits = whole(input_ids=torch.tensor([[*ids, *written]])).logits[0, len(ids) - 1 : -1]
    expected = logits.softmax(-1)[torch.arange(len(written)), written]
    assert [token.probability for token in found.tokens] == pytest.approx(expected.tolist(), rel=1e-4)
    with pytest.raises(LoadError, match="also reads images"):
        raison.load(whole, tokenizer)
