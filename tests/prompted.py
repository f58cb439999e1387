"""Texts behind a prompt on every kind of tokenizer."""

from transformers import PreTrainedTokenizerFast

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Granularity
from raison.models.tokens.prompting import PromptEncoder
from raison.text.prompts import Prompt
from tests.tokenizers import TOKENIZERS

DAY = Prompt(
    name="day",
    task="Say how the story was. Be brief.",
    shot="Story: {text}\nIt was{label}",
    shots=(("boring and slow", "low"), ("a moving film", "high")),
    labels={"low": " bad", "high": " good"},
)
PLAIN = ("gpt2", "gpt2_untrimmed", "llama", "roberta", "bert", "unigram")
EXACT = ("gpt2", "gpt2_untrimmed", "roberta")
"""Tokenizers whose decoder gives back every character."""

TEXTS = (
    "a modest story",
    "the actors are brilliant and the music is boring",
    "  two spaces,  then more ",
    "I love this 😀 so much",
    "good.\n\nbad",
    "x",
)


def encoder(name: str, prompt: Prompt = DAY, max_tokens: int | None = None, explained: str = "input") -> PromptEncoder:
    return PromptEncoder(TOKENIZERS[name](), prompt, max_tokens, explained)


def encode(
    name: str, text: str, unit: Granularity = "word", explained: str = "input", prompt: Prompt = DAY
) -> Encoding:
    return encoder(name, prompt, None, explained).encode([text], unit, False)


def own_ids(tokenizer: PreTrainedTokenizerFast, string: str) -> list[int]:
    """What the tokenizer itself makes of the string, without the end that it adds."""
    ids = tokenizer(string).input_ids
    return ids[:-1] if ids[-1] in (tokenizer.sep_token_id, tokenizer.eos_token_id) else ids


def tokens_of(name: str, ids: tuple[int, ...]) -> list[str]:
    return TOKENIZERS[name]().convert_ids_to_tokens(list(ids))
