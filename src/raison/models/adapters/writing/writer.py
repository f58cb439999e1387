"""What explains the output of a language model: its own continuation, or a given one, token by token."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText
from raison.core.model import LanguageModel
from raison.core.targets.choices import is_whole_number
from raison.models.tokens.continuation import ContinuationEncoder, Output, TokenizedPrompt
from raison.text.segment import CharacterSpan

EMPTY = "the output is empty: there is no token to explain."
ENDED = "the model ends the text right after the prompt: give the output to explain (output=)."


def check_new_tokens(count: object) -> None:
    """Raise InputError unless this is a number of tokens to write."""
    if not is_whole_number(count) or int(count) < 1:
        raise InputError(f"max_new_tokens cannot be {count!r:.40}: give a whole number of at least 1.")


class Writer(ABC):
    """A language model that writes. It is not a classifier: `reader` makes one, whose classes are tokens."""

    name: str
    max_tokens: int | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    @abstractmethod
    def chats(self) -> bool:
        """Whether it has a chat template."""

    @abstractmethod
    def prompt(self, prompt: str | PartedText | Chat, untrusted: Sequence[CharacterSpan] = ()) -> TokenizedPrompt:
        """The prompt's tokens; a chat uses the model's own template. Raises InputError.

        A special token's name in a string stands for that token, except in its `untrusted` characters. (A server reads
        strings in its own way.)
        """

    @abstractmethod
    def prompts_again(self, text: str, untrusted: Sequence[CharacterSpan] = ()) -> list[TokenizedPrompt]:
        """The possible prompts with a known text: the text itself, or a chat as the template renders it. `untrusted`
        as in `prompt`."""

    @abstractmethod
    def written(self, prompt: TokenizedPrompt, ids: Sequence[int]) -> Output:
        """An output whose tokens are known."""

    @abstractmethod
    def continuation(self, prompt: TokenizedPrompt, new_tokens: int) -> Output:
        """The model's own output: the likeliest token at each step, up to the end of the text."""

    @abstractmethod
    def output(self, prompt: TokenizedPrompt, text: str) -> tuple[Output, str | None]:
        """The tokens of a given output after the prompt, and a warning if the boundary is ambiguous."""

    @abstractmethod
    def token_after(self, prompt: TokenizedPrompt, output: Output, number: int, word: str | int) -> int:
        """The first token of a word that would replace output token `number`; an id is returned unchanged."""

    @abstractmethod
    def runners_up(self, prompt: TokenizedPrompt, output: Output) -> tuple[int, ...]:
        """For each output token, the likeliest other token in its place."""

    @abstractmethod
    def reader(self, rows: ContinuationEncoder, tokens: Sequence[int]) -> LanguageModel:
        """A classifier with one row per output token. Its classes are the given tokens, and one for all others."""


def in_place_of(word: str, written: str) -> str:
    """A word as it would stand in place of a written token: with that token's leading space, unless it has its own.

    A token of white space alone, such as a line break, has no word to lead to: the word stands by itself. Raises
    InputError for an empty word.
    """
    if not word.strip():
        raise InputError("a contrast is a word or a token id; got an empty one.")
    space = written[: len(written) - len(written.lstrip())] if written.strip() else ""
    return word if word[0].isspace() else space + word
