"""Models with LoRA adapters: in hand, and from a folder."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, LlamaForCausalLM

import raison
from raison.core import errors
from raison.core.capabilities.passes import Passes
from tests.prompted import DAY
from tests.tiny import TINY, build_embedder, build_language_model

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


def saved(kind: type, family: str, task: str, targets: list[str], folder: Path, **settings: object) -> tuple:
    """A model of `kind` on a headless base, with an adapter that PEFT saves as it does by itself; and its tokenizer."""
    base, tokenizer = build_embedder(family)
    base.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind.from_pretrained(folder / "base", **settings)
        lora = get_peft_model(model, LoraConfig(task_type=task, r=2, target_modules=targets, init_lora_weights=False))
        for name, weight in lora.named_parameters():
            if "modules_to_save" in name:
                torch.nn.init.normal_(weight)
    lora.save_pretrained(folder / "lora")
    return lora.eval(), tokenizer


@pytest.mark.parametrize(
    ("family", "targets"),
    [("bert", ["query", "value"]), ("distilbert", ["q_lin", "v_lin"]), ("roberta", ["query", "value"])],
)
def test_the_folder_of_a_tagger_is_a_tagger(family: str, targets: list[str], tmp_path: Path) -> None:
    names = ["O", "B-PER", "I-PER"]
    ids = {"id2label": dict(enumerate(names)), "label2id": {name: n for n, name in enumerate(names)}}
    lora, tokenizer = saved(AutoModelForTokenClassification, family, "TOKEN_CLS", targets, tmp_path, **ids)
    film = (4, 8)
    held = raison.explain(raison.load(lora, tokenizer), TEXT, "occlusion", target=film)
    loaded = raison.load(tmp_path / "lora", classes=names)
    found = raison.explain(loaded, TEXT, "occlusion", target=film)
    assert (found.target, found.classes) == (held.target, held.classes)
    assert found.scores == pytest.approx(held.scores, abs=1e-5)


@pytest.mark.parametrize("family", ["distilbert", "roberta"])
def test_a_head_of_several_layers(family: str, tmp_path: Path) -> None:
    targets = ["q_lin", "v_lin"] if family == "distilbert" else ["query", "value"]
    lora, tokenizer = saved(AutoModelForSequenceClassification, family, "SEQ_CLS", targets, tmp_path, num_labels=3)
    held, found = (
        raison.explain(model, TEXT, "occlusion").probabilities
        for model in (raison.load(lora, tokenizer), raison.load(tmp_path / "lora"))
    )
    assert found == pytest.approx(held, abs=1e-5)


def test_outputs_that_are_labels(tmp_path: Path) -> None:
    told = {"num_labels": 3, "problem_type": "multi_label_classification"}
    targets = ["query", "value"]
    lora, tokenizer = saved(AutoModelForSequenceClassification, "roberta", "SEQ_CLS", targets, tmp_path, **told)
    loaded = raison.load(tmp_path / "lora", classes=["a", "b", "c"], multi_label=True)
    assert (loaded.outputs, loaded.classes) == ("labels", ("a", "b", "c"))
    held = raison.explain(raison.load(lora, tokenizer), TEXT, "occlusion", target=1)
    assert raison.explain(loaded, TEXT, "occlusion", target="b").scores == pytest.approx(held.scores, abs=1e-5)
    with pytest.raises(errors.InputError, match="3 outputs, and classes= names 2"):
        raison.load(tmp_path / "lora", classes=["a", "b"])


def test_weights_that_neither_file_has_are_refused(tmp_path: Path) -> None:
    saved(AutoModelForSequenceClassification, "deberta_v2", "SEQ_CLS", ["query_proj"], tmp_path, num_labels=3)
    with pytest.raises(errors.LoadError, match=r"pooler.*would be random.*modules_to_save"):
        raison.load(tmp_path / "lora")


def test_tokens_that_were_added_with_the_adapter(tmp_path: Path) -> None:
    model, tokenizer = build_language_model("llama")
    model.save_pretrained(tmp_path / "base")
    tokenizer.add_tokens(["quietly"])
    held = LlamaForCausalLM.from_pretrained(tmp_path / "base")
    held.resize_token_embeddings(len(tokenizer))
    lora = get_peft_model(held, LoraConfig(task_type="CAUSAL_LM", r=2, init_lora_weights=False)).eval()
    lora.save_pretrained(tmp_path / "lora", save_embedding_layers=True)
    tokenizer.save_pretrained(tmp_path / "lora")
    before = torch.random.get_rng_state()
    raison.load(tmp_path / "lora")
    assert torch.equal(torch.random.get_rng_state(), before)
    expected = raison.explain(raison.load(lora, tokenizer), TEXT, "occlusion", output=" quietly")
    found = raison.explain(raison.load(tmp_path / "lora"), TEXT, "occlusion", output=" quietly")
    assert np.ravel(found.scores) == pytest.approx(np.ravel(expected.scores), abs=1e-5)


def test_loading_draws_no_random_number_of_the_callers(tmp_path: Path) -> None:
    saved(AutoModelForSequenceClassification, "roberta", "SEQ_CLS", ["query"], tmp_path, num_labels=3)
    before = torch.random.get_rng_state()
    raison.load(tmp_path / "lora")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_adapter_of_no_known_task_is_refused(tmp_path: Path) -> None:
    saved(AutoModelForSequenceClassification, "roberta", "SEQ_CLS", ["query"], tmp_path, num_labels=3)
    path = tmp_path / "lora" / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task_type": "FEATURE_EXTRACTION"}))
    with pytest.raises(errors.LoadError, match="is for FEATURE_EXTRACTION, which predicts nothing"):
        raison.load(tmp_path / "lora")
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"task_type": "TOKEN_CLS", "base_model_name_or_path": ""})
    )
    with pytest.raises(errors.LoadError, match="names no base model"):
        raison.load(tmp_path / "lora")


def test_a_weight_of_another_shape_is_named(tmp_path: Path) -> None:
    saved(AutoModelForSequenceClassification, "roberta", "SEQ_CLS", ["query"], tmp_path, num_labels=3)
    held = load_file(tmp_path / "lora" / "adapter_model.safetensors")
    name = next(name for name in held if name.endswith("query.lora_A.weight"))
    save_file(held | {name: torch.zeros(5, 7)}, tmp_path / "lora" / "adapter_model.safetensors")
    with pytest.raises(errors.LoadError, match=r"size mismatch for .*query"):
        raison.load(tmp_path / "lora")


def test_prompt_tuning_is_refused_with_the_reason() -> None:
    model, tokenizer = TINY["bert"]()
    tuned = get_peft_model(model, PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2))
    with pytest.raises(errors.UnsupportedError, match="virtual tokens do not correspond to text"):
        raison.load(tuned, tokenizer)
