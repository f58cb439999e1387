"""Models with closed-form answers, over a toy vocabulary with multi-token words.

A text is split at white space into words, and a word into pieces of up to four letters or one sign. Every piece has
an embedding of two features, `VOCABULARY`; a toy's logits are (-g, g) with g a function of the embeddings.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.embeddings import Path, Shift, WordEmbeddings
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Granularity, Text, Unit
from raison.core.internals.attention import AttentionPath, AttentionSite, AttentionSlopes
from raison.core.model import LanguageModel
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.targets.target import Of, Target
from raison.models.gradients.embedding_shift import ball_vector
from tests.toy_capabilities import OFFERED, ToyCapability, ToyTap

VOCABULARY = {
    "[PAD]": (9.0, 9.0),
    "[CLS]": (0.3, -0.2),
    "[SEP]": (-0.1, 0.4),
    "[MASK]": (0.0, 0.3),
    "[UNK]": (0.0, -0.6),
    "good": (1.0, 0.2),
    "bad": (-1.2, 0.1),
    "not": (-0.5, 0.8),
    "film": (0.2, -0.3),
    "fine": (0.6, 0.5),
    "terr": (-0.7, 0.4),
    "ible": (-0.9, -0.1),
    "wond": (0.8, 0.6),
    "erfu": (0.4, -0.7),
    "l": (0.1, 0.9),
    "um": (0.0, 0.7),
    ".": (0.05, -0.4),
}
"""Piece -> embedding. "um" and "[MASK]" share the feature that `Ignored` reads, and it is zero."""
IDS = {piece: number for number, piece in enumerate(VOCABULARY)}
PAD, CLS, SEP, MASK, UNK = range(5)
PATTERNS = {"token": r"\w{1,4}|[^\w\s]", "word": r"\S+", "sentence": r"[^\s.][^.]*\.?"}

TEXTS = ("good film", "not a terrible film . good", "um wonderful film not bad", "bad")
"""Texts of different lengths, with words of several tokens, an unknown piece and words against the positive class."""


class ToyModel(LanguageModel):
    """A classifier with logits (-g, g); a subclass gives g, and says what it offers (`kinds`)."""

    classes = ("negative", "positive")
    multi_label = False
    kinds: tuple[type[ToyCapability], ...] = ()
    removals = ("mask", "delete", "pad")
    max_tokens = 64

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        self.name = f"toy/{type(self).__name__.lower()}"
        self.table = self._plain = torch.tensor(list(VOCABULARY.values()), dtype=dtype)
        self._taps: list[ToyTap] = []
        self.capabilities = tuple(kind(self) for kind in self.kinds or OFFERED)

    @abstractmethod
    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        """g of each text from (batch, tokens, 2); `own` is false on padding."""

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool = False) -> Encoding:
        rows = [_encode(text, unit) for text in texts]
        width = max(len(ids) for ids, _, _, _ in rows)
        ids = torch.full((len(rows), width), PAD)
        offsets = torch.zeros(len(rows), width, 2, dtype=torch.long)
        unit_ids = torch.full((len(rows), width), -1)
        mask = torch.zeros(len(rows), width, dtype=torch.bool)
        for row, (pieces, spans, owners, _) in enumerate(rows):
            ids[row, : len(pieces)] = torch.tensor(pieces)
            offsets[row, : len(pieces)] = torch.tensor(spans)
            unit_ids[row, : len(pieces)] = torch.tensor(owners)
            mask[row, : len(pieces)] = True
        units = tuple(found for _, _, _, found in rows)
        return Encoding(
            tuple(texts), unit, units, ids, mask, torch.zeros_like(ids), offsets, unit_ids, (0,) * len(rows)
        )

    @property
    def embedding_table(self) -> nn.Module:
        """The vocabulary, for methods that look for words in it."""
        return nn.Embedding.from_pretrained(self.table)

    def embed(self, encoding: Encoding) -> Tensor:
        return self.table[encoding.input_ids]

    def logits(self, encoding: Encoding, embeds: Tensor | None = None) -> Tensor:
        embeds = self.embed(encoding) if embeds is None else embeds
        for tap in self._taps:
            tap.probabilities = {layer: _attention(embeds, encoding.attention_mask, layer) for layer in range(2)}
        gain = self.gain(embeds, encoding.attention_mask)
        return torch.stack([-gain, gain], -1)

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        if removal == "delete":
            raise UnsupportedError("deleted tokens have no embedding", ["the length changes"])
        token = {"mask": MASK, "pad": PAD}[removal]
        return replace(encoding, input_ids=encoding.input_ids.masked_fill(encoding.scored, token))

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        return [self._masked(encoding.select([text]), rows, removal) for text, rows in enumerate(keeps)]

    def _masked(self, encoding: Encoding, keeps: Tensor, removal: str) -> Tensor:
        # The appended column answers for special tokens (unit -1): they always stay.
        stays = torch.cat([keeps, keeps.new_ones(len(keeps), 1)], 1)[:, encoding.unit_ids[0]]
        ids = encoding.input_ids.expand(len(keeps), -1)
        own = torch.ones_like(stays)
        if removal == "delete":
            order = (~stays).long().argsort(dim=1, stable=True)
            ids, own = ids.gather(1, order), stays.gather(1, order)
        else:
            ids = ids.masked_fill(~stays, {"mask": MASK, "pad": PAD}[removal])
        with torch.no_grad():
            gain = self.gain(self.table[ids], own)
        return torch.stack([-gain, gain], -1)

    def step_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        """As eq. 4 of Progressive Inference has it, exactly: what was not read yet is removed."""
        found = []
        for rows in keeps:
            masks, units = rows.shape
            seen = torch.ones(units, units, dtype=torch.bool).tril()
            found.append((rows[:, None] & seen).reshape(masks * units, units))
        flat = self.masked_logits(encoding, found, removal)
        return [logits.reshape(*rows.shape, logits.shape[-1]) for rows, logits in zip(keeps, flat, strict=True)]

    def start_logits(self, encoding: Encoding) -> Tensor:
        """From the leading special token alone."""
        with torch.no_grad():
            gain = self.gain(self.table[encoding.input_ids[:, :1]], encoding.attention_mask[:, :1])
        return torch.stack([-gain, gain], -1)

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Tensor, weights: Tensor, target: Target
    ) -> tuple[list[Tensor], Tensor]:
        sums, values = [], []
        for text, length in enumerate(encoding.lengths):
            embeds = path(text, positions)[:, :length].detach().requires_grad_()
            repeated = encoding.select([text] * len(positions))
            value = target.row(text, len(positions)).scalar(self.logits(repeated, embeds))
            (gradients,) = torch.autograd.grad(value.sum(), embeds)
            sums.append((weights.to(gradients)[:, None, None] * gradients).sum(0))
            values.append(value.detach())
        return sums, torch.stack(values)

    @contextmanager
    def tap(self, layers: Sequence[int] | None = None) -> Iterator[ToyTap]:
        tap = ToyTap()
        self._taps.append(tap)
        try:
            yield tap
        finally:
            self._taps.remove(tap)

    def prediction_rows(self, encoding: Encoding) -> Tensor:
        return (torch.arange(encoding.input_ids.shape[1]) == 0).to(self.table).expand(len(encoding), -1)

    @contextmanager
    def shifted(self, shift: Shift) -> Iterator[None]:
        before = self.table
        radius = shift.radius * self._plain.norm(dim=1).mean().item()
        vectors = np.stack([ball_vector(shift.draw, token, 2) * (token > UNK) for token in range(len(before))])
        self.table = before + torch.from_numpy(radius * vectors).to(before)
        try:
            yield
        finally:
            self.table = before


class Linear(ToyModel):
    """g = sum over tokens of e . (1, 0.5): a token's contribution is its own term minus that of what replaces it."""

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        return _terms(embeds, own).sum(1)


