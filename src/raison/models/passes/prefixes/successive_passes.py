"""Successive packed passes: each continues from the last sequence of the pass before, as far as they are equal."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel

from raison.models.passes.prefixes.prefix import Prefix, layers_of
from raison.models.passes.prefixes.trie import Ids, Trie, merge, sees
from raison.models.stack.caches import given_cache
from raison.text.beginning import common_length

_Masks = dict[str, Tensor] | Tensor | None


@final
class SuccessivePasses:
    """Last hidden states of sequences after one prompt, pack by pack.

    The keys and values of the last pass are kept. In sorted order, no earlier sequence shares a longer beginning with a
    sequence than the one just before it. Every distinct beginning is therefore run once, however many packs there are.
    Modules whose forward function was replaced may return stored results without running, and store no keys; each pack
    then continues from the prompt alone.
    """

    def __init__(self, base: PreTrainedModel, prompt: Prefix | None, room: int) -> None:
        """`base` is the transformer without its head; at most `room` new tokens run at a time."""
        self._base = base
        self._room = room
        self._start = 0 if prompt is None else len(prompt)
        self._goes_on = not any("forward" in vars(module) for module in base.modules())
        self._last = prompt
        # The last sequence, and the places of its tokens in the last pass, those of the prompt first.
        self._row: Ids = ()
        self._places = list(range(self._start))

    def states(self, rows: Sequence[Ids], reads: Sequence[Sequence[int]]) -> list[Float[Tensor, "_reads hidden"]]:
        """The states of each row at positions that count from the prompt's first token: one pass for all rows.

        A single row with more tokens than `room` takes several passes, so that no mask is quadratic in its length.
        """
        known = common_length(self._row, rows[0])
        places = self._places[: self._start + known]
        stored = self._last.at(places) if self._last is not None and places else None
        trie = merge([rows[0][:known], *rows])
        prefix = self._grown(stored, trie, known) if known < len(trie.tokens) else stored
        assert prefix is not None, "nothing to read"
        paths = [[*range(self._start), *(self._start + node for node in path)] for path in trie.paths[1:]]
        if self._goes_on:
            self._last, self._row, self._places = prefix, rows[-1], paths[-1]
        picks = [path[position] for path, wanted in zip(paths, reads, strict=True) for position in wanted]
        chosen = prefix.states[torch.tensor(picks, dtype=torch.long, device=prefix.states.device)]
        return list(chosen.split([len(wanted) for wanted in reads]))

    def _grown(self, stored: Prefix | None, trie: Trie, known: int) -> Prefix:
        """The stored results, with the nodes from `known` on."""
        count, device = len(trie.tokens), self._base.device
        positions = torch.tensor(trie.depths, device=device) + self._start
        if stored is None and trie.depths == list(range(count)):
            # A single sequence needs no mask.
            return self._run(None, trie.tokens, positions, None)
        ends = torch.tensor(trie.ends, device=device)
        room = self._room if self._goes_on else count
        for begin in range(known, count, room):
            upto = slice(min(begin + room, count))
            masks = self._masks(positions[upto], ends[upto], begin)
            stored = self._run(stored, trie.tokens[begin : upto.stop], positions[begin : upto.stop], masks)
        assert stored is not None, "no new node"
        return stored

    def _run(self, stored: Prefix | None, tokens: list[int], positions: Int[Tensor, " nodes"], masks: _Masks) -> Prefix:
        """One pass over new nodes: the stored states and the new ones, with keys and values if the walk continues."""
        cache = stored.cache(1) if stored is not None else DynamicCache() if self._goes_on else None
        output = self._base(
            input_ids=torch.tensor([tokens], device=self._base.device),
            attention_mask=masks,
            position_ids=positions[None],
            use_cache=cache is not None,
            **given_cache(self._base, cache),
        )
        states: Tensor = output[0][0]
        layers = layers_of(cache) if cache is not None and self._goes_on else ()
        return Prefix(states if stored is None else torch.cat([stored.states, states]), layers)

    def _masks(self, positions: Int[Tensor, " nodes"], ends: Int[Tensor, " nodes"], known: int) -> _Masks:
        """The masks of the nodes from `known` on."""
        masks = {
            kind: self._additive(sees(positions, ends, self._start, width, known))
            for kind, width in (windows(self._base.config.get_text_config()) or {}).items()
        }
        return masks.get("", masks)

    def _additive(self, seen: Bool[Tensor, "query key"]) -> Float[Tensor, "1 1 query key"]:
        # Both eager and sdpa add a mask of numbers to the scores; a boolean one is for sdpa only.
        dtype = self._base.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        return mask.masked_fill_(~seen, torch.finfo(dtype).min)[None, None]


def windows(config: PreTrainedConfig) -> dict[str, int | None] | None:
    """Width of the sliding window by kind of layer, the rule by which transformers makes masks for generation.

    The kind "" stands for all layers of a model that takes one mask. None if layers attend in another way.
    """
    width = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if getattr(config, "attention_types", None) is not None:
        # GPT-Neo's local layers count positions in the row.
        return None
    if kinds is None:
        chunked = width is None and getattr(config, "attention_chunk_size", None) is not None
        return None if chunked else {"": width}
    known = {"full_attention": None, "sliding_attention": width}
    return {kind: known[kind] for kind in set(kinds)} if set(kinds) <= set(known) else None
