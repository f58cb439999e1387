"""Compute only the part of an encoder's last layer that the prediction reads.

A classification head reads the first token. In the last layer the others are needed as keys and values only: their
output projection and feed-forward network, three quarters of the layer, go unread. So the layer is called three times:
on all tokens up to its attention, of which the first token's row is kept; on that token alone, with that row in place
of its own attention; and by the model itself on the token alone, whose output is replaced by that of the second call.

The first batch is used to check that this gives the same result as a whole pass, whatever the last layer gives for the
other tokens; otherwise passes stay whole.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from raison.core.dims import Embeddings, Logits
from raison.core.errors import UnsupportedError
from raison.models.passes.shortcuts import tried
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.hooks import hooked
from raison.models.stack.layers import LayerCall, ReachedError, layer_stack, replaced_output
from raison.models.stack.structure import structure_of

Predict = Callable[[TokenBatch, Embeddings | None], Logits]

_TRIED = 2
"""Number of rows of the first batch that are run both ways, as a check."""
_TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4}
_HALF_TOLERANCE = 0.05


class LastRow:
    """Passes over an encoder whose head reads the first token, with gradients; whole passes elsewhere.

    The result of the check, on the first batch of more than one token, is kept as long as the model's structure.
    """

    def __init__(self, core: PreTrainedModel) -> None:
        self._core = core
        self._right: dict[Hashable, bool] = {}
        try:
            self._layer: nn.Module | None = None if core.config.is_encoder_decoder else layer_stack(core)[-1]
        except UnsupportedError:
            self._layer = None

    def predict(self, run: Predict, batch: TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """The results of `run` for the batch, through the narrowed last layer if that is exact.

        Two sequences of the first batch are run three more times, to check the shortcut.
        """
        if self._layer is None or batch.ids.shape[1] == 1:
            return run(batch, embeds)
        structure = structure_of(self._core)
        right = self._right.get(structure)
        if right is None:
            with torch.no_grad():
                right = self._agrees(self._layer, run, batch)
            self._right = {structure: right}
        if not right:
            return run(batch, embeds)
        with _narrowed(self._layer):
            return run(batch, embeds)

    def _agrees(self, layer: nn.Module, run: Predict, batch: TokenBatch) -> bool:
        some = batch.select(list(range(len(batch.ids)))[:_TRIED])

        def is_exact() -> bool:
            plain = run(some, None)
            with _others_changed(layer):
                unread = torch.equal(run(some, None), plain)
            with _narrowed(layer) as narrowing:
                logits = run(some, None)
            tolerance = _TOLERANCES.get(self._core.dtype, _HALF_TOLERANCE)
            alike = logits.shape == plain.shape and torch.allclose(logits, plain, rtol=tolerance, atol=tolerance)
            return unread and narrowing.narrowed and alike

        return bool(tried(is_exact))


@contextmanager
def _others_changed(layer: nn.Module) -> Iterator[None]:
    """Change the layer's output for all tokens but the first: a head that reads them then gives other results."""

    def change(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        hidden = output[0] if isinstance(output, tuple) else output
        changed = torch.cat([hidden[:, :1], 3 - 5 * hidden[:, 1:]], dim=1)
        return replaced_output(changed)(module, args, output)

    with hooked([layer], after=change):
        yield


@contextmanager
def _narrowed(layer: nn.Module) -> Iterator["_Narrowing"]:
    """The layer is narrowed in the passes that this thread makes inside the context."""
    narrowing = _Narrowing()
    # Around other hooks, which then see each call once.
    with hooked([layer], first=narrowing.before, after=narrowing.after):
        yield narrowing


@dataclass
class _Narrowing:
    """One context around the layer's calls; `narrowed` is set after the first narrowed call."""

    narrowed: bool = False
    _busy: bool = False
    _output: list[Tensor] = field(default_factory=list)

    def before(
        self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if self._busy:
            return None
        self._busy = True
        try:
            whole = LayerCall(args, kwargs)
            attended = _first_row(layer, whole)
            if attended is None:
                return None
            row = whole.of_row(0)
            with _FirstRowMode(attended):
                self._output.append(row.run(layer, row.hidden))
            self.narrowed = True
            return row.args, dict(row.kwargs)
        finally:
            self._busy = False

    def after(self, layer: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        if not self._output or self._busy:
            return output
        return replaced_output(self._output.pop())(layer, args, output)


def _first_row(layer: nn.Module, call: LayerCall) -> Tensor | None:
    """The first token's attention output, (batch, heads, 1, features); None for other kinds of attention."""
    try:
        with _FirstRowMode():
            call.run(layer, call.hidden)
    except ReachedError as reached:
        return reached.output
    return None


class _FirstRowMode(TorchFunctionMode):
    """Captures the first row of the layer's attention and leaves the layer, or replaces that row by a given one."""

    def __init__(self, given: Tensor | None = None) -> None:
        super().__init__()
        self._given = given

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not scaled_dot_product_attention:
            return func(*args, **kwargs)
        if self._given is not None:
            return self._given
        mask = kwargs.get("attn_mask")
        if len(args) != 3 or kwargs.get("is_causal"):
            return func(*args, **kwargs)
        if mask is not None and mask.shape[-2] > 1:
            kwargs = kwargs | {"attn_mask": mask[..., :1, :]}
        query, key, value = args
        raise ReachedError(func(query[:, :, :1], key, value, **kwargs))
