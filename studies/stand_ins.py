"""Replacements for the Hub in a rehearsal (rehearse.py): tiny random models, and a few rows in the same columns.

A model is saved in a folder named after its id of the Hub, which transformers finds before the Hub. It has the class
of the original, a tokenizer of the same kind (without the padding and mask tokens that the original lacks) and four
layers, or more if a study refers to them. Sizes differ where those of the originals do.
"""

import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import datasets
import torch
from shortened import WORDS
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    T5Config,
    T5ForConditionalGeneration,
)

from raison.core.inputs.unit import segments
from raison.data import Dataset, Row, load
from raison.models.loading.scratch import Size, scratch_tokenizer
from raison.models.stack.eval_mode import drawing, quiet

LAYERS, HEADS, VOCABULARY, POSITIONS = 4, 4, 1000, 512
UNNAMED = "textattack/"
"""The models of this owner have no class names."""
WIDTHS = {"tiny": 16, "mini": 24, "small": 32, "medium": 40, "base": 48}
"""Widths by the size in a model's name; 32 without one."""
_FAMILIES = ("distilbert", "roberta", "electra", "bert", "gpt2", "t5", "llama", "mistral")
_PROMPT_ROOM = 8192
"""Positions of models that read prompts with examples."""
_SHORT, _ROWS = 16, 16
"""Words of a text, and texts of a class, in a data set that replaces one of the Hub."""
_NLI = ("entailment", "neutral", "contradiction")
_DOTS = ["so ... and then ... but ...", "well... no..."] * 20
"""Three dots are one token of GPT-2 and of Llama."""


