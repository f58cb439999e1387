"""A prompt as data: the text around the input, and the label words of the classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from raison.core.errors import DataError, InputError
from raison.core.settings.reading import toml_value
from raison.text.prompts.check import PromptError, fill, mistakes_in, read_table
from raison.text.prompts.kinds import ChatStyle, Scoring
from raison.text.prompts.render import (
    MessageCharacter,
    MessageLayout,
    PromptMessage,
    Rendered,
    Template,
    render_chat,
    render_plain,
)
from raison.text.segment import CharacterSpan, sentence_spans

_SLOT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Classification by completion: the model continues task, shots and input with one of the label words.

    - `labels` maps each class to its label word as it follows the cue, with its leading space if one is needed.
    - `shot` is the format of a shot, with the slots {text} and {label}. `query` is the format of the input, with {text}
      only, up to where the answer begins (by default `shot` up to {label}). All other braces are text.
    - `shots` are texts with their classes. `separator` is put between task, shots and query.
    - `chat` sends everything as one user message of the tokenizer's chat template, or every shot as a user message (its
      query) and an answer (its label word); the task then opens the first message.
    - `scoring` says how label words of several tokens are scored.

    Raises PromptError with all mistakes at once.
    """

    name: str
    labels: Mapping[str, str] = field(hash=False)
    shot: str = ""
    query: str = ""
    task: str = ""
    shots: tuple[tuple[str, str], ...] = ()
    separator: str = "\n\n"
    chat: ChatStyle | None = None
    system: str | None = None
    scoring: Scoring = "word"
    source: str = ""

    def __post_init__(self) -> None:
        mistakes = mistakes_in({entry.name: getattr(self, entry.name) for entry in fields(self)})
        if mistakes:
            raise PromptError(f"the prompt '{self.name}'", mistakes)
        if not self.query:
            object.__setattr__(self, "query", self.shot.partition("{label}")[0])

    @classmethod
    def read(cls, path: str | Path) -> "Prompt":
        """A prompt from a TOML file whose keys are the fields; it has the file's name unless the file sets another.

        Raises DataError for a file that is missing or not TOML, PromptError with all other mistakes.
        """
        path = Path(path)
        try:
            table = toml_value(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from None
        except ValueError as error:
            raise DataError(f"{path} is not TOML: {error}.") from None
        except FileNotFoundError:
            raise DataError(
                f"{path} is missing: give a prompt's file (.toml) or the name of an included prompt."
            ) from None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
        values, mistakes = read_table(table, [entry.name for entry in fields(cls)])
        mistakes += mistakes_in(values)
        if mistakes:
            raise PromptError(str(path), mistakes)
        return cls(**{"name": path.stem} | values)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the model's outputs."""
        return tuple(self.labels)

    @property
    def words(self) -> tuple[str, ...]:
        """The classes' label words."""
        return tuple(self.labels.values())

    def render(self, template: Template | None) -> Rendered:
        """The text before and after the input. `template` is the tokenizer's chat template, None if it has none.

        Raises InputError for a chat without template and for a template that changes the texts.
        """
        if self.chat is None:
            return render_plain(self._layout(()))
        if template is None:
            raise InputError(
                f"the prompt '{self.name}' is a chat and the tokenizer has no chat template: take a prompt without "
                "`chat`, or the tokenizer of an instruction-tuned model."
            )
        return render_chat(self._layout(self.shots if self.chat == "turns" else ()), template)

    def messages(self, text: str) -> tuple[PromptMessage, ...]:
        """The messages of a chat with the input in its slot, for servers that apply the template themselves."""
        layout = self._layout(self.shots if self.chat == "turns" else ())
        *earlier, last = layout.messages
        return (*earlier, PromptMessage(last.role, last.text[: layout.slot] + text + last.text[layout.slot :]))

    def _layout(self, turns: tuple[tuple[str, str], ...]) -> MessageLayout:
        """The messages: the system's, two for each shot of `turns`, and the last with everything else."""
        messages: list[PromptMessage] = []
        parts: list[tuple[MessageCharacter, MessageCharacter]] = []
        if self.system is not None:
            parts += _places(0, sentence_spans(self.system))
            messages.append(PromptMessage("system", self.system))
        blocks, spans = self._opening()
        if not turns and self.shots:
            for text, label in self.shots:
                blocks.append(fill(self.shot, text, self.labels[label]))
                start = sum(len(block) + len(self.separator) for block in blocks[:-1])
                spans.append((start, start + len(blocks[-1])))
        for text, label in turns:
            parts += _places(len(messages), spans)
            question = fill(self.query, text, "")
            content = self.separator.join([*blocks, question])
            # The template itself sets the space in front of an answer.
            answer = self.labels[label].strip()
            parts.append(((len(messages), len(content) - len(question)), (len(messages) + 1, len(answer))))
            messages += [PromptMessage("user", content), PromptMessage("assistant", answer)]
            blocks, spans = [], []
        parts += _places(len(messages), spans)
        head, _, cue = self.query.partition(_SLOT)
        before = self.separator.join([*blocks, head])
        messages.append(PromptMessage("user", before + cue))
        return MessageLayout(tuple(messages), len(before), tuple(parts))

    def _opening(self) -> tuple[list[str], list[CharacterSpan]]:
        return ([self.task], list(sentence_spans(self.task))) if self.task else ([], [])


def _places(message: int, spans: list[CharacterSpan]) -> list[tuple[MessageCharacter, MessageCharacter]]:
    return [((message, start), (message, end)) for start, end in spans]
