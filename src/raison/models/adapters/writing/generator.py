"""A language model whose generated text is explained."""

from collections.abc import Sequence
from copy import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, TextTooLongError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText
from raison.core.results.generation import OTHER
from raison.models.adapters.checks.output_layers import checked_output_layer
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.next_tokens import next_tokens
from raison.models.adapters.writing.writer import EMPTY, ENDED, Writer, check_new_tokens, in_place_of
from raison.models.gradients.shared_gradients import SharedGradients
from raison.models.gradients.word_embeddings import TableEmbeddings
from raison.models.passes.outputs.heads import ClassHead
from raison.models.passes.outputs.output_layer import FoundHead
from raison.models.passes.outputs.readout import TokenReadout
from raison.models.stack.eval_mode import evaluating, quiet
from raison.models.stack.transformer import inner_model
from raison.models.tokens.chats import chat_prompt, rendered_prompt
from raison.models.tokens.continuation import (
    ContinuationEncoder,
    Output,
    TokenizedPrompt,
    ids_with,
    spell,
)
from raison.models.tokens.max_tokens import DECODER, ENCODER, max_tokens
from raison.models.tokens.own_tokenizer import own_tokenizer
from raison.models.tokens.spelling import SEPARATE
from raison.progress import Advance, steps_of
from raison.text.segment import CharacterSpan
from raison.text.surrogates import without_surrogates

ANCHOR = "\n"
"""What a text is tokenized behind, so that it does not begin a text."""


class _ProgressCriteria(StoppingCriteria):
    """Stops nothing by itself: it reports each token, and the receiver may end the generation there by an exception."""

    def __init__(self, advance: Advance) -> None:
        self._told = advance

    def __call__(self, input_ids: Tensor, scores: object, **_: object) -> Tensor:
        self._told(1)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _with_settings(core: PreTrainedModel, settings: GenerationConfig) -> PreTrainedModel:
    """The same model, weights and hooks, which generates by these settings alone.

    A model fills in from its own settings what a call leaves out: words that it must not write, a shortest length.
    With them, an output would not be the most likely token at each step, which alone is a prediction.
    """
    alone = copy(core)
    alone.generation_config = settings
    return alone