def save_model(name: str, place: Path, labels: Sequence[str] = (), layers: int = LAYERS) -> None:
    """Save a stand-in for a model of the Hub in the folder `place` / `name`, unless it exists.

    With labels it is a classifier that predicts more than one of them. Without, it is a base: a language model in a
    generative family, otherwise an encoder without a head. Raises LookupError for a family without a stand-in.
    """
    folder = place / name
    if (folder / "config.json").is_file():
        return
    family = next((family for family in _FAMILIES if family in name.lower()), None)
    if family is None:
        raise LookupError(f"{name}: there is no stand-in of its architecture.")
    tokenizer = _tokenizer(family, padded=bool(labels))
    config = _config(name, family, tokenizer, labels)
    config.num_hidden_layers = layers
    model = _classifier(config, tokenizer) if labels else _drawn(_BASES.get(family, AutoModel.from_config), config, 0)
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def save_snli(place: Path) -> None:
    """The two files of SNLI that a study asks for, in the Hub's columns."""
    rows = [_pair(row) for row in _few(load("snli", split="test"), 2 * _ROWS)]
    (place / "snli").mkdir(exist_ok=True)
    for name, part in (("train", rows[0::2]), ("test", rows[1::2])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (place / "snli" / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def hub_rows(name: str, configuration: str | None = None, *, split: str) -> datasets.Dataset:
    """Replaces datasets.load_dataset: a few local rows in the columns of the Hub. Raises ValueError."""
    known = f"{name}:{configuration}" if configuration else name
    if known not in _HUB:
        raise ValueError(f"there is no stand-in of '{known}'")
    rows, features = _HUB[known](split)
    return datasets.Dataset.from_list(rows, features=datasets.Features(features))


def _tokenizer(family: str, padded: bool) -> PreTrainedTokenizerFast:
    texts = [" ".join(segments(text)) for text in load("sst2", split="dev", limit=300).texts]
    texts += [" ".join(segments(text)) for text in load("esnli", split="test", limit=100).texts]
    texts += _DOTS
    if family in ("llama", "mistral"):
        # More words, so that prompts with examples are not much longer than they are for the original.
        return _llama_tokenizer([*texts, *map(str, load("sst2", split="dev").texts)])
    kind = {"gpt2": "gpt2", "roberta": "roberta", "t5": "t5_encoder"}.get(family, "bert")
    made = scratch_tokenizer(kind, texts, Size(vocabulary=VOCABULARY, positions=POSITIONS))
    if family == "distilbert":
        made.model_input_names = ["input_ids", "attention_mask"]
    if family == "t5":
        made.mask_token = None
    if family == "gpt2":
        made.mask_token = None
        # The original has none; fine-tuned versions use the end-of-text token.
        made.pad_token = made.eos_token if padded else None
    return made


def _llama_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """SentencePiece's BPE with byte fallback and no padding token."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first")
    learner.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=4 * VOCABULARY, special_tokens=special, show_progress=False)
    )
    merges = [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]
    # A new tokenizer, because the learner would treat the byte tokens as special tokens in a text.
    made = Tokenizer(models.BPE(learner.get_vocab(), merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", special.index("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=_PROMPT_ROOM,
    )


def _config(name: str, family: str, tokenizer: PreTrainedTokenizerFast, labels: Sequence[str]) -> PreTrainedConfig:
    width = next((width for size, width in WIDTHS.items() if f"-{size}" in name), 32)
    roles = ("pad_token", "bos_token", "eos_token")
    ids = {f"{role}_id": tokenizer.convert_tokens_to_ids(str(getattr(tokenizer, role))) for role in roles
           if getattr(tokenizer, role) is not None}  # fmt: skip
    named: dict[str, Any] = {}
    if labels:
        named = {
            "id2label": dict(enumerate(labels)),
            "label2id": {label: number for number, label in enumerate(labels)},
        }
    return _CONFIGS[family](width, {"vocab_size": len(tokenizer), **ids, **named})


def _bert_like(width: int, positions: int = POSITIONS) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_attention_heads": HEADS,
        "intermediate_size": 2 * width,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": positions,
    }


def _distilbert(width: int, shared: dict[str, Any]) -> PreTrainedConfig:
    sizes: dict[str, Any] = {"dim": width, "n_heads": HEADS, "hidden_dim": 2 * width, "n_layers": LAYERS}
    return DistilBertConfig(**sizes, max_position_embeddings=POSITIONS, **shared)


def _gpt2(width: int, shared: dict[str, Any]) -> PreTrainedConfig:
    return GPT2Config(n_embd=width, n_head=HEADS, n_layer=LAYERS, n_positions=POSITIONS, **shared)


def _t5(width: int, shared: dict[str, Any]) -> PreTrainedConfig:
    sizes: dict[str, Any] = {"d_model": width, "num_heads": HEADS, "d_kv": width // HEADS, "d_ff": 2 * width}
    return T5Config(**sizes, num_layers=LAYERS, decoder_start_token_id=0, **shared)


_CONFIGS: dict[str, Callable[[int, dict[str, Any]], PreTrainedConfig]] = {
    "bert": lambda width, shared: BertConfig(**_bert_like(width), **shared),
    # Two rows of the position table belong to padding.
    "roberta": lambda width, shared: RobertaConfig(**_bert_like(width, POSITIONS + 2), type_vocab_size=1, **shared),
    "distilbert": _distilbert,
    "electra": lambda width, shared: ElectraConfig(**_bert_like(width), embedding_size=width, **shared),
    "gpt2": _gpt2,
    "t5": _t5,
    "llama": lambda width, shared: LlamaConfig(**_bert_like(width, _PROMPT_ROOM), **shared),
    "mistral": lambda width, shared: MistralConfig(
        **_bert_like(width, _PROMPT_ROOM), num_key_value_heads=HEADS // 2, **shared
    ),
}
_BASES: dict[str, Callable[[Any], PreTrainedModel]] = {
    "gpt2": AutoModelForCausalLM.from_config,
    "llama": AutoModelForCausalLM.from_config,
    "mistral": AutoModelForCausalLM.from_config,
    "t5": T5ForConditionalGeneration,
}


def _drawn(kind: Callable[[Any], PreTrainedModel], config: PreTrainedConfig, seed: int) -> PreTrainedModel:
    """A model with weights of the size of trained ones, so that outputs depend on every part of the input."""
    with drawing(seed):
        model = kind(config)
        with torch.no_grad():
            for module in model.modules():
                for name, parameter in module.named_parameters(recurse=False):
                    noise = torch.randn(parameter.shape)
                    if isinstance(module, nn.Embedding):
                        parameter.copy_(noise)
                    elif parameter.dim() > 1:
                        parameter.copy_(0.25 * noise)
                    else:
                        parameter.copy_(0.1 * noise + (1.0 if name == "weight" else 0.0))
    return model.eval()


def _classifier(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The first of fifty that predicts several classes, for sentences and for reviews' first words.

    An explainer needs several to learn from.
    """
    sentences = load("sst2", split="dev", limit=12).texts
    reviews = [" ".join(text.split()[:WORDS]) for text in load("imdb", split="test", limit=12).texts]
    for seed in range(50):
        model = _drawn(AutoModelForSequenceClassification.from_config, config, seed)
        if all(_mixed(model, tokenizer, texts) for texts in (sentences, reviews)):
            return model
    raise LookupError(f"no {config.model_type} among fifty predicts different classes.")


def _mixed(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> bool:
    """Whether no class is predicted for more than two thirds of the texts."""
    with torch.no_grad():
        predicted = [int(model(**tokenizer(text, return_tensors="pt")).logits.argmax()) for text in texts]
    return max(map(predicted.count, predicted)) <= 2 * len(predicted) // 3


def _few(data: Dataset, each: int) -> list[Row]:
    """The `each` shortest rows of every class, in turn; of all rows if the data has no classes."""
    ranked = sorted(data.rows, key=lambda row: sum(len(part) for part in segments(row.text)))
    classes = sorted({row.label for row in ranked if isinstance(row.label, int)}) or [None]
    of_class = [islice((row for row in ranked if row.label == label), each) for label in classes]
    return [row for rows in zip(*of_class, strict=False) for row in rows]


def _pair(row: Row) -> dict[str, Any]:
    premise, hypothesis = segments(row.text)
    return {"premise": premise, "hypothesis": hypothesis, "label": row.label}


def _imdb(split: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = _few(load("imdb", split=split), _ROWS)
    columns = {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    return [{"text": " ".join(str(row.text).split()[:_SHORT]), "label": row.label} for row in rows], columns


def _mnli(split: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = _few(load("mnli", split=split.removeprefix("validation_").replace("train", "mismatched")), _ROWS)
    texts = {name: datasets.Value("string") for name in ("premise", "hypothesis")}
    columns = {**texts, "label": datasets.ClassLabel(names=list(_NLI)), "idx": datasets.Value("int32")}
    return [{**_pair(row), "idx": number} for number, row in enumerate(rows)], columns


def _squad(split: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = _few(load("squad", split="train" if split == "train" else "test"), _ROWS)
    string = datasets.Value("string")
    answers = {"text": datasets.List(string), "answer_start": datasets.List(datasets.Value("int32"))}
    columns = dict.fromkeys(("id", "title", "context", "question"), string) | {"answers": answers}
    return [_question(number, row) for number, row in enumerate(rows)], columns


def _question(number: int, row: Row) -> dict[str, Any]:
    question, context = segments(row.text)
    answers = {
        "text": [answer.text for answer in row.answers],
        "answer_start": [answer.start for answer in row.answers],
    }
    return {"id": str(number), "title": "", "context": context, "question": question, "answers": answers}


_HUB = cast(
    "dict[str, Callable[[str], tuple[list[dict[str, Any]], dict[str, Any]]]]",
    {"stanfordnlp/imdb": _imdb, "nyu-mll/glue:mnli": _mnli, "rajpurkar/squad": _squad},
)
