"""A special token's name, written in a text, is a few characters like any other, for every family."""

import copy
from dataclasses import replace

import pytest
import torch
from transformers import BartConfig, BartForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

import raison
from raison.models.loading.load import load
from raison.models.tokens.prompting import PromptEncoder
from raison.text.prompts.kinds import ChatStyle
from tests.prompted import DAY
from tests.prompted import PLAIN as TOKENIZED
from tests.tiny import LABELS, TINY
from tests.tokenizers import TOKENIZERS

PLAIN = "a modest story about the sea"


def bart() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    tokenizer = TOKENIZERS["roberta"]()
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        id2label=dict(enumerate(LABELS)),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BartForSequenceClassification(config).eval(), tokenizer


MODELS = {**TINY, "bart": bart}


def texts_of(tokenizer: PreTrainedTokenizerFast) -> list[str]:
    names = tokenizer.all_special_tokens
    return [PLAIN, *(text for n in names for text in (f"{n} {PLAIN}", f"a modest{n}story {n} about", f"{PLAIN}{n}", n))]


@pytest.mark.parametrize("family", MODELS)
def test_every_text_with_a_special_token_is_explained_and_none_disturbs_another(family: str) -> None:
    model, tokenizer = MODELS[family]()
    loaded = load(model, tokenizer)
    texts = texts_of(tokenizer)
    together = raison.explain(loaded, texts, method="occlusion", target=0)
    assert [e.text for e in together] == texts
    for place in (0, 1, len(texts) - 1):
        alone = raison.explain(loaded, texts[place], method="occlusion", target=0)
        assert together[place].scores == pytest.approx(alone.scores, abs=1e-5)


@pytest.mark.parametrize("family", MODELS)
def test_no_special_token_comes_out_of_a_text(family: str) -> None:
    model, tokenizer = MODELS[family]()
    texts = texts_of(tokenizer)
    encoding = load(model, tokenizer).encode(texts, "token")
    inside = encoding.input_ids[encoding.unit_ids >= 0].tolist()
    assert not set(inside) & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    # The caller's tokenizer does as it did.
    found = tokenizer(tokenizer.all_special_tokens[0], add_special_tokens=False)["input_ids"]
    assert found[0] in tokenizer.all_special_ids


TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}"
    "{{ bos_token }}[answer]"
)


@pytest.mark.parametrize("chat", [None, "message", "turns"])
@pytest.mark.parametrize("name", TOKENIZED)
def test_no_special_token_comes_out_of_a_text_behind_a_prompt(name: str, chat: ChatStyle | None) -> None:
    """Those that the tokenizer or a chat template writes around it stay what they are."""
    tokenizer = copy.deepcopy(TOKENIZERS[name]())
    names = [name for name in tokenizer.all_special_tokens if name != tokenizer.unk_token] or [tokenizer.unk_token]
    tokenizer.bos_token, tokenizer.eos_token = names[0], names[-1]
    tokenizer.chat_template = TEMPLATE
    # The call of the chat template below writes these settings; those of a tokenizer that others used may differ.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    state = tokenizer.backend_tokenizer.to_str()
    texts = texts_of(tokenizer)
    made = PromptEncoder(tokenizer, replace(DAY, chat=chat), None, "input")
    encoding = made.encode(texts, "token", False)
    # One tokenizer has a single special token, which is also the unknown one, and never needs that.
    special = set(tokenizer.convert_tokens_to_ids(names))
    inside = encoding.input_ids[encoding.scored].tolist()
    assert not set(inside) & special
    frames = [
        [token for token in ids[own & (units < 0)].tolist() if token in special]
        for ids, own, units in zip(encoding.input_ids, encoding.attention_mask, encoding.unit_ids, strict=True)
    ]
    assert all(frame == frames[0] for frame in frames)
    if chat is not None:
        plain = tokenizer.apply_chat_template(
            [{"role": "user", "content": DAY.render(None).around(PLAIN)}], add_generation_prompt=True
        )["input_ids"]
        assert len(frames[0]) >= sum(token in special for token in plain) > 2
        if chat == "message":
            assert encoding.input_ids[0][encoding.attention_mask[0]].tolist() == plain
    assert tokenizer.backend_tokenizer.to_str() == state
    found = tokenizer(tokenizer.all_special_tokens[0], add_special_tokens=False)["input_ids"]
    assert found[0] in tokenizer.all_special_ids
