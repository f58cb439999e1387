"""Random models of about 50 thousand parameters, one per family, with tokenizers that fit.

Weights are as large as those of trained models, so that outputs depend on every part of the input. Each call builds a
new model and a new tokenizer, always the same ones, and leaves the random state of the process alone.
"""

import copy
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from tokenizers import processors
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    BartConfig,
    BertConfig,
    BigBirdConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    LlamaConfig,
    LongformerConfig,
    MarianConfig,
    MBartConfig,
    MistralConfig,
    ModernBertConfig,
    MPNetConfig,
    MT5Config,
    PegasusConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    RobertaConfig,
    T5Config,
    T5EncoderModel,
    UMT5Config,
    XLNetConfig,
)

from raison.models.families import family_of
from raison.models.loading.t5_encoder import T5EncoderForSequenceClassification
from tests.tokenizers import TOKENIZERS

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
"""How a chat is written out for a model that writes."""
LABELS = ("negative", "neutral", "positive")
HIDDEN, HEADS, INNER, POSITIONS = 32, 4, 64, 128

_BERT_LIKE = {
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "num_hidden_layers": 3,
    "max_position_embeddings": POSITIONS,
}
_LLAMA_LIKE = _BERT_LIKE | {"num_key_value_heads": 2}
_QWEN3 = _LLAMA_LIKE | {"head_dim": 16}
_DISTILBERT = {
    "dim": HIDDEN,
    "n_heads": HEADS,
    "hidden_dim": INNER,
    "n_layers": 3,
    "max_position_embeddings": POSITIONS,
}
_GPT2 = {"n_embd": HIDDEN, "n_head": HEADS, "n_inner": INNER, "n_layer": 3, "n_positions": POSITIONS}
_T5 = {"d_model": HIDDEN, "num_heads": HEADS, "d_kv": 8, "d_ff": INNER, "num_layers": 2}
_DEBERTA = _BERT_LIKE | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
_BART = {
    "d_model": HIDDEN,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "max_position_embeddings": POSITIONS,
}

_FAMILIES: dict[str, tuple[Callable[..., PreTrainedConfig], str]] = {
    "bert": (partial(BertConfig, **_BERT_LIKE), "bert_uncased"),
    # Two rows of the position table belong to padding.
    "roberta": (partial(RobertaConfig, **_BERT_LIKE | {"max_position_embeddings": POSITIONS + 2}), "roberta"),
    "distilbert": (partial(DistilBertConfig, **_DISTILBERT), "bert"),
    "electra": (partial(ElectraConfig, **_BERT_LIKE, embedding_size=16), "bert_uncased"),
    "gpt2": (partial(GPT2Config, **_GPT2), "gpt2"),
    "llama": (partial(LlamaConfig, **_LLAMA_LIKE), "llama"),
    "mistral": (partial(MistralConfig, **_LLAMA_LIKE, sliding_window=4), "llama"),
    "qwen3": (partial(Qwen3Config, **_QWEN3), "gpt2"),
    "modernbert": (
        partial(ModernBertConfig, **_BERT_LIKE, global_attn_every_n_layers=2, local_attention=4),
        "roberta",
    ),
    "t5": (partial(T5Config, **_T5, decoder_start_token_id=0), "unigram"),
    "deberta": (partial(DebertaConfig, **_DEBERTA, type_vocab_size=0), "roberta"),
    # As DeBERTa-v3 is built; so few buckets that texts of some words reach the logarithmic ones.
    "deberta_v2": (
        partial(
            DebertaV2Config,
            **_DEBERTA,
            type_vocab_size=0,
            position_buckets=8,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
        ),
        "bert",
    ),
    # One module is run three times.
    "albert": (partial(AlbertConfig, **_BERT_LIKE, embedding_size=16), "bert_uncased"),
    "mpnet": (partial(MPNetConfig, **_BERT_LIKE | {"max_position_embeddings": POSITIONS + 2}), "roberta"),
    # Block-sparse models are those of tests/integration/test_odd_models.py.
    "big_bird": (partial(BigBirdConfig, **_BERT_LIKE, attention_type="original_full"), "bert"),
    "bart": (partial(BartConfig, **_BART), "roberta"),
    "longformer": (
        partial(LongformerConfig, **_BERT_LIKE | {"max_position_embeddings": POSITIONS + 2}, attention_window=4),
        "roberta",
    ),
    "xlnet": (
        partial(XLNetConfig, d_model=HIDDEN, n_head=HEADS, d_inner=INNER, n_layer=3),
        "xlnet",
    ),
    # Three layers as the others have, and no kinks: gradients are compared with differences.
    "t5_encoder": (partial(T5Config, **_T5 | {"num_layers": 3}, feed_forward_proj="gated-gelu"), "unigram"),
}


