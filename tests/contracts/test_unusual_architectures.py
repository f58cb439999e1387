"""Classifiers whose parts are unlike others': every method explains them, or is refused in one line."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    ConvBertConfig,
    FNetConfig,
    IBertConfig,
    LEDConfig,
    LEDForConditionalGeneration,
    LlamaConfig,
    LlamaForSequenceClassification,
    NystromformerConfig,
    PreTrainedModel,
    ReformerConfig,
    TapasConfig,
    XmodConfig,
)
from transformers.modeling_outputs import SequenceClassifierOutput

import raison
from raison.core.errors import RaisonError, TextTooLongError, UnsupportedError
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.contracts.test_methods import SHORTER
from tests.tiny import SMALL, build

TEXT = "a dull plot told well"
CONFIGS = {
    "ibert": (IBertConfig, {"quant_mode": False}),
    "nystromformer": (NystromformerConfig, {"num_landmarks": 64, "segment_means_seq_len": 64}),
    "reformer": (
        ReformerConfig,
        {
            "attention_head_size": 8,
            "attn_layers": ["local", "local"],
            "axial_pos_embds": False,
            "feed_forward_size": 64,
            "is_decoder": False,
            "local_attn_chunk_length": 16,
            "max_position_embeddings": 128,
        },
    ),
    "xmod": (XmodConfig, {"default_language": "en_XX", "languages": ["en_XX"]}),
    "tapas": (TapasConfig, {"type_vocab_sizes": [3, 8, 8, 2, 8, 8, 4]}),
}


def drawn(make: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """A model with weights that are as large as trained ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make()
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0, 0.2)
    return model.eval()


@cache
def built(kind: str) -> Classifier:
    _, tokenizer = build("bert")
    config, further = CONFIGS[kind]
    known = config(vocab_size=len(tokenizer), num_labels=2, **(SMALL | further))
    loaded = raison.load(drawn(lambda: AutoModelForSequenceClassification.from_config(known)), tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


READ = ("ibert", "nystromformer", "reformer", "xmod")


@pytest.mark.parametrize("method", CATALOGUE.names)
@pytest.mark.parametrize("kind", READ)
def test_every_method_explains_it_or_says_why_not(kind: str, method: str) -> None:
    try:
        e = raison.explain(built(kind), TEXT, SHORTER.get(method, method), progress=False)
    except RaisonError as refusal:
        lines = len(str(refusal).splitlines())
    else:
        assert np.isfinite(e.scores).all()
        return
    assert lines == 1


@pytest.mark.parametrize("kind", READ)
def test_the_doctor_reports_on_it(kind: str) -> None:
    failed = [line for line in str(raison.doctor(built(kind))).splitlines() if line.startswith("FAIL")]
    # Only its own pass shows that this module computes another attention.
    assert all("cannot read the attention of Nystrom" in line for line in failed)
    assert bool(failed) == (kind == "nystromformer")


@pytest.mark.parametrize("kind", READ)
def test_occlusion_is_what_the_models_own_passes_give(kind: str) -> None:
    model = built(kind)
    e = raison.explain(model, TEXT, "occlusion", of="logit", removal="mask", progress=False)
    given = model.tokenizer(TEXT, return_tensors="pt")
    words = torch.tensor([-1 if word is None else word for word in given.word_ids()])
    logits = []
    for left in (-2, *range(len(e.units))):
        masked = given["input_ids"].masked_fill(words == left, model.tokenizer.mask_token_id)
        with torch.no_grad():
            logits.append(model.model(**(given | {"input_ids": masked})).logits)
    own = torch.cat(logits)[:, model.classes.index(e.target)]
    assert float((own[0] - own[1:]).abs().max()) > 1e-3
    np.testing.assert_allclose(e.scores, own[0] - own[1:], atol=1e-4)


def test_embeddings_with_a_scale_of_their_own_have_no_gradients() -> None:
    with pytest.raises(UnsupportedError, match="QuantEmbedding looks up numbers with their scale"):
        raison.explain(built("ibert"), TEXT, "integrated_gradients", progress=False)


def test_layers_that_compute_again_what_they_read_have_no_gradients() -> None:
    with pytest.raises(UnsupportedError, match="reversible layers have a gradient in training mode alone"):
        raison.explain(built("reformer"), TEXT, "saliency", progress=False)


def test_results_that_are_changed_in_place_carry_no_relevance() -> None:
    with pytest.raises(UnsupportedError, match="changes a result in place"):
        raison.explain(built("nystromformer"), TEXT, "deep_lift", progress=False)


@pytest.mark.parametrize("method", ["occlusion", "input_x_gradient", "attention_last"])
def test_a_model_that_needs_more_than_a_text_says_so(method: str) -> None:
    with pytest.raises(UnsupportedError, match="forward function of TapasForSequenceClassification fails: IndexError"):
        raison.explain(built("tapas"), TEXT, method, progress=False)


LONG = "a dull plot told well is a quiet film with a good end"
PADDED = {
    "convbert": (ConvBertConfig, {"embedding_size": SMALL["hidden_size"]}),
    "fnet": (FNetConfig, {}),
    "nystromformer": CONFIGS["nystromformer"],
}
"""Architectures that do not mask all of their padding."""


@cache
def padded(kind: str, tags: bool) -> tuple[LanguageModel, bool]:
    _, tokenizer = build("bert")
    config, further = PADDED[kind]
    known = config(vocab_size=len(tokenizer), num_labels=3, **(SMALL | further))
    made = AutoModelForTokenClassification if tags else AutoModelForSequenceClassification
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = made.from_config(known).eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0, 0.2)
    pad = torch.full((1, 6), tokenizer.pad_token_id)
    ids = tokenizer("a dull plot", return_tensors="pt")["input_ids"]
    mask = torch.cat([torch.ones_like(ids), torch.zeros_like(pad)], 1)
    with torch.no_grad():
        alone = model(input_ids=ids).logits
        beside = model(input_ids=torch.cat([ids, pad], 1), attention_mask=mask).logits
    reads = not torch.allclose(alone, beside[:, : alone.shape[1]] if tags else beside, atol=1e-4)
    return raison.load(model, tokenizer), reads


