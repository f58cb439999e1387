"""Token classification: tags of tokens, grouped to entities as transformers' pipeline groups them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, LoadError, UnknownNameError
from raison.core.inputs.encoding import Encoding, PlaceReading
from raison.core.inputs.parts import Given, plain
from raison.core.inputs.unit import Granularity
from raison.core.targets.choices import Aggregation, TargetSpec, for_each_text, is_whole_number
from raison.core.targets.choosing import Choosing, PlaceTarget, Settled
from raison.core.targets.place import Place
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.place_heads import TagHead
from raison.models.passes.removal import replacement_ids
from raison.models.stack.transformer import inner_model, is_a
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.token_rows import THE_TEXT, name_of

OUTSIDE = "O"
"""The tag of tokens outside entities."""
REST = "other tags"


def is_tagging(core: PreTrainedModel) -> bool:
    """Whether a model gives each token a tag."""
    return is_a(core, "ForTokenClassification")


def tagging(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str, aggregation: Aggregation = "simple"
) -> Classifier:
    """The adapter of a model that tags tokens. Raises LoadError, and UnknownNameError for another aggregation."""
    if aggregation not in get_args(Aggregation):
        raise UnknownNameError("aggregation", aggregation, get_args(Aggregation))
    core = inner_model(model)
    if not replacement_ids(tokenizer):
        raise LoadError(
            f"the tokenizer of '{name}' has no mask, unknown or padding token. A tag belongs to a position in the "
            "text, so tokens must be replaced, not deleted: give the tokenizer one of these tokens."
        )
    labels: dict[int, str] = core.config.id2label  # type: ignore[assignment]
    tags = tuple(str(labels[number]) for number in range(len(labels)))
    names = tuple(dict.fromkeys(map(type_of, tags)))
    rest = len(names) < len(tags)
    head = TagHead((*names, REST) if rest else names, False, rest)
    encoder = SingleText(tokenizer, max_tokens(core.config, tokenizer.model_max_length))
    finder = Words(tokenizer, tags, aggregation)
    use = TaskSetup(encoder, head, choosing=lambda passes: Tagging(passes, finder, names))
    return Classifier(model, tokenizer, name, use)


class SingleText:
    """Tokenizes texts; pairs are refused."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, longest: int | None) -> None:
        self._inner = TextEncoder(tokenizer, longest)

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode. Raises InputError for a pair."""
        for text in texts:
            if isinstance(plain(text), tuple):
                raise InputError(
                    "a token classification model needs a single text, and this is a pair: give one string."
                )
        return self._inner.encode(texts, unit, truncate)


def type_of(tag: str) -> str:
    """The type that a tag such as "B-PER" gives an entity, as the pipeline names it."""
    return tag.split("-", 1)[-1]


@dataclass(frozen=True, slots=True)
class Word:
    """Tokens that have one tag together; its probability is the mean over `places`, which are not always all tokens."""

    start: int
    end: int
    places: tuple[int, ...]
    tag: int
    share: float


@dataclass(frozen=True, slots=True)
class Entity:
    """Neighbouring words of one type."""

    words: tuple[Word, ...]
    name: str

    @property
    def share(self) -> float:
        """The pipeline's score."""
        return sum(word.share for word in self.words) / len(self.words)


@dataclass(frozen=True, slots=True)
class _Explained:
    """Words of a text, the number of the tag that is explained there, and of the tag that it is compared with."""

    words: tuple[Word, ...]
    tag: int
    other: int | None = None


