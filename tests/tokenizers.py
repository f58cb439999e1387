"""Small fast tokenizers of every common kind, made in a moment from a few lines written here.

Their vocabularies stay below 600 entries, so that the tiniest models can use them.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 520

CORPUS = (
    "The old sailor told a modest story about the sea, and nobody believed him.",
    "A wonderful, moving film with a terrible ending; I don't think I'll watch it again!",
    "It isn't good... but it wasn't bad either, was it? They can't say so.",
    "Dr. Smith paid $3.50 for 1,000 apples on 12 May 1998.",
    "We walked home through the rain. The rain did not stop. Not at all!",
    "the actors are brilliant and the music is boring, the plot is slow and the jokes are weak",
    "Le café était fermé, mais la crème brûlée était très bonne à Noël.",
    "Die Straße war naß, und der Bär fraß süße Äpfel für später.",
    "El niño comió piñas mañana y bebió agua fría.",
    "Старый моряк рассказал простую историю о море.",
    "Ο παλιός ναύτης είπε μια ιστορία.",
    "كان البحر هادئا والسماء صافية في ذلك اليوم.",
    "الكتاب جميل جدا، هل قرأته؟",
    "הים היה שקט והשמים היו כחולים באותו יום.",
    "می‌خواهم کتاب را بخوانم.",
    "海很安静，天空很蓝。老水手讲了一个故事。",
    "きょうは海がとてもしずかです。カメラを買いました。",
    "바다는 조용하고 하늘은 파랗다. 안녕하세요 여러분.",
    "ทะเลสงบและท้องฟ้าเป็นสีฟ้า",
    "समुद्र शांत था और आकाश नीला था।",
    "I love this 😀 so much ❤️ 👍🏽 👩‍👩‍👧 🇩🇪 🎉🎉🎉",
)
ENGLISH = 6


def _count_pieces(tokenizer: Tokenizer, inner: str) -> Counter[str]:
    """How often each piece of at most six characters occurs in the corpus; `inner` goes before all but the first."""
    counts: Counter[str] = Counter()
    for sentence in CORPUS:
        plain = tokenizer.normalizer.normalize_str(sentence)
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain):
            for start, end in combinations(range(len(word) + 1), 2):
                if end - start <= 6:
                    counts[(inner if start else "") + word[start:end]] += 1
    return counts


def _choose_pieces(counts: Counter[str], inner: str, room: int) -> list[str]:
    """All single characters, then the pieces that save most. The library's own trainers break ties at random."""
    lengths = {piece: len(piece.removeprefix(inner)) for piece in counts}
    ranked = sorted(counts, key=lambda piece: (lengths[piece] > 1, -counts[piece] * (lengths[piece] - 1), piece))
    return ranked[:room]


def _wordpiece(lowercase: bool) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces = _choose_pieces(_count_pieces(tokenizer, "##"), "##", VOCABULARY - len(special))
    vocabulary = {piece: number for number, piece in enumerate(special + pieces)}
    tokenizer.model = models.WordPiece(vocabulary, unk_token="[UNK]")
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        model_max_length=512,
    )


def _byte_level(add_prefix_space: bool, special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _gpt2(add_prefix_space: bool, trim_offsets: bool) -> PreTrainedTokenizerFast:
    end = "<|endoftext|>"
    tokenizer = _byte_level(add_prefix_space, [end])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=end, eos_token=end, unk_token=end, pad_token=end, model_max_length=512
    )


def _roberta() -> PreTrainedTokenizerFast:
    tokenizer = _byte_level(False, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(
        # By place: their names are others in older versions.
        ("</s>", tokenizer.token_to_id("</s>")),
        ("<s>", tokenizer.token_to_id("<s>")),
        trim_offsets=True,
        add_prefix_space=False,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        # The real one swallows the space in front of a mask in the text as well.
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_max_length=512,
    )


def _unigram() -> PreTrainedTokenizerFast:
    return _pieces("$A </s>", "$A </s> $B </s>", {"eos_token": "</s>"})


def _xlnet() -> PreTrainedTokenizerFast:
    """The answer is read at the end; the tokenizer's own padding stands at the beginning."""
    roles = {"eos_token": "</s>", "sep_token": "<sep>", "cls_token": "<cls>", "mask_token": "<mask>"}
    found = _pieces("$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2", roles)
    found.padding_side = "left"
    found.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return found


def _pieces(single: str, pair: str, roles: dict[str, str]) -> PreTrainedTokenizerFast:
    """SentencePiece's unigrams, with these templates and further special tokens."""
    special = ["<pad>", *roles.values(), "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    counts = _count_pieces(tokenizer, "")
    pieces = _choose_pieces(counts, "", VOCABULARY - len(special))
    scores = [(piece, math.log(counts[piece] / counts.total())) for piece in pieces]
    tokenizer.model = models.Unigram([*((token, 0.0) for token in special), *scores], unk_id=special.index("<unk>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, special.index(token)) for token in roles.values()]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", model_max_length=512, **roles
    )


def _llama() -> PreTrainedTokenizerFast:
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    # English only: every other script is left to the byte tokens.
    learner.train_from_iterator(CORPUS[:ENGLISH], trainer)
    merges = [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]
    # A new tokenizer, because the learner takes the byte tokens for special ones that may stand in a text.
    model = models.BPE(learner.get_vocab(), merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", special.index("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "bert": cache(lambda: _wordpiece(lowercase=False)),
    "bert_uncased": cache(lambda: _wordpiece(lowercase=True)),
    "gpt2": cache(lambda: _gpt2(add_prefix_space=False, trim_offsets=True)),
    "gpt2_untrimmed": cache(lambda: _gpt2(add_prefix_space=False, trim_offsets=False)),
    "gpt2_prefix_space": cache(lambda: _gpt2(add_prefix_space=True, trim_offsets=True)),
    "gpt2_prefix_space_untrimmed": cache(lambda: _gpt2(add_prefix_space=True, trim_offsets=False)),
    "roberta": cache(_roberta),
    "unigram": cache(_unigram),
    "xlnet": cache(_xlnet),
    "llama": cache(_llama),
}
"""By name, each built once. All share their instances: whoever changes one must copy it first."""