class Product(ToyModel):
    """g = product over tokens of (1 + e . (1, 0.5)): every unit needs every other; bad ones turn the sign."""

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        return (1 + _terms(embeds, own)).prod(1)


class Max(ToyModel):
    """g = largest e . (1, 0.5) minus the sum of all squares over 10: redundant units share one effect."""

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        terms = _terms(embeds, own)
        return terms.masked_fill(~own, -torch.inf).amax(1) - terms.square().sum(1) / 10


class Ignored(ToyModel):
    """g = s + s^2 / 2 with s the sum of the first features: "um" has none and changes nothing, masked or deleted."""

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        total = (embeds[..., 0] * own).sum(1)
        return total + total.square() / 2


class Copy(ToyModel):
    """g = e . (1, 0.5) of the token before the last: in place, that unit alone has a contribution, of any sign."""

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        return _terms(embeds, own).gather(1, own.sum(1, keepdim=True) - 2)[:, 0]


class Attending(ToyModel):
    """g = sum over heads and tokens of the first row of layer 1's attention, times (1 + head) e . (1, 0.5).

    Linear in the attention: its gradient is the same everywhere. Nothing passes through layer 0.
    """

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        super().__init__(dtype)
        self.capabilities = (*self.capabilities, ToySites(self))

    def gain(self, embeds: Tensor, own: Tensor) -> Tensor:
        return attended(_attention(embeds, own, 1)[:, :, :1], _terms(embeds, own))


class ToySites(ToyCapability, ReplaceableAttention):
    """See ReplaceableAttention."""

    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        return [ToySite(self.toy, encoding, layer) for layer in layers(2)]