class Words:
    """Finds words and entities in the tags' probabilities, by transformers' rules (TokenClassificationPipeline)."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, tags: tuple[str, ...], aggregation: Aggregation) -> None:
        self.tags, self.aggregation = tags, aggregation
        self._tokenizer = tokenizer
        backend: Any = tokenizer.backend_tokenizer.model
        self._marked = bool(getattr(backend, "continuing_subword_prefix", None))

    def words(self, encoding: Encoding, text: int, shares: Float[Tensor, "tokens tags"]) -> list[Word]:
        """The words of a text in order, or its tokens where these are not joined to words."""
        groups: list[list[int]] = []
        special = set(self._tokenizer.all_special_ids) - {self._tokenizer.unk_token_id}
        for token in range(encoding.lengths[text]):
            if int(encoding.input_ids[text, token]) in special:
                continue
            joined = self.aggregation not in ("none", "simple") and self._continues(encoding, text, token)
            if joined and groups:
                groups[-1].append(token)
            else:
                groups.append([token])
        return [self._word(encoding.offsets[text], group, shares) for group in groups]

    def entities(self, words: Sequence[Word]) -> list[Entity]:
        """Words grouped by their types, without words outside entities."""
        groups: list[list[Word]] = []
        for word in words:
            begins, name = self._parsed(word.tag)
            joins = bool(groups) and not begins and name == self._parsed(groups[-1][-1].tag)[1]
            if joins and self.aggregation != "none":
                groups[-1].append(word)
            else:
                groups.append([word])
        entities = [Entity(tuple(group), type_of(self.tags[group[0].tag])) for group in groups]
        return [entity for entity in entities if self.tags[entity.words[0].tag] != OUTSIDE]

    def _parsed(self, number: int) -> tuple[bool, str]:
        tag = self.tags[number]
        return tag.startswith("B-"), tag[2:] if tag.startswith(("B-", "I-")) else tag

    def _continues(self, encoding: Encoding, text: int, token: int) -> bool:
        number = int(encoding.input_ids[text, token])
        if number == self._tokenizer.unk_token_id:
            return False
        start, end = encoding.offsets[text, token].tolist()
        whole = str(encoding.texts[text])
        if self._marked:
            return len(str(self._tokenizer.convert_ids_to_tokens(number))) != len(whole[start:end])
        return start > 0 and " " not in whole[start - 1 : start + 1]

    def _word(self, offsets: Tensor, group: list[int], shares: Float[Tensor, "tokens tags"]) -> Word:
        places = group
        if self.aggregation == "first":
            places = group[:1]
        elif self.aggregation == "max":
            places = [max(group, key=lambda token: float(shares[token].max()))]
        mean = shares[places].mean(0)
        tag = int(mean.argmax())
        return Word(int(offsets[group[0], 0]), int(offsets[group[-1], 1]), tuple(places), tag, float(mean[tag]))


class Tagging(Choosing):
    """Entities of texts. What is explained is the mean, over an entity's words, of the probability of the word's tag.

    A word's probability is the mean over its tokens that the aggregation reads. For another type than that predicted,
    each word's tag is that of this type with the same prefix (B- or I-), or its only one. These are the numbers that
    transformers' pipeline gives as an entity's score.
    """

    targets = ("a part of the text", "(start, end)", "(start, end, tag)", "(start, end, (this, not that))")
    sought = "entity"

    def __init__(self, passes: ForwardPasses, finder: Words, names: tuple[str, ...]) -> None:
        self._passes = passes
        self._finder = finder
        self._names = names

    def read(self, encoding: Encoding) -> Encoding:
        chosen = []
        for _, words in self._words(encoding):
            entities = self._finder.entities(words)
            chosen.append(max(entities, key=lambda entity: entity.share).words if entities else tuple(words[:1]))
        return self._reading(encoding, chosen)

    def each(self, encoding: Encoding, threshold: float) -> list[list[PlaceTarget]]:
        targets: list[dict[PlaceTarget, None]] = [{} for _ in encoding.texts]
        for text, words in self._words(encoding):
            for entity in self._finder.entities(words):
                start, end = _trimmed(str(encoding.texts[text]), entity.words)
                # An entity of white space alone is left out, and so is another one of the same characters and type:
                # a tokenizer may split a character.
                if entity.share >= threshold and start < end:
                    targets[text][start, end, entity.name] = None
        return [[*of_text] for of_text in targets]

    def settled(self, encoding: Encoding, spec: TargetSpec) -> Settled:
        specs = for_each_text(spec, len(encoding))
        chosen: list[tuple[Word, ...]] = []
        index: list[int] = []
        against: list[int | None] = []
        places = []
        for (text, words), one in zip(self._words(encoding), specs, strict=True):
            whole = str(encoding.texts[text])
            where = self._surest(encoding, text, words) if one is None else self._asked(encoding, text, words, one)
            chosen.append(where.words)
            index.append(where.tag)
            against.append(where.other)
            predicted = self._likeliest(where.words)
            start, end = _trimmed(whole, where.words)
            places.append(Place("entity", start, end, whole[start:end], predicted))
        contrasted = [number for number in against if number is not None]
        if contrasted and len(contrasted) < len(against):
            raise InputError(
                "only some texts have pairs of tags: give pairs of tags (this, not that) for all texts or for none."
            )
        classes = (*self._names, REST) if len(self._names) < len(self._finder.tags) else self._names
        read = self._reading(encoding, chosen)
        return Settled(read, index, contrasted or None, tuple(places), (classes,) * len(encoding))

    def _surest(self, encoding: Encoding, text: int, words: list[Word]) -> _Explained:
        """A text's entity with the highest probability, as its type."""
        entities = self._finder.entities(words)
        if not entities:
            name, out = name_of(text, len(encoding)), "name a span, target=(start, end)"
            if name != THE_TEXT:
                out = "use target='each', which gives such a text an empty list, or leave the text out"
            raise InputError(f"the model finds no entity in {name}, {str(encoding.texts[text])!r:.60}: {out}.")
        surest = max(entities, key=lambda entity: entity.share)
        return _Explained(surest.words, self._number(surest.name))

    def _asked(self, encoding: Encoding, text: int, words: list[Word], spec: Any) -> _Explained:
        """What a target names. Errors have the text's number."""
        try:
            where, what = self._place(str(encoding.texts[text]), words, spec)
            pair = what if isinstance(what, tuple) else (what,)
            tag, *others = (self._number(self._likeliest(where) if one is None else one) for one in pair)
            other = others[0] if others else None
            if tag == other:
                raise InputError(f"both tags are {self._names[tag]}: name two different ones.")
        except InputError as error:
            name = name_of(text, len(encoding))
            if name == THE_TEXT:
                raise
            raise InputError(f"{name}: {error}") from None
        return _Explained(where, tag, other)

    def _place(self, whole: str, words: list[Word], spec: Any) -> tuple[tuple[Word, ...], Any]:
        """The words that a target names, and what is explained there (None: what is predicted there)."""
        if isinstance(spec, str):
            start = whole.find(spec) if spec.strip() else -1
            if start < 0:
                raise InputError(
                    f"target {spec!r:.60} is not part of {whole!r:.60}: name a part of the text, a span "
                    "(start, end), or a span and its tag (start, end, 'PER')."
                )
            spec = (start, start + len(spec))
        if not (isinstance(spec, tuple) and len(spec) in (2, 3) and all(map(is_whole_number, spec[:2]))):
            raise InputError(
                f"target {spec!r:.60} is not an entity: give (start, end) in characters, or (start, end, tag)."
            )
        start, end = map(int, spec[:2])
        if not 0 <= start < end <= len(whole):
            raise InputError(
                f"target {spec!r:.60} is not a span of {whole!r:.60}, which has {len(whole)} characters: give (start, "
                "end) within it."
            )
        what = spec[2] if len(spec) == 3 else None
        there = [entity for entity in self._finder.entities(words) if _trimmed(whole, entity.words) == (start, end)]
        if there:
            # As it was found, including tokens without characters; where a character is split, there may be several.
            name = what[0] if isinstance(what, tuple) else what
            named = [entity for entity in there if isinstance(name, str) and entity.name == type_of(name)]
            return max(named or there, key=lambda entity: entity.share).words, what
        covered = tuple(word for word in words if word.start < end and word.end > start)
        if not covered:
            raise InputError(f"no token that the model reads lies in characters {start} to {end} of {whole!r:.60}.")
        return covered, what

    def _likeliest(self, words: Sequence[Word]) -> str:
        votes = dict.fromkeys(self._names, 0.0)
        for word in words:
            votes[type_of(self._finder.tags[word.tag])] += word.share
        return max(votes, key=votes.__getitem__)

    def _number(self, name: object) -> int:
        tags = self._finder.tags
        if isinstance(name, str) and name in tags:
            name = type_of(name)
        if name not in self._names:
            raise UnknownNameError("tag", str(name), self._names)
        return self._names.index(str(name))

    def _words(self, encoding: Encoding) -> Iterator[tuple[int, list[Word]]]:
        """The words of each text: a pass per different text."""
        bare = replace(encoding, spans=None, reading=None)
        first = [encoding.texts.index(text) for text in encoding.texts]
        probabilities: dict[int, Tensor] = {}

        def run(rows: list[int]) -> Tensor:
            with torch.no_grad():
                return self._passes.decisions(once.select(rows)).double().softmax(-1).cpu()

        distinct = sorted(set(first))
        once = bare.select(distinct)
        for rows, shares in self._passes.in_batches(once, run):
            probabilities.update((distinct[row], row_shares) for row, row_shares in zip(rows, shares, strict=True))
        words = {text: self._finder.words(encoding, text, probabilities[text]) for text in distinct}
        for text, same in enumerate(first):
            yield text, words[same]

    def _reading(self, encoding: Encoding, chosen: Sequence[Sequence[Word]]) -> Encoding:
        width = max(sum(len(word.places) for word in words) for words in chosen)
        spans = torch.zeros(len(chosen), width, dtype=torch.long)
        weights = torch.zeros(len(chosen), width, dtype=torch.float64)
        choices: Int[Tensor, "batch places classes"] = torch.zeros(
            len(chosen), width, len(self._names), dtype=torch.long
        )
        for row, words in enumerate(chosen):
            cells = [(place, word) for word in words for place in word.places]
            for cell, (place, word) in enumerate(cells):
                spans[row, cell] = place
                weights[row, cell] = 1 / (len(words) * len(word.places))
                choices[row, cell] = torch.tensor(self._choices(word.tag, first=word is words[0]))
            # Places beyond a text's own read the first again, with weight zero.
            spans[row, len(cells) :], choices[row, len(cells) :] = spans[row, 0], choices[row, 0]
        return replace(encoding, spans=spans, reading=PlaceReading(weights, choices))

    def _choices(self, number: int, first: bool) -> list[int]:
        """The tag that stands for each type where a word has this tag: with the same prefix, if there is one."""
        tags, tag_name = self._finder.tags, self._finder.tags[number]
        prefix = tag_name.removesuffix(type_of(tag_name)) if tag_name != OUTSIDE else "B-" if first else "I-"
        numbers = {tag: place for place, tag in enumerate(tags)}
        of_type = {name: next(place for place, tag in enumerate(tags) if type_of(tag) == name) for name in self._names}
        return [numbers.get(prefix + name, of_type[name]) for name in self._names]


def _trimmed(text: str, words: Sequence[Word]) -> tuple[int, int]:
    """The characters of words without white space around them."""
    start, end = words[0].start, words[-1].end
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())
