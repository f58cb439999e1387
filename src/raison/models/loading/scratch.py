"""Small models from scratch: a configuration, random weights, and a tokenizer trained on texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
)

from raison.core.inputs.unit import Text, segments
from raison.models.loading.t5_encoder import T5EncoderForSequenceClassification
from raison.models.stack.eval_mode import drawing
from raison.models.tokens.small_vocabulary import choose_pieces, count_words

_TOKEN_TYPES = ["input_ids", "token_type_ids", "attention_mask"]
_ROBERTA_OFFSET = 2
"""Number of rows in RoBERTa's position table that no token uses."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a model; feed-forward layers are four times as wide. `positions` is its longest text in tokens."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    vocabulary: int = 4000
    positions: int = 128


def scratch_tokenizer(architecture: str, texts: Sequence[Text], size: Size) -> PreTrainedTokenizerFast:
    """A tokenizer of the architecture's own kind, with at most `size.vocabulary` tokens; the same for the same texts.

    WordPiece in lower case for "bert", bytes (BPE) for "roberta" and "gpt2", Unigram for "t5_encoder". All have a mask
    token, so that a removed word is replaced in the same way in each. Costs a pass over the texts.
    """
    lines = [part for text in texts for part in segments(text)]
    made = _TOKENIZERS[architecture](lines, size.vocabulary)
    made.model_max_length = size.positions
    return made


def scratch_model(
    architecture: str, size: Size, tokenizer: PreTrainedTokenizerFast, labels: Sequence[str], seed: int
) -> PreTrainedModel:
    """A classifier with random weights drawn by `seed`; the caller's random state is unchanged."""
    shared: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    with drawing(seed):
        return _MODELS[architecture](size, shared, tokenizer).eval()


def _wordpiece(lines: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = Tokenizer(models.WordPiece())
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces = [piece for piece, _ in choose_pieces(count_words(made, lines), "##", vocabulary - len(special))]
    numbers = {piece: number for number, piece in enumerate([*special, *pieces])}
    made.model = models.WordPiece(numbers, unk_token="[UNK]")
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, numbers[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=_TOKEN_TYPES,
    )


def _bytes(lines: Sequence[str], vocabulary: int, special: list[str]) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(lines, trainer)
    return made


def _roberta(lines: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made = _bytes(lines, vocabulary, special)
    made.post_processor = processors.RobertaProcessing(
        sep=("</s>", special.index("</s>")), cls_token=("<s>", special.index("<s>")), add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        # The original also absorbs the space before a mask.
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
    )


def _gpt2(lines: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    end = "<|endoftext|>"
    # A separate padding token: the model finds a text's last token by the padding id.
    made = _bytes(lines, vocabulary, [end, "<pad>", "<mask>"])
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=end, eos_token=end, unk_token=end, pad_token="<pad>", mask_token="<mask>"
    )


def _unigram(lines: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    special = ["<pad>", "</s>", "<unk>", "<extra_id_0>"]
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    pieces = choose_pieces(count_words(made, lines), "", vocabulary - len(special))
    made.model = models.Unigram([*((token, 0.0) for token in special), *pieces], unk_id=special.index("<unk>"))
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", special.index("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="</s>", unk_token="<unk>", pad_token="<pad>", mask_token="<extra_id_0>"
    )


def _bert_model(size: Size, shared: dict[str, Any], _tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return BertForSequenceClassification(BertConfig(**_bert_like(size, size.positions), **shared))


def _roberta_model(size: Size, shared: dict[str, Any], tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    ends: dict[str, Any] = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "type_vocab_size": 1,
    }
    config = RobertaConfig(**_bert_like(size, size.positions + _ROBERTA_OFFSET), **ends, **shared)
    return RobertaForSequenceClassification(config)


def _bert_like(size: Size, positions: int) -> dict[str, Any]:
    return {
        "num_hidden_layers": size.layers,
        "hidden_size": size.width,
        "intermediate_size": 4 * size.width,
        "num_attention_heads": size.heads,
        "max_position_embeddings": positions,
    }


def _gpt2_model(size: Size, shared: dict[str, Any], tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    ends: dict[str, Any] = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shape: dict[str, Any] = {
        "n_layer": size.layers,
        "n_embd": size.width,
        "n_head": size.heads,
        "n_positions": size.positions,
    }
    return GPT2ForSequenceClassification(GPT2Config(**shape, **ends, **shared))


def _t5_model(size: Size, shared: dict[str, Any], tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    shape: dict[str, Any] = {
        "num_layers": size.layers,
        "d_model": size.width,
        "d_ff": 4 * size.width,
        "num_heads": size.heads,
    }
    config = T5Config(**shape, d_kv=size.width // size.heads, eos_token_id=tokenizer.eos_token_id, **shared)
    return T5EncoderForSequenceClassification(config)


_TOKENIZERS: dict[str, Callable[[Sequence[str], int], PreTrainedTokenizerFast]] = {
    "bert": _wordpiece,
    "gpt2": _gpt2,
    "roberta": _roberta,
    "t5_encoder": _unigram,
}
_MODELS: dict[str, Callable[[Size, dict[str, Any], PreTrainedTokenizerFast], PreTrainedModel]] = {
    "bert": _bert_model,
    "gpt2": _gpt2_model,
    "roberta": _roberta_model,
    "t5_encoder": _t5_model,
}
ARCHITECTURES = tuple(_MODELS)
"""The architectures of `scratch_model`."""