def _has_encoder(name: str) -> bool:
    return bool(_FAMILIES[name][0]().is_encoder_decoder)


def _reads_the_last(name: str) -> bool:
    family = family_of(_FAMILIES[name][0]())
    return family.pools == "last" and family.parts is not None


LANGUAGE_MODELS = tuple(name for name in _FAMILIES if _reads_the_last(name))
"""Families of decoders, which have a causal language model; tests/unit/models/test_families.py checks the rule."""
ENCODER_DECODERS = tuple(name for name in _FAMILIES if _has_encoder(name) and name != "t5_encoder")


def _tokenizer(name: str) -> PreTrainedTokenizerFast:
    family = _FAMILIES[name][1]
    tokenizer = copy.deepcopy(TOKENIZERS[family]())
    if tokenizer.pad_token is None:
        # The usual choice for Llama models; without a pad token they refuse batches.
        tokenizer.pad_token = tokenizer.eos_token
    if name == "distilbert":
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tokenizer


def _config(
    name: str, tokenizer: PreTrainedTokenizerFast, labels: tuple[str, ...] = LABELS, problem: str | None = None
) -> PreTrainedConfig:
    ids = {
        f"{role}_id": tokenizer.convert_tokens_to_ids(token)
        for role, token in tokenizer.special_tokens_map.items()
        if role in ("pad_token", "bos_token", "eos_token", "cls_token", "sep_token")
    }
    return _FAMILIES[name][0](
        vocab_size=len(tokenizer),
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        problem_type=problem,
        **ids,
    )


def _randomize(model: nn.Module) -> None:
    """Matrices such that a normalized input gives outputs of about its own size; norms near the identity."""
    generator = torch.Generator().manual_seed(20240229)
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                noise = torch.randn(parameter.shape, generator=generator)
                if isinstance(module, nn.Embedding):
                    parameter.copy_(noise)
                elif parameter.dim() > 1:
                    parameter.copy_(0.25 * noise)
                else:
                    parameter.copy_(0.1 * noise + (1.0 if name == "weight" else 0.0))


def build(
    name: str, labels: tuple[str, ...] = LABELS, problem: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new model of the family, in evaluation mode, and its tokenizer. `problem` is transformers' problem_type."""
    tokenizer = _tokenizer(name)
    with torch.random.fork_rng(devices=[]):
        config = _config(name, tokenizer, labels, problem)
        whole = name != "t5_encoder"
        model = (
            AutoModelForSequenceClassification.from_config(config)
            if whole
            else T5EncoderForSequenceClassification(config)
        )
    _randomize(model)
    return model.eval(), tokenizer


SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
}
"""Settings of a small model, by the names that most architectures have."""


def build_language_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new causal language model of the family, in evaluation mode, and its tokenizer."""
    tokenizer = _tokenizer(name)
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(_config(name, tokenizer))
    _randomize(model)
    return model.eval(), tokenizer


def build_architecture(kind: str, **settings: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A small causal language model of any architecture of transformers, with weights of some size, and a tokenizer."""
    tokenizer = _tokenizer("llama")
    known = AutoConfig.for_model(kind).to_dict()
    small = {name: value for name, value in SMALL.items() if name in known}
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **(small | settings))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, 0, 0.2)
    return model.eval(), tokenizer