class Generator(Writer):
    """A language model and its tokenizer. Both are the caller's own objects and are not changed.

    It is not a classifier. `reader` makes one whose classes are tokens and which predicts each token of one output.
    """

    def __init__(self, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.core = inner_model(model)
        self.max_tokens = max_tokens(self.core.config, tokenizer.model_max_length, ENCODER)
        self._most_written = max_tokens(self.core.config, tokenizer.model_max_length, DECODER)
        """Maximum number of tokens of a decoder beside an encoder, with the token that it starts from."""
        self._tokenizer = own_tokenizer(tokenizer)
        self._next = next_tokens(self.core, model, tokenizer, name)
        self._found: FoundHead | None = None
        """What gives logits from hidden states, once it is known."""

    @property
    def chats(self) -> bool:
        return bool(self.tokenizer.chat_template)

    def prompt(self, prompt: str | PartedText | Chat, untrusted: Sequence[CharacterSpan] = ()) -> TokenizedPrompt:
        """The prompt's tokens; a chat uses the tokenizer's template. Raises InputError."""
        if not isinstance(prompt, Chat):
            return self._next.prompt(prompt, untrusted)
        if self.core.config.is_encoder_decoder:
            raise InputError(f"{self.name} is an encoder-decoder, which reads texts, not chats: pass a string.")
        return chat_prompt(self._tokenizer, prompt)

    def prompts_again(self, text: str, untrusted: Sequence[CharacterSpan] = ()) -> list[TokenizedPrompt]:
        plain = self.prompt(text, untrusted)
        if self.core.config.is_encoder_decoder or self.tokenizer.chat_template is None:
            return [plain]
        return [plain, rendered_prompt(self._tokenizer, text, untrusted)]

    def continuation(self, prompt: TokenizedPrompt, new_tokens: int) -> Output:
        """The model's own output: the likeliest token at each step, up to the end-of-text token."""
        check_new_tokens(new_tokens)
        self._check_room(prompt, new_tokens)
        # Output generated from non-finite logits is meaningless.
        self._output_layer(prompt)
        settings = self.core.generation_config
        ends = settings.eos_token_id if settings.eos_token_id is not None else self.tokenizer.eos_token_id
        stops = {ends} if isinstance(ends, int) else set(ends or ())
        start = self._next.start(prompt)
        greedy = GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=new_tokens,
            bos_token_id=settings.bos_token_id,
            eos_token_id=ends,
            pad_token_id=settings.pad_token_id if settings.pad_token_id is not None else min(stops, default=0),
            decoder_start_token_id=settings.decoder_start_token_id,
        )
        with torch.no_grad(), evaluating(self.model), quiet(), steps_of("writing", new_tokens) as advance:
            written = _with_settings(self.core, greedy).generate(  # type: ignore[operator]
                **start,
                generation_config=greedy,
                stopping_criteria=StoppingCriteriaList([_ProgressCriteria(advance)]),
            )
        ids = written[0, start[[*start][-1]].shape[1] :].tolist()
        length = next((place for place, token in enumerate(ids) if token in stops), len(ids))
        if length == 0:
            raise InputError(ENDED)
        return spell(self._tokenizer, prompt, ids[:length])

    def output(self, prompt: TokenizedPrompt, text: str) -> tuple[Output, str | None]:
        """The tokens of a given output after the prompt, and a warning if the boundary is ambiguous."""
        if not text:
            raise InputError(EMPTY)
        ids, merged = self._following(prompt, "", (), text)
        if not ids:
            raise InputError(f"the output {text!r:.40} has no token of this model's: there is nothing to explain.")
        self._check_room(prompt, len(ids))
        output = spell(self._tokenizer, prompt, ids)
        if merged:
            return output, SEPARATE
        if prompt.border is None and prompt.text[-1:].isalnum() and text[:1].isalnum():
            return output, "the output continues the prompt's last word: begin it with a space if that is not intended"
        return output, None

    def written(self, prompt: TokenizedPrompt, ids: Sequence[int]) -> Output:
        """An output whose tokens are known. Raises TextTooLongError."""
        self._check_room(prompt, len(ids))
        return spell(self._tokenizer, prompt, ids)

    def token_after(self, prompt: TokenizedPrompt, output: Output, number: int, word: str | int) -> int:
        """The first token of a word that would replace output token `number`; an id is returned unchanged.

        A word takes over the output token's leading space (`in_place_of`). Raises InputError for the output token
        itself and for an id outside of the vocabulary.
        """
        written = output.ids[number]
        joined = prompt.text + output.text
        if isinstance(word, str):
            wanted = in_place_of(word, output.token_text(number, joined))
            before = joined[len(prompt.text) : output.spans[number][0]]
            token = self._following(prompt, before, output.ids[:number], wanted)[0][0]
        else:
            token = word
            size = self.core.get_output_embeddings().weight.shape[0]
            if not 0 <= token < size:
                raise InputError(f"token {token} does not exist: the vocabulary has {size} tokens, 0 to {size - 1}.")
        if token == written:
            raise InputError(
                f"the contrast {word!r} begins with the output token {number} itself "
                f"({self.tokenizer.decode([written])!r}): name a word that begins differently."
            )
        return token

    def runners_up(self, prompt: TokenizedPrompt, output: Output) -> tuple[int, ...]:
        """For each output token, the likeliest other token in its place. One pass."""
        logits = self._logits(prompt, output.ids[:-1])
        ids = torch.tensor(output.ids)[:, None]
        return tuple(logits.scatter(1, ids, -torch.inf).argmax(-1).tolist())

    def reader(self, rows: ContinuationEncoder, tokens: Sequence[int]) -> Classifier:
        """A classifier with one row per output token. Its classes are the given tokens, and one for all others.

        Raises UnsupportedError if the model's output layer is not known.
        """
        readout = TokenReadout(((),), self._output_layer(rows.prompt), tuple(tokens))
        classes = (*self._names(rows.prompt, tokens), OTHER)
        use = self._next.use(rows, ClassHead(classes, multi_label=False), readout)
        classifier = Classifier(self.model, self.tokenizer, self.name, use)
        if not classifier.offers(WordEmbeddings):
            return classifier
        # Each row is a prefix of the next.
        shared = SharedGradients(classifier.passes, readout)
        return classifier.offering(TableEmbeddings(classifier.passes, classifier.removing, shared))

    def _names(self, prompt: TokenizedPrompt, tokens: Sequence[int]) -> tuple[str, ...]:
        """Tokens as text; those that look the same are distinguished by their ids."""
        texts = [spell(self._tokenizer, prompt, [token]).text for token in tokens]
        return tuple(
            text if texts.count(text) == 1 else f"{text} ({token})" for text, token in zip(texts, tokens, strict=True)
        )

    def _following(self, prompt: TokenizedPrompt, before: str, ids: Sequence[int], text: str) -> tuple[list[int], bool]:
        """The tokens of a text that follows the prompt and the output `before`, which has these ids.

        Also returns whether they had to be tokenized separately.
        Both are tokenized together, as the model would see them, unless that loses the boundary.
        """
        known = [*prompt.continued[prompt.added :], *ids]
        together = ids_with(self._tokenizer, prompt, before + text)
        if together[: len(known)] == known and len(together) > len(known):
            return together[len(known) :], False
        return self._ids_apart(text), True

    def _ids_apart(self, text: str) -> list[int]:
        """The tokens of a text by itself, without the space that some tokenizers put before any text."""
        if text.startswith(ANCHOR):
            return self._plain_ids(text)
        anchor, anchored = self._plain_ids(ANCHOR), self._plain_ids(ANCHOR + text)
        behind = anchored[: len(anchor)] == anchor and len(anchored) > len(anchor)
        return anchored[len(anchor) :] if behind else self._plain_ids(text)

    def _plain_ids(self, text: str) -> list[int]:
        return self._tokenizer(without_surrogates(text), add_special_tokens=False, verbose=False)["input_ids"]

    def _logits(self, prompt: TokenizedPrompt, written: Sequence[int]) -> Float[Tensor, "reads vocabulary"]:
        """Logits after a prompt and after each token that follows it, through the output layer alone."""
        with torch.no_grad(), evaluating(self.model), quiet():
            table = torch.tensor([[*prompt.ids, *written]], device=self.core.device)
            hidden = self._next.states(table, prompt.border)[0, len(prompt.ids) - 1 :]
            logits: Tensor = self._output_layer(prompt).module(hidden)
        return logits.float().cpu()

    def _check_room(self, prompt: TokenizedPrompt, new_tokens: int) -> None:
        border = prompt.border
        # Nothing follows the last token, so that it is not read.
        stacks = [(len(prompt.ids) + new_tokens - 1, self.max_tokens)]
        if border is not None:
            stacks = [(border, self.max_tokens), (len(prompt.ids) - border + new_tokens - 1, self._most_written)]
        if all(most is None or length <= most for length, most in stacks):
            return
        reads = f"at most {self.max_tokens}" + ("" if border is None else " of each")
        if border is not None and self.max_tokens != self._most_written:
            reads = f"at most {self.max_tokens} of the one and {self._most_written} of the other"
        raise TextTooLongError(
            f"the prompt has {border or len(prompt.ids)} tokens and the output {new_tokens}, and {self.name} reads "
            f"{reads}: shorten one of them."
        )

    def _output_layer(self, prompt: TokenizedPrompt) -> FoundHead:
        """What gives the model's logits from hidden states, found and checked on the first prompt.

        Raises UnsupportedError, and NonFiniteError for logits that are not finite.
        """
        if self._found is not None:
            return self._found
        # A few tokens of a sequence suffice; two stacks need a whole text and the decoder's start.
        ids = prompt.ids[:8] if prompt.border is None else prompt.ids

        def read(part: Sequence[int]) -> tuple[Tensor, Tensor]:
            table = torch.tensor([list(part)], device=self.core.device)
            return self._next.states(table, prompt.border)[0], self._next.logits(table, prompt.border)[0]

        with evaluating(self.model), quiet():
            found = checked_output_layer(self.core, self.name, read, ids, one_stack=prompt.border is None)
        self._found = found
        return found
