"""Special tokens in a prompt, and their names as plain text in the caller's texts, in one run of a tokenizer."""

import re
import secrets
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase

from raison.models.tokens.own_tokenizer import own_tokenizer

_PRIVATE = range(0x100000, 0x10FFFE)
"""Characters without a meaning (from a private use plane)."""


@dataclass(frozen=True, slots=True, eq=False)
class _StandIns:
    by_name: Mapping[str, str]
    tokens: Mapping[int, int]
    """The special token that each stand-in is, by the stand-in's own number."""
    names: re.Pattern[str] | None

    @classmethod
    def added_to(cls, tokenizer: PreTrainedTokenizerBase) -> "_StandIns":
        """Adds stand-ins to a copy of the tokenizer that nothing else uses."""
        backend = tokenizer.backend_tokenizer
        backend.encode_special_tokens = True
        by_name, tokens = {}, {}
        for number, token in backend.get_added_tokens_decoder().items():
            if token.special:
                name = token.content
                by_name[name] = "".join(chr(_PRIVATE[secrets.randbelow(len(_PRIVATE))]) for _ in name)
                edges = {"single_word": token.single_word, "lstrip": token.lstrip, "rstrip": token.rstrip}
                backend.add_tokens([AddedToken(by_name[name], **edges, normalized=token.normalized)])
                tokens[backend.token_to_id(by_name[name])] = number
        # If several names begin alike, a tokenizer takes the longest.
        longest = sorted(map(re.escape, by_name), key=lambda name: -len(name))
        return cls(by_name, tokens, re.compile("|".join(longest)) if longest else None)


@dataclass(frozen=True, slots=True, eq=False)
class PlainNames:
    """A copy of a tokenizer that reads special tokens' names as plain text, and stand-ins of them as the tokens.

    A stand-in is as long as the name, so that characters keep their places, and drawn at random, so that no text holds
    one. Call `tokenizer` with split_special_tokens=True, and take the tokens from `ids`.
    """

    tokenizer: PreTrainedTokenizerBase
    _stand_ins: _StandIns

    def sealed(self, string: str) -> str:
        """A string of the prompt with its special tokens as stand-ins, to be put around a text."""
        names, by_name = self._stand_ins.names, self._stand_ins.by_name
        return string if names is None else names.sub(lambda name: by_name[name[0]], string)

    def named_in(self, strings: Iterable[str]) -> bool:
        """Whether a special token's name occurs in one of the strings."""
        names = self._stand_ins.names
        return names is not None and any(names.search(string) for string in strings)

    def ids(self, ids: Sequence[int], owners: Sequence[int | None]) -> tuple[int, ...]:
        """The model's tokens: `owners` is None where the tokenizer added one by itself.

        Some vocabularies also have special tokens among their pieces (T5): in a text they become the unknown token.
        """
        tokens, unknown = self._stand_ins.tokens, self.tokenizer.unk_token_id
        barred = set() if unknown is None else {*tokens.values()} - {unknown}
        return tuple(
            unknown if owner is not None and token in barred else tokens.get(token, token)
            for token, owner in zip(ids, owners, strict=True)
        )


_MADE: weakref.WeakKeyDictionary[PreTrainedTokenizerBase, _StandIns] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def plain_names(tokenizer: PreTrainedTokenizerBase) -> PlainNames:
    """Made once, as the copy of the tokenizer is (see own_tokenizer, which says what it raises)."""
    copy = own_tokenizer(tokenizer, "prompts")
    with _LOCK:
        if copy not in _MADE:
            _MADE[copy] = _StandIns.added_to(copy)
        return PlainNames(copy, _MADE[copy])