def build_answering(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new question answering model of the family, in evaluation mode, and its tokenizer."""
    tokenizer = _tokenizer(name)
    config = _config(name, tokenizer)
    config.num_labels = 2
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForQuestionAnswering.from_config(config)
    _randomize(model)
    return model.eval(), tokenizer


def build_embedder(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new model of the family without a head, in evaluation mode, and its tokenizer."""
    if name == "t5_encoder":
        tokenizer = _tokenizer(name)
        with torch.random.fork_rng(devices=[]):
            model: PreTrainedModel = T5EncoderModel(_config(name, tokenizer))
        _randomize(model)
        return model.eval(), tokenizer
    model, tokenizer = build(name)
    return model.base_model, tokenizer


EMBEDDING = tuple(name for name in _FAMILIES if name not in ENCODER_DECODERS)
"""Families that texts are embedded with."""


def build_at_places(
    name: str, kind: type, labels: tuple[str, ...] = LABELS
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new model of the family that tags tokens or predicts masked words, by its auto class, and its tokenizer."""
    tokenizer = _tokenizer(name)
    with torch.random.fork_rng(devices=[]):
        model = kind.from_config(_config(name, tokenizer, labels))  # type: ignore[attr-defined]
    _randomize(model)
    return model.eval(), tokenizer


TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TAGGERS = ("bert", "roberta", "deberta_v2", "distilbert", "modernbert")
"""Families that token classification is tested on."""
FILLERS = (*TAGGERS, "albert")
"""Families that masked language models are tested on."""

ANSWERING = ("bert", "distilbert", "electra", "roberta", "gpt2")
"""Families that question answering is tested on."""

QUESTIONS = [
    ("who told a story ?", "the old sailor told a modest story about the sea , and it was a quiet pleasure"),
    ("what ?", "a dull plot"),
    ("did they love it ?", "I love this so much, and nobody believed him at all, did they?"),
]
"""Pairs (question, context) of different lengths."""

_LANGUAGES = ("de_DE", "en_XX")


def _m_bart_tokenizer() -> PreTrainedTokenizerFast:
    """As mBART-50's: a text begins with its language and ends with </s>."""
    tokenizer = copy.deepcopy(TOKENIZERS["unigram"]())
    tokenizer.add_special_tokens({"additional_special_tokens": list(_LANGUAGES)})
    backend = tokenizer.backend_tokenizer
    places = [(token, backend.token_to_id(token)) for token in ("</s>", *_LANGUAGES)]
    backend.post_processor = processors.TemplateProcessing(single="en_XX $A </s>", special_tokens=places)
    return tokenizer


_WRITERS: dict[str, tuple[Callable[..., PreTrainedConfig], Callable[[], PreTrainedTokenizerFast]]] = {
    "bart": (partial(BartConfig, **_BART), TOKENIZERS["roberta"]),
    # Its embeddings are scaled, its norms stand first, and every output begins with its language.
    "m_bart": (partial(MBartConfig, **_BART, scale_embedding=True, decoder_start_token_id=1), _m_bart_tokenizer),
    # Places are told by fixed waves, and every output begins with the padding token.
    "marian": (
        partial(MarianConfig, **_BART, scale_embedding=True, decoder_start_token_id=0, forced_eos_token_id=1),
        TOKENIZERS["unigram"],
    ),
    # Its own output matrix, and gates.
    "mt5": (
        partial(MT5Config, **_T5, feed_forward_proj="gated-gelu", decoder_start_token_id=0),
        TOKENIZERS["unigram"],
    ),
    # Scaled outside of its embedding table.
    "pegasus": (partial(PegasusConfig, **_BART, scale_embedding=True, decoder_start_token_id=0), TOKENIZERS["unigram"]),
    # Its states are scaled before they meet the embedding table again.
    "t5": (partial(T5Config, **_T5, decoder_start_token_id=0), TOKENIZERS["unigram"]),
    # Every layer has its own relative positions.
    "umt5": (
        partial(UMT5Config, **_T5, feed_forward_proj="gated-gelu", decoder_start_token_id=0),
        TOKENIZERS["unigram"],
    ),
}
WRITERS = tuple(_WRITERS)
"""Families of encoder-decoders that write."""


def build_writer(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new encoder-decoder that writes, in evaluation mode, and its tokenizer."""
    config, made = _WRITERS[name]
    tokenizer = copy.deepcopy(made())
    roles = ("pad_token", "bos_token", "eos_token")
    named = tokenizer.special_tokens_map
    ids = {f"{role}_id": tokenizer.convert_tokens_to_ids(named[role]) for role in roles if role in named}
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForSeq2SeqLM.from_config(config(vocab_size=len(tokenizer), **ids))
    _randomize(model)
    with torch.no_grad():
        for buffer, bias in model.named_buffers():
            if buffer == "final_logits_bias":
                bias.copy_(torch.randn(bias.shape, generator=torch.Generator().manual_seed(7)))
    if name == "m_bart":
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids("de_DE")
    return model.eval(), tokenizer


TINY: dict[str, Callable[[], tuple[PreTrainedModel, PreTrainedTokenizerFast]]] = {
    name: partial(build, name) for name in _FAMILIES
}
ALIKE = {"deberta", "electra", "mistral", "qwen3", "roberta"}
"""Families whose blocks are those of another one (DeBERTa v2, BERT, Llama), but for names and numbers."""

UNLIKE = sorted(set(TINY) - (set() if os.environ.get("RAISON_ALL_FAMILIES") else ALIKE))
"""Families for tests that look at the blocks of a model alone; all of them with RAISON_ALL_FAMILIES."""

TAPPED = tuple(name for name in _FAMILIES if name not in ("longformer", "xlnet"))
"""Families whose attention can be read."""

TEXTS = (
    "The old sailor told a modest story about the sea.",
    "A boring plot!",
    "I love this so much, and nobody believed him at all, did they?",
)


def padded_batch(name: str) -> tuple[PreTrainedModel, dict[str, Tensor]]:
    """A new model of the family, and three texts of different lengths as its input."""
    model, tokenizer = TINY[name]()
    return model, dict(tokenizer(list(TEXTS), return_tensors="pt", padding=True))


def eager_logits(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
    """Logits of a copy of the model under its family's own eager attention."""
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    return own(**inputs).logits.detach()