@pytest.mark.parametrize(
    "method",
    [
        "occlusion",
        "input_x_gradient",
        "integrated_gradients",
        "attention_last",
        "generic_attention",
        "deep_lift",
        "rpi",
    ],
)
@pytest.mark.parametrize("kind", sorted(PADDED))
def test_a_text_is_explained_in_a_list_as_alone(kind: str, method: str) -> None:
    model, reads = padded(kind, tags=False)
    assert reads, "a model that masks its padding would pass"
    texts = ["dull plot", LONG, "told well"]
    if kind != "convbert" and method not in ("occlusion", "input_x_gradient", "integrated_gradients"):
        # Their attention is not a softmax over all tokens.
        with pytest.raises(UnsupportedError):
            raison.explain(model, texts[0], method, removal="delete", progress=False)
        return
    alone = [raison.explain(model, text, method, removal="delete", progress=False) for text in texts]
    together = raison.explain(model, texts, method, removal="delete", progress=False)
    for one, other in zip(alone, together, strict=True):
        assert other.value_full == pytest.approx(one.value_full, abs=1e-5)
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(PADDED))
def test_so_are_tags(kind: str) -> None:
    model, reads = padded(kind, tags=True)
    assert reads, "a model that masks its padding would pass"
    target = (0, 4, "LABEL_1")
    alone = raison.explain(model, "dull plot", "occlusion", target=target, progress=False)
    other, _ = raison.explain(model, ["dull plot", LONG], "occlusion", target=target, progress=False)
    np.testing.assert_allclose(other.scores, alone.scores, atol=1e-5)


def with_types(kind: type[Any]) -> tuple[Any, Any]:
    """GPT-2 with a tokenizer that gives types of tokens, which GPT-2 looks up among its words."""
    _, tokenizer = build("bert")
    config = AutoConfig.for_model(
        "gpt2", vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, num_labels=2, pad_token_id=0
    )
    assert "token_type_ids" in tokenizer.model_input_names
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind.from_config(config).eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0, 0.2)
    return model, tokenizer


@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients(steps=60)", "deep_lift", "gradient_shap"])
def test_types_of_tokens_among_the_words_stay_as_they_are(method: str) -> None:
    model, tokenizer = with_types(AutoModelForSequenceClassification)
    loaded = raison.load(model, tokenizer)
    e = raison.explain(loaded, TEXT, method, of="logit", progress=False)
    with torch.no_grad():
        own = model(**tokenizer(TEXT, return_tensors="pt")).logits[0]
        typeless = model(tokenizer(TEXT, return_tensors="pt")["input_ids"]).logits[0]
    assert not torch.allclose(own, typeless, atol=1e-3), "types without an effect would pass"
    assert e.value_full == pytest.approx(float(own[loaded.classes.index(e.target)]), abs=1e-5)
    if method in ("integrated_gradients(steps=60)", "deep_lift"):
        assert sum(e.scores) == pytest.approx(e.value_full - e.value_empty, abs=1e-3)
    with pytest.raises(UnsupportedError, match="tokens have types"):
        raison.explain(loaded, TEXT, "sp_pi", progress=False)


