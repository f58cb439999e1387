"""Masked language models: the probability of a word at a mask."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, LoadError
from raison.core.inputs.encoding import Encoding, PlaceReading
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import Granularity
from raison.core.targets.choices import TargetSpec, for_each_text, is_whole_number
from raison.core.targets.choosing import Choosing, PlaceTarget, Settled
from raison.core.targets.place import Place
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.place_heads import WordHead
from raison.models.stack.transformer import inner_model, is_a
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.own_tokenizer import own_tokenizer

CLASSES = ("word", "second word", "other words")


def is_filling(core: PreTrainedModel) -> bool:
    """Whether a model predicts masked words."""
    return is_a(core, "ForMaskedLM")


def filling(model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str) -> Classifier:
    """The adapter of a masked language model. Raises LoadError for a tokenizer without a mask token."""
    if tokenizer.mask_token_id is None:
        raise LoadError(
            f"the tokenizer of '{name}' has no mask token for the model to fill in: use a masked language model."
        )
    core = inner_model(model)
    encoder = MaskEncoder(tokenizer, max_tokens(core.config, tokenizer.model_max_length))
    use = TaskSetup(
        encoder,
        WordHead(CLASSES, False, core.get_output_embeddings()),
        probe=lambda text: f"{tokenizer.mask_token} {text}",
        choosing=lambda passes: Filling(passes, tokenizer),
        kept=frozenset({str(tokenizer.mask_token)}),
    )
    return Classifier(model, tokenizer, name, use)


class MaskEncoder:
    """Tokenizes texts with at least one mask, which belongs to no unit: it is never removed and never scored."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, longest: int | None) -> None:
        self._mask, self._id = str(tokenizer.mask_token), int(tokenizer.mask_token_id or 0)
        self._inner = TextEncoder(tokenizer, longest, kept=self._id)

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode. Raises InputError for a pair, and a text without a mask or with nothing else."""
        for text in texts:
            if isinstance(plain(text), tuple):
                raise InputError("a masked language model needs a single text, and this is a pair: give one string.")
            if self._mask not in str(plain(text)):
                raise InputError(
                    f"{str(plain(text))!r:.60} has no {self._mask}: put {self._mask} where the model is to predict a "
                    "word."
                )
        encoding = self._inner.encode(texts, unit, truncate)
        masks = encoding.input_ids == self._id
        unit_ids, units = encoding.unit_ids.masked_fill(masks, -1), []
        for row, row_units in enumerate(encoding.units):
            if not masks[row].any():
                raise InputError(f"the {self._mask} of {str(encoding.texts[row])!r:.60} was cut off: shorten the text.")
            # White space before it may have a token of its own.
            for number in {int(number) for number in encoding.unit_ids[row][masks[row]] if number >= 0}:
                if row_units[number].text.strip() == self._mask:
                    unit_ids[row][encoding.unit_ids[row] == number] = -1
            left = sorted({number for number in unit_ids[row].tolist() if number >= 0})
            if not left:
                raise InputError(
                    f"{str(encoding.texts[row])!r:.60} consists of nothing but {self._mask}: add text around it."
                )
            # The appended number is for tokens of no unit (-1).
            renumbered = torch.full((len(row_units) + 1,), -1)
            renumbered[left] = torch.arange(len(left))
            unit_ids[row] = renumbered[unit_ids[row]]
            units.append(tuple(row_units[number] for number in left))
        return replace(encoding, units=tuple(units), unit_ids=unit_ids)


@dataclass(frozen=True, slots=True)
class _FilledMask:
    """A mask of a text: its token, its characters, and the words of the vocabulary from the likeliest down."""

    token: int
    start: int
    end: int
    ranked: tuple[int, int]
    """The two most likely words."""
    share: float
    """The probability of the most likely word."""


class Filling(Choosing):
    """Words at masks. What is explained is softmax(z)[word] over the vocabulary, with the logits z at the mask.

    The other classes are the word that it is contrasted with, or the likeliest other word, and all other words
    together.
    """

    targets = ("a word", "(this, not that)", "(mask number, word)")

    def __init__(self, passes: ForwardPasses, tokenizer: PreTrainedTokenizerBase) -> None:
        self._passes = passes
        self._tokenizer = tokenizer
        self._own = own_tokenizer(tokenizer)

    def read(self, encoding: Encoding) -> Encoding:
        return self.settled(encoding, None).encoding

    def each(self, encoding: Encoding, threshold: float) -> list[list[PlaceTarget]]:
        masks = self._masks(encoding)
        return [
            [(mask.start, mask.end, mask.ranked[0]) for mask in text_masks if mask.share >= threshold]
            for text_masks in masks
        ]

    def settled(self, encoding: Encoding, spec: TargetSpec) -> Settled:
        specs = for_each_text(spec, len(encoding))
        spans, choices, places, classes, pairs = [], [], [], [], []
        for text, (masks, one) in enumerate(zip(self._masks(encoding), specs, strict=True)):
            mask, what = self._mask_of(masks, one, str(encoding.texts[text]))
            string = str(encoding.texts[text])
            pair = what if isinstance(what, tuple) else (what,)
            word, *others = (mask.ranked[0] if one is None else self._word(one, string, mask) for one in pair)
            likeliest = next(other for other in mask.ranked if other != word)
            other = others[0] if others else likeliest
            if other == word:
                why = "the model predicts it" if None in pair else "name two different ones"
                raise InputError(f"both targets are the word '{self._spelled(word)}'; {why}.")
            spans.append([mask.token])
            choices.append([[word, other]])
            pairs.append(bool(others))
            classes.append((*self._names(word, other), CLASSES[2]))
            predicted = self._spelled(mask.ranked[0])
            shown = str(self._tokenizer.mask_token)
            tokens = (word, *others)
            places.append(Place("mask", mask.start, mask.end, shown, predicted, tokens=tokens))
        if any(pairs) and not all(pairs):
            raise InputError(
                "only some texts have pairs of words: give pairs of words (this, not that) for all texts or for none."
            )
        reading = PlaceReading(torch.ones(len(spans), 1, dtype=torch.float64), torch.tensor(choices))
        read = replace(encoding, spans=torch.tensor(spans), reading=reading)
        against = [1] * len(spans) if pairs[0] else None
        # The last class is many words together, which no word can be compared with.
        return Settled(read, [0] * len(spans), against, tuple(places), tuple(classes), runner_up=1)

    def _mask_of(self, masks: list[_FilledMask], spec: Any, whole: str) -> tuple[_FilledMask, Any]:
        """The mask that a target names, and the word there (None: the likeliest). Without a number, the first mask."""
        where, what = _parted(spec)
        if not where:
            return masks[0], what
        if len(where) == 2:
            matching = [mask for mask in masks if mask.start < where[1] and mask.end > where[0]]
        else:
            matching = masks[where[0] :][:1] if where[0] >= 0 else []
        if not matching:
            raise InputError(
                f"target {spec!r:.60} is not a mask: {whole!r:.60} has {len(masks)}, counted from 0. Give a word, or "
                "(mask number, word)."
            )
        return matching[0], what

    def _word(self, word: Any, string: str, mask: _FilledMask) -> int:
        """The token of a word: as it is written there, or an entry of the vocabulary; a number is the token itself."""
        if is_whole_number(word) and 0 <= int(word) < len(self._tokenizer):
            return int(word)
        if not isinstance(word, str) or not word.strip():
            raise InputError(f"target {word!r:.60} is not a word: give a word of the vocabulary, or its token id.")
        bare, spaced = word.strip(), f" {word.strip()}"
        before = string[mask.start - 1 : mask.start]
        glued = not before.isspace() and not string[mask.start].isspace()
        unknown = self._tokenizer.unk_token_id
        pieces: list[int] = []
        for written in (bare, spaced) if glued else (spaced, bare):
            ids = self._own(written, add_special_tokens=False, verbose=False)["input_ids"]
            if len(ids) == 1 and ids[0] != unknown:
                return int(ids[0])
            pieces = pieces or ids
        known = self._tokenizer.convert_tokens_to_ids(word)
        if isinstance(known, int) and known != unknown:
            return known
        spelled = ", ".join(map(str, self._tokenizer.convert_ids_to_tokens(pieces)))
        raise InputError(
            f"target {word!r:.60} is not one token ({spelled}), and a mask stands for exactly one: give a word that is "
            "one token."
        )

    def _spelled(self, token: int) -> str:
        return str(self._tokenizer.decode([token])).strip() or str(self._tokenizer.convert_ids_to_tokens(token))

    def _names(self, word: int, other: int) -> tuple[str, str]:
        first, second = self._spelled(word), self._spelled(other)
        return (first, second) if first != second else (first, str(self._tokenizer.convert_ids_to_tokens(other)))

    def _masks(self, encoding: Encoding) -> list[list[_FilledMask]]:
        """The masks of each text with their likeliest words: a pass per mask."""
        masked = (encoding.input_ids == self._tokenizer.mask_token_id) & (encoding.unit_ids < 0)
        cells = (masked & encoding.attention_mask).nonzero()
        read = replace(encoding.select(cells[:, 0].tolist()), spans=cells[:, 1:], reading=_anything(len(cells)))
        ranked: dict[int, tuple[Tensor, Tensor]] = {}

        def run(rows: list[int]) -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                shares, words = self._passes.decisions(read.select(rows))[:, 0].softmax(-1).topk(2)
            return shares.cpu(), words.cpu()

        for rows, (shares, words) in self._passes.in_batches(read, run):
            ranked.update((row, ranking) for row, *ranking in zip(rows, shares, words, strict=True))  # type: ignore[misc]
        masks: list[list[_FilledMask]] = [[] for _ in encoding.texts]
        for number, (text, token) in enumerate(cells.tolist()):
            start, end = encoding.offsets[text, token].tolist()
            share, words = ranked[number]
            likeliest, second = words.tolist()
            masks[text].append(_FilledMask(token, start, end, (likeliest, second), float(share[0])))
        return masks


def _parted(spec: Any) -> tuple[tuple[int, ...], Any]:
    """Which mask a target names, by its number or its characters (empty: the first), and what is explained there.

    Raises InputError for anything else than a word, a pair of words, and these after a mask's place.
    """
    if spec is None or isinstance(spec, str):
        return (), spec
    if is_whole_number(spec):
        return (int(spec),), None
    if isinstance(spec, tuple) and len(spec) in (2, 3):
        *where, what = spec
        if len(spec) == 2 and any(spec) and all(one is None or isinstance(one, str) for one in spec):
            return (), spec
        if all(map(is_whole_number, where)) and not (isinstance(what, tuple) and len(what) != 2):
            return tuple(map(int, where)), what
    raise InputError(
        f"target {spec!r:.60} is not a word at a mask: give a word, (this, not that), a mask's number, or (mask "
        "number, word)."
    )


def _anything(rows: int) -> PlaceReading:
    """A reading of which only the places matter."""
    return PlaceReading(torch.ones(rows, 1), torch.zeros(rows, 1, 1, dtype=torch.long))
