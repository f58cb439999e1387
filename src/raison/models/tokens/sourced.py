"""A prompt whose sources are made of removable pieces: which piece belongs to which source and sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.errors import InputError
from raison.core.inputs.unit import Unit
from raison.models.tokens.continuation import TokenizedPrompt
from raison.text.segment import CharacterSpan, merged, sentence_spans, trim
from raison.text.sourced import SourcePlace


@dataclass(frozen=True, slots=True)
class Sourced:
    """A prompt with sources. Its parts are the smallest pieces that can be removed: tokens of the sources.

    `sources` and `sentences` are spans in the prompt, named by the source's id. `of_source` and `of_sentence` have the
    source and the sentence of each piece; a source's label is in no sentence (-1).
    """

    prompt: TokenizedPrompt
    sources: tuple[Unit, ...]
    sentences: tuple[Unit, ...]
    of_source: tuple[int, ...]
    of_sentence: tuple[int, ...]
    blocks: tuple[CharacterSpan, ...] = ()
    """The characters that belong to each source: its text and its label."""

    @property
    def homes(self) -> tuple[int, ...]:
        """The source of each sentence."""
        ids = [source.name for source in self.sources]
        return tuple(ids.index(sentence.name) for sentence in self.sentences)


def sourced(prompt: TokenizedPrompt, places: Sequence[SourcePlace]) -> Sourced:
    """The prompt with the sources at these places, in their order. Raises InputError for a source without a token.

    A token at the border of two sources belongs to the first; one at the border of a source belongs to it.
    """
    blocks = _blocks(prompt)
    parts: list[Unit] = []
    sentences: list[Unit] = []
    of_source: list[int] = []
    of_sentence: list[int] = []
    taken = 0
    for number, place in enumerate(places):
        spans = [(a + place.first, b + place.first) for a, b in sentence_spans(prompt.text[place.first : place.last])]
        source_blocks = [
            block for block in blocks if block[0] < place.end and block[1] > place.start and block[0] >= taken
        ]
        first = len(sentences)
        numbers = [_sentence_of(block, spans, place) for block in source_blocks]
        held = sorted(set(numbers) - {-1})
        if not held:
            raise InputError(f"the source '{place.id}' has no token of its own: leave it out.")
        sentences += [_unit(prompt, *spans[sentence], place.id) for sentence in held]
        parts += [_unit(prompt, max(a, place.start), min(b, place.end), place.id) for a, b in source_blocks]
        of_source += [number] * len(source_blocks)
        of_sentence += [-1 if one < 0 else first + held.index(one) for one in numbers]
        taken = max(taken, source_blocks[-1][1])
    return Sourced(
        replace(prompt, parts=tuple(parts)),
        tuple(_unit(prompt, place.first, place.last, place.id) for place in places),
        tuple(sentences),
        tuple(of_source),
        tuple(of_sentence),
        tuple((place.start, place.end) for place in places),
    )


def _blocks(prompt: TokenizedPrompt) -> list[CharacterSpan]:
    """The characters of each token; tokens that share characters are one."""
    cores = [trim(prompt.text, *span) for span in prompt.offsets[prompt.added :]]
    return merged([core for core in cores if core[0] < core[1]])


def _sentence_of(block: CharacterSpan, spans: Sequence[CharacterSpan], place: SourcePlace) -> int:
    """The sentence that contains the block's first character in the source's text; -1 for the label."""
    start = max(block[0], place.first)
    if not place.first <= start < min(block[1], place.last):
        return -1
    return max((number for number, span in enumerate(spans) if span[0] <= start), default=0)


def _unit(prompt: TokenizedPrompt, start: int, end: int, name: str) -> Unit:
    return Unit(start, end, prompt.text[start:end], 0, name)