def test_a_model_that_writes_is_explained_as_it_writes() -> None:
    """transformers gives no types when it generates."""
    model, tokenizer = with_types(AutoModelForCausalLM)
    writer = raison.load(model, tokenizer)
    ids = torch.tensor([writer.prompt(TEXT).ids])
    with torch.no_grad():
        best = model(ids).logits[0, -1].log_softmax(-1)
        typed = model(ids, token_type_ids=torch.zeros_like(ids)).logits[0, -1].log_softmax(-1)
    assert not torch.allclose(best, typed, atol=1e-3), "types without an effect would pass"
    for method in ("occlusion", "deep_lift", "integrated_gradients(steps=60)"):
        e = raison.explain(writer, TEXT, method, of="log_probability", max_new_tokens=1, progress=False)
        assert e.log_probability == pytest.approx(float(best.max()), abs=1e-4)


LONGER = "a dull plot told well , and told again , and then once more , because it is far longer than the other"


class _MeanLlama(LlamaForSequenceClassification):
    """Has a decoder's head by its name, and pools all tokens."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> SequenceClassifierOutput:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
        weight = torch.ones(hidden.shape[:2]) if attention_mask is None else attention_mask
        pooled = (hidden * weight[..., None]).sum(1) / weight.sum(1, keepdim=True)
        return SequenceClassifierOutput(logits=self.score(pooled))


def llama(kind: type[LlamaForSequenceClassification], **further: Any) -> tuple[PreTrainedModel, Any]:
    _, tokenizer = build("llama")
    config = LlamaConfig(vocab_size=len(tokenizer), num_labels=2, **(SMALL | further))
    return drawn(lambda: kind(config)), tokenizer


def test_a_forward_function_of_its_own_is_the_one_that_is_explained() -> None:
    model, tokenizer = llama(_MeanLlama)
    loaded = raison.load(model, tokenizer)
    own = model(**tokenizer(TEXT, return_tensors="pt")).logits.softmax(-1)[0].tolist()
    for method in ("occlusion", "integrated_gradients(steps=4)"):
        for e in (raison.explain(loaded, TEXT, method), raison.explain(loaded, [TEXT, LONGER], method)[0]):
            assert e.probabilities == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize("method", ["saliency", "attention_rollout", "occlusion", "integrated_gradients(steps=4)"])
def test_a_decoder_that_reads_later_tokens_is_given_no_padding_to_read(method: str) -> None:
    model, tokenizer = llama(LlamaForSequenceClassification, is_causal=False)
    loaded = raison.load(model, tokenizer)
    alone, beside = raison.explain(loaded, TEXT, method), raison.explain(loaded, [TEXT, LONGER], method)[0]
    assert beside.scores == pytest.approx(alone.scores, abs=1e-5)
    own = model(**tokenizer(TEXT, return_tensors="pt")).logits.softmax(-1)[0].tolist()
    assert beside.probabilities == pytest.approx(own, abs=1e-6)


def test_each_stack_of_led_has_its_own_limit() -> None:
    _, tokenizer = build("bart")
    config = LEDConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_encoder_position_embeddings=32,
        max_decoder_position_embeddings=16,
        attention_window=8,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    writer = raison.load(drawn(lambda: LEDForConditionalGeneration(config)), tokenizer)
    raison.explain(writer, TEXT, "occlusion", output=" and so on")
    for prompt, output in ((LONGER * 3, " and so on"), (TEXT, " and so on" * 8)):
        with pytest.raises(TextTooLongError, match="at most 32 of the one and 16 of the other"):
            raison.explain(writer, prompt, "occlusion", output=output)


def test_single_texts_and_pairs_in_one_list_are_read_apart_where_ends_must_be_as_many() -> None:
    loaded = raison.load(*build("bart"))
    pair = ("a dull plot", "told well")
    together = raison.explain(loaded, [TEXT, pair, LONGER], "occlusion")
    for e, text in zip(together, (TEXT, pair, LONGER), strict=True):
        assert e.scores == pytest.approx(raison.explain(loaded, text, "occlusion").scores, abs=1e-6)
