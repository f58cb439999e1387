"""Removal of tokens: the only module that replaces or deletes them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from raison.core.errors import UnknownNameError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.removals import REMOVALS
from raison.models.passes.token_batch import TokenBatch
from raison.models.tokens.own_tokenizer import check_fast


@dataclass(frozen=True, slots=True)
class Remover:
    """One kind of removal for one tokenizer: `token` replaces an absent token; None deletes it.

    `placeholder` is what remains if everything is deleted.
    """

    token: int | None
    placeholder: int


def replacement_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The token id that replaces an absent token, for each in-place removal that the tokenizer allows.

    The first is the default. Three dots come before the unknown token: a byte-level tokenizer knows every word, and its
    unknown token, if it has one, ends documents.
    """
    ids = {
        "mask": tokenizer.mask_token_id,
        "ellipsis": _ellipsis_id(tokenizer),
        "unk": tokenizer.unk_token_id,
        "pad": tokenizer.pad_token_id,
    }
    return {removal: token for removal, token in ids.items() if token is not None}


def special_names(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """The names of special tokens that the tokenizer's own call finds in texts."""
    added = tokenizer.added_tokens_decoder.values()
    return frozenset(token.content for token in added if token.special)


def unknown_id(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The unknown token of the tokenizer; None for a vocabulary that lacks nothing.

    Byte-level vocabularies lack nothing, but some name their end-of-text token as the unknown one.
    """
    token = tokenizer.unk_token_id
    return None if token in (tokenizer.eos_token_id, tokenizer.bos_token_id) else token


def _ellipsis_id(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The single token for "...", preferably with a leading space; None if there is none."""
    check_fast(tokenizer)
    for dots in (" ...", "..."):
        # Calling the backend directly changes no setting and ignores the caller's padding and truncation.
        encoded = tokenizer.backend_tokenizer.encode(dots, add_special_tokens=False)
        ids = [token for token, stays in zip(encoded.ids, encoded.attention_mask, strict=True) if stays]
        if len(ids) == 1 and not encoded.overflowing and ids[0] != tokenizer.unk_token_id:
            return ids[0]
    return None


def causal_removals(tokenizer: PreTrainedTokenizerBase, replacements: dict[str, int]) -> tuple[str, ...]:
    """The removals of a causal model, the default first.

    A mask token is never the default: causal models are not trained on one, even if the tokenizer has it. The default
    is three dots, otherwise an unknown token. With a mask token among the tokenizer's, this must neither begin nor end
    documents, and deletion comes before others; without one, any replacement comes before deletion.
    """
    if "mask" not in replacements:
        return (*replacements, "delete")
    borders = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    words = [name for name in ("ellipsis", "unk") if replacements.get(name) not in (None, *borders)]
    others = [name for name in ("unk", "pad", "mask") if name in replacements and name not in words]
    return (*words, "delete", *others)


def check_removal(removal: str, available: dict[str, int]) -> None:
    """UnknownNameError for an unknown name, UnsupportedError if the tokenizer lacks the token."""
    if removal not in REMOVALS:
        raise UnknownNameError("removal", removal, REMOVALS)
    if removal != "delete" and removal not in available:
        raise UnsupportedError(
            f"removal '{removal}' is not possible",
            [f"the tokenizer has no {removal} token"],
            f"Use removal='{[*available, 'delete'][0]}'.",
        )


def placeholder_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that represents a fully deleted text if the tokenizer adds no special tokens.

    A model cannot read an empty text, so one token represents it: the first that exists of the beginning, end, padding
    and unknown tokens.
    """
    choices = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id, 0)
    return next(token for token in choices if token is not None)


def remove_all(encoding: Encoding, token: int) -> Encoding:
    """The text's ids with every token of a unit replaced by one token."""
    return replace(encoding, input_ids=encoding.input_ids.masked_fill(encoding.scored, token))


def tokens_kept(encoding: Encoding, text: int, keeps: Bool[Tensor, "masks units"]) -> Bool[Tensor, "masks tokens"]:
    """Which tokens of a text stay under each keep: those of kept units, and those of no unit (index -1)."""
    outside = keeps.new_ones(len(keeps), 1)
    return torch.cat([keeps, outside], 1)[:, encoding.unit_ids[text, : encoding.lengths[text]]]


def masked_rows(encoding: Encoding, text: int, keeps: Bool[Tensor, "masks units"], remover: Remover) -> TokenBatch:
    """The text under each keep, padded on the right: absent tokens replaced, or deleted if the remover has no token."""
    token = remover.token
    length = encoding.lengths[text]
    stays = tokens_kept(encoding, text, keeps)
    ids = encoding.input_ids[text, :length].expand(len(keeps), -1)
    type_ids = encoding.type_ids[text, :length].expand(len(keeps), -1)
    if token is not None:
        return TokenBatch(torch.where(stays, ids, token), type_ids, torch.full((len(keeps),), length))
    order = (~stays).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = stays.sum(1)
    ids = ids.gather(1, order)
    ids[lengths == 0, 0] = remover.placeholder
    return TokenBatch(ids, type_ids.gather(1, order), lengths.clamp_min(1))


class Removals:
    """The removals that a model with this tokenizer allows."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, name: str, *, causal: bool, in_place: bool) -> None:
        """`in_place`: the model answers with positions of the text, so nothing can be deleted."""
        self.replacements = replacement_ids(tokenizer)
        self._placeholder = placeholder_id(tokenizer)
        self._name = name
        if causal:
            self.names = causal_removals(tokenizer, self.replacements)
        else:
            self.names = tuple(self.replacements) if in_place else (*self.replacements, "delete")

    def remover(self, removal: str) -> Remover:
        """The remover for a removal. Raises UnsupportedError if the removal is not possible."""
        check_removal(removal, self.replacements)
        if removal not in self.names:
            raise UnsupportedError(
                f"removal '{removal}' is not possible on {self._name}",
                ["it answers with a position of the text, and a deleted token has none"],
                f"Use removal='{self.names[0]}'.",
            )
        return Remover(None if removal == "delete" else self.replacements[removal], self._placeholder)

    def everything(self, encoding: Encoding, removal: str) -> Encoding:
        """The encoding with every unit removed in place. Raises UnsupportedError for deletion."""
        check_removal(removal, self.replacements)
        if removal == "delete":
            raise UnsupportedError(
                "deleted tokens have no embedding", ["removal 'delete' changes the length"], "Use mask, unk or pad."
            )
        return remove_all(encoding, self.replacements[removal])
