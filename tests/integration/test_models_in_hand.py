"""Models that are not quite transformers' own: other names, other outputs, adapters of language models, dice inside."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import BertForSequenceClassification, BertModel, BertPreTrainedModel, PreTrainedModel

import raison
from raison.core.errors import LoadError, UnsteadyWarning
from raison.methods import CATALOGUE
from raison.models.adapters.checks.selfcheck import selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from tests.prompted import DAY
from tests.tiny import TINY, build_language_model

TEXT = "the actors are brilliant but the plot is thin"
METHODS = ("occlusion", "integrated_gradients", "attention_rollout", "attn_lrp", "decompx")


class Reviews(BertForSequenceClassification):
    """A classifier by another name."""


class Pairs(BertForSequenceClassification):
    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found = super().forward(*args, **kwargs)
        return {"loss": None, "logits": found.logits}


class Tuples(BertForSequenceClassification):
    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor]:
        return (super().forward(*args, **kwargs).logits,)


class Bare(BertForSequenceClassification):
    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs).logits


class Own(BertPreTrainedModel):
    """Made of a base and a head, with no word of what it is in its name."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        self.dropout, self.classifier = nn.Dropout(0.1), nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> dict[str, Tensor]:
        pooled = self.bert(input_ids, attention_mask=attention_mask, **kwargs)[1]
        return {"logits": self.classifier(self.dropout(pooled))}


class PerToken(Own):
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> dict[str, Tensor]:
        return {"logits": self.classifier(self.bert(input_ids, attention_mask=attention_mask, **kwargs)[0])}


class Failing(Own):
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> dict[str, Tensor]:
        raise TypeError("a third argument\nis missing")


class Dice(BertForSequenceClassification):
    """Random numbers that no mode turns off."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = super().forward(*args, **kwargs)
        found.logits = found.logits + torch.randn_like(found.logits)
        return found


class Unwritten(BertForSequenceClassification):
    """A part that its author has left out, as transformers does: without a message."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            raise NotImplementedError
        return super().forward(*args, **kwargs)


def made(kind: type[PreTrainedModel]) -> Classifier:
    """With the weights of the tiny BERT."""
    plain, tokenizer = TINY["bert"]()
    model = kind(plain.config).eval()
    model.load_state_dict(plain.state_dict())
    return raison.load(model, tokenizer)


@pytest.mark.parametrize("kind", [Reviews, Pairs, Tuples, Bare, Own])
@pytest.mark.parametrize("method", METHODS)
def test_a_classifier_by_another_name_or_with_other_outputs(kind: type[PreTrainedModel], method: str) -> None:
    model, plain = made(kind), raison.load(*TINY["bert"]())
    assert model.classes == plain.classes
    found, expected = (raison.explain(one, TEXT, method=method, progress=False) for one in (model, plain))
    assert found.probabilities == pytest.approx(expected.probabilities, rel=1e-6)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [Pairs, Tuples, Bare, Own])
def test_the_doctor_passes_other_outputs(kind: type[PreTrainedModel]) -> None:
    assert [finding.check for finding in selfcheck(made(kind)) if not finding.passed] == []


def test_what_gives_no_logit_per_class_is_refused() -> None:
    with pytest.raises(
        LoadError, match="no trained classification head .* its output is not one logit for each of its"
    ):
        made(PerToken)
    with pytest.raises(LoadError, match="its forward pass fails with TypeError: a third argument is missing"):
        made(Failing)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """A LoRA folder of a causal language model, and the same in hand."""
    folder = tmp_path_factory.mktemp("lora")
    model, tokenizer = build_language_model("llama")
    model.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    model.config.name_or_path = str(folder / "base")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tuned = get_peft_model(
            model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
        ).eval()
    tuned.peft_config["default"].base_model_name_or_path = str(folder / "base")
    tuned.save_pretrained(folder / "adapter")
    return folder / "adapter", tuned, tokenizer


def test_a_lora_folder_of_a_language_model_writes(adapter: tuple[Path, Any, Any]) -> None:
    folder, tuned, tokenizer = adapter
    loaded, in_hand = raison.load(folder), raison.load(tuned, tokenizer)
    assert isinstance(loaded, Generator)
    assert isinstance(in_hand, Generator)
    found, expected = (
        raison.explain(one, TEXT, output=" good film", method="occlusion", progress=False) for one in (loaded, in_hand)
    )
    for one, other in zip(found.scores, expected.scores, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_a_lora_folder_of_a_language_model_takes_a_prompt(adapter: tuple[Path, Any, Any]) -> None:
    folder, tuned, tokenizer = adapter
    loaded, in_hand = raison.load(folder, prompt=DAY), raison.load(tuned, tokenizer, prompt=DAY)
    assert isinstance(loaded, Classifier)
    found, expected = (raison.explain(one, TEXT, method="occlusion", progress=False) for one in (loaded, in_hand))
    assert found.probabilities == pytest.approx(expected.probabilities, rel=1e-4)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-3, atol=1e-6)


def test_dice_inside_a_model_are_said_once() -> None:
    model = made(Dice)
    with pytest.warns(UnsteadyWarning, match="differ between equal calls"):
        found = raison.explain(model, TEXT, method="random", progress=False)
    assert "dropout or sampling" in str(found.notes["unsteady"])
    assert "differ between equal calls" in found.to_html()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = raison.explain(model, [TEXT, "bad"], method="random", progress=False)
    assert all("unsteady" in one.notes for one in again)
    failed = [finding.check for finding in selfcheck(model) if not finding.passed]
    assert "equal calls give equal answers" in failed


def test_an_error_without_a_message_is_a_finding() -> None:
    failed = {finding.check: finding.detail for finding in selfcheck(made(Unwritten)) if not finding.passed}
    assert "the forward function of Unwritten fails: NotImplementedError." in failed["gradients reach all embeddings"]


def test_looking_for_dice_leaves_the_random_state() -> None:
    model, state = made(Reviews), torch.get_rng_state()
    raison.explain(model, TEXT, method="random", progress=False)
    assert torch.equal(torch.get_rng_state(), state)


def test_dice_are_said_where_explanations_are_judged() -> None:
    judged, compared = made(Dice), made(Dice)
    given = raison.explain(raison.load(*TINY["bert"]()), TEXT, method="random", progress=False)
    with pytest.warns(UnsteadyWarning, match="differ between equal calls"):
        raison.evaluate(judged, [given], ["comprehensiveness"], progress=False)
    with pytest.warns(UnsteadyWarning, match="differ between equal calls"):
        raison.compare(compared, [TEXT], ["random"], ["comprehensiveness"], progress=False)


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rounding_is_no_dice(name: str, dtype: torch.dtype) -> None:
    model, tokenizer = TINY[name]()
    adapter = raison.load(model.to(dtype), tokenizer)
    texts = [TEXT, "bad", "a quiet film about the sea, slow but never dull"]
    for found in raison.explain(adapter, texts, method="random", progress=False):
        assert "unsteady" not in found.notes


def test_it_costs_two_passes_once() -> None:
    model, tokenizer = TINY["bert"]()
    passes: list[int] = []
    model.register_forward_hook(lambda _module, _args, output: passes.append(len(output[0])))
    counts = []
    for _ in range(3):
        before = len(passes)
        raison.explain(raison.load(model, tokenizer), TEXT, method=CATALOGUE.create("random"), progress=False)
        counts.append(len(passes) - before)
    assert counts[1] == counts[2] == counts[0] - 2
