"""Models with LoRA adapters: in hand, and from a folder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, PromptTuningConfig, get_peft_model

import raison
from raison.core import errors
from raison.core.capabilities.passes import Passes
from tests.prompted import DAY
from tests.tiny import TINY, build_language_model

TEXT = "the film is not a quiet pleasure"


def adapted(family: str, targets: list[str], head: str) -> tuple[PeftModel, object]:
    model, tokenizer = TINY[family]()
    config = LoraConfig(task_type="SEQ_CLS", r=2, target_modules=targets, modules_to_save=[head])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        lora = get_peft_model(model, config)
        for name, parameter in lora.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter)
    return lora.eval(), tokenizer


@pytest.mark.parametrize(
    ("family", "targets", "head"),
    [("bert", ["query", "value"], "classifier"), ("llama", ["q_proj", "v_proj"], "score")],
)
def test_in_hand_and_from_a_folder(family: str, targets: list[str], head: str, tmp_path: Path) -> None:
    lora, tokenizer = adapted(family, targets, head)
    model = raison.load(lora, tokenizer)
    assert model.model is lora
    with torch.no_grad():
        plain = lora(**tokenizer(TEXT, return_tensors="pt")).logits[0]
        torch.testing.assert_close(model.ask(Passes).logits(model.encode([TEXT]))[0], plain, atol=1e-5, rtol=1e-4)
        with lora.disable_adapter():
            bare = lora(**tokenizer(TEXT, return_tensors="pt")).logits[0]
    assert not torch.allclose(bare, plain, atol=1e-2), "an adapter without effect would pass"
    expected = raison.explain(model, TEXT, "integrated_gradients", of="logit", target=0)

    base = TINY[family]()[0]
    base.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    lora.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
    lora.save_pretrained(tmp_path / "lora")
    loaded = raison.load(tmp_path / "lora")
    with torch.no_grad():
        torch.testing.assert_close(loaded.ask(Passes).logits(loaded.encode([TEXT]))[0], plain, atol=1e-4, rtol=1e-3)
    found = raison.explain(loaded, TEXT, "integrated_gradients", of="logit", target=0)
    assert found.scores == pytest.approx(expected.scores, abs=1e-3)


@pytest.mark.parametrize("prompted", [True, False], ids=["classifies", "writes"])
def test_a_language_model_from_the_folder_of_its_adapter(prompted: bool, tmp_path: Path) -> None:
    model, tokenizer = build_language_model("llama")
    config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        lora = get_peft_model(model, config).eval()
    build_language_model("llama")[0].save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    lora.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
    lora.save_pretrained(tmp_path / "lora")

    def scores(found: object) -> list[float]:
        told = {} if prompted else {"output": " a story"}
        return np.ravel(raison.explain(found, TEXT, "occlusion", progress=False, **told).scores).tolist()

    prompt = DAY if prompted else None
    expected = scores(raison.load(lora, tokenizer, prompt=prompt))
    assert scores(raison.load(tmp_path / "lora", prompt=prompt)) == pytest.approx(expected, rel=1e-3, abs=1e-6)
    bare = scores(raison.load(tmp_path / "base", prompt=prompt))
    assert bare != pytest.approx(expected, rel=1e-2), "an adapter without effect would pass"


def test_prompt_tuning_is_refused_with_the_reason() -> None:
    model, tokenizer = TINY["bert"]()
    tuned = get_peft_model(model, PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2))
    with pytest.raises(errors.UnsupportedError, match="virtual tokens do not correspond to text"):
        raison.load(tuned, tokenizer)
