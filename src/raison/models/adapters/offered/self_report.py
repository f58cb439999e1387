"""Ask the language model behind a classifier a question in words."""

from dataclasses import dataclass

from raison.core.errors import InputError, TextTooLongError, UnsupportedError
from raison.core.inputs.chat import Chat
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.models.passes.outputs.readout import WordReadout


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's answer, the number of passes, and whether the limit cut it off."""

    text: str
    passes: int
    cut: bool


def writer_of(model: LanguageModel, method: str) -> Generator:
    """The model as a generator. Raises UnsupportedError for a classifier that is no language model."""
    if not isinstance(model, Classifier) or not isinstance(model.readout, WordReadout):
        raise UnsupportedError(
            f"{method} does not work on {model.name}",
            ["it cannot answer questions: it is not a causal language model with a classification prompt"],
            "Load an instruction-tuned language model with a prompt (load(name, prompt='sentiment'), --prompt), or use "
            "kernel_shap.",
        )
    return Generator(model.model, model.tokenizer, model.name)


def ask(writer: Generator, question: str, new_tokens: int) -> Reply:
    """The greedy answer of at most `new_tokens` tokens, as one chat turn if the tokenizer has a chat template.

    Fewer tokens if the model has less room. Raises TextTooLongError if there is no room at all.
    """
    chat = writer.tokenizer.chat_template is not None
    # Without a template the answer begins on a new line.
    prompt = writer.prompt(Chat(({"role": "user", "content": question},)) if chat else f"{question}\n\nAnswer:\n")
    room = new_tokens if writer.max_tokens is None else min(new_tokens, max(1, writer.max_tokens - len(prompt.ids) + 1))
    try:
        output = writer.continuation(prompt, room)
    except TextTooLongError:
        raise
    except InputError:
        # The model ended the text at once.
        return Reply("", 1, False)
    cut = len(output.ids) == room
    # An answer that was not cut off took one more pass, which found its end.
    return Reply(output.text, len(output.ids) + (not cut), cut)