class ToySite(AttentionSite):
    """One layer of `Attending`; all rows are replaced in layer 0, one in layer 1."""

    def __init__(self, model: ToyModel, encoding: Encoding, layer: int) -> None:
        embeds = model.embed(encoding)
        self.layer = layer
        whole = _attention(embeds, encoding.attention_mask, layer)[0]
        self.probabilities = whole[:, :1] if layer else whole
        self.rows = (torch.arange(self.probabilities.shape[1]) == 0).to(embeds)
        self.input_rows = encoding.scored[0, : len(self.rows)].to(embeds)
        self._terms = _terms(embeds, encoding.attention_mask)
        self._own = model.logits(encoding)

    def slopes(self, path: AttentionPath, count: int, target: Target) -> Iterator[AttentionSlopes]:
        for start in range(0, count, 4):
            points = tuple(range(start, min(start + 4, count)))
            attention = path(points).detach().requires_grad_()
            gain = attended(attention[:, :, :1], self._terms)
            logits = torch.stack([-gain, gain], -1) if self.layer else self._own + 0 * gain[:, None]
            values = target.row(0, len(points)).scalar(logits)
            (gradients,) = torch.autograd.grad(values.sum(), attention)
            yield AttentionSlopes(points, attention.detach()[:, :, :1], gradients[:, :, :1], values.detach())


def attended(row: Tensor, terms: Tensor) -> Tensor:
    """Two heads' sums of terms, (batch, heads, 1, tokens) times (batch or 1, tokens)."""
    return torch.einsum("bhqk,bk,h->b", row, terms.expand(len(row), -1), torch.arange(1.0, 3.0).to(row))


class Game(Linear):
    """g of a keep = values[sum of 2^i over kept units i]: any game over the units of one text."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__()
        self.values = torch.from_numpy(values)
        self.units = len(values).bit_length() - 1

    def masked_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        gains = [self.values[(rows.long() << torch.arange(self.units)).sum(1)] for rows in keeps]
        return [torch.stack([-gain, gain], -1) for gain in gains]


TOYS: tuple[type[ToyModel], ...] = (Linear, Product, Max, Ignored, Copy)


def make_problem(
    model: ToyModel, texts: Sequence[Text], unit: Granularity = "word", removal: str = "mask", of: Of = "logit"
) -> Problem:
    """Explain the positive class."""
    encoding = model.encode(texts, unit)
    target = Target(torch.ones(len(texts), dtype=torch.long), None, of)
    return Problem(model, encoding, target, removal, Ledger.empty(len(texts)), Evaluations())


def game_problem(values: np.ndarray) -> Problem:
    """Explain a game given as 2^n values, bit i for unit i."""
    model = Game(values)
    return make_problem(model, [" ".join(["film"] * model.units)])


def named(problem: Problem, names: Sequence[str]) -> Problem:
    """The problem of one text with these names for its units."""
    units = tuple(replace(unit, name=name) for unit, name in zip(problem.encoding.units[0], names, strict=True))
    object.__setattr__(problem.encoding, "units", (units,))
    return problem


def generators(count: int, seed: int = 0) -> list[np.random.Generator]:
    """One generator per text."""
    return [np.random.default_rng([seed, text]) for text in range(count)]


def _terms(embeds: Tensor, own: Tensor) -> Tensor:
    return (embeds @ embeds.new_tensor([1.0, 0.5])) * own


def _attention(embeds: Tensor, own: Tensor, layer: int) -> Tensor:
    """Two heads; head h of layer l attends by the product of features, scaled by 1 + h + l."""
    scores = torch.einsum("bqd,bkd->bqk", embeds, embeds.flip(-1))[:, None]
    heads = torch.arange(2, dtype=embeds.dtype)[:, None, None] + 1 + layer
    return (scores * heads).masked_fill(~own[:, None, None, :], -torch.inf).softmax(-1)


def _encode(text: Text, unit: Granularity) -> tuple[list[int], list[tuple[int, int]], list[int], tuple[Unit, ...]]:
    if not isinstance(text, str) or not text.strip():
        raise InputError("a toy reads one text that is not blank.")
    units = tuple(Unit(m.start(), m.end(), m.group()) for m in re.finditer(PATTERNS[unit], text))
    pieces = list(re.finditer(PATTERNS["token"], text))
    ids = [CLS, *(IDS.get(piece.group(), UNK) for piece in pieces), SEP]
    spans = [(0, 0), *((piece.start(), piece.end()) for piece in pieces), (0, 0)]
    owners = [next(i for i, u in enumerate(units) if u.start <= piece.start() < u.end) for piece in pieces]
    return ids, spans, [-1, *owners, -1], units


def in_place(model: LanguageModel) -> str:
    """The model's first removal that keeps the length, which a baseline takes where the default deletes."""
    return next(name for name in model.removals if name != "delete")


def removed_embeddings(model: LanguageModel, encoding: Encoding, removal: str) -> Tensor:
    """The embeddings of the fully removed texts."""
    words = model.ask(WordEmbeddings)
    return words.embed(words.removed(encoding, removal))
