"""Replace a layer's attention on one text at many points, and re-run only the layers above.

One plain pass records the input of each layer. A batch of points then starts at its layer: the layer is called with
that input, expanded to the batch, and with other attention; the layers above follow. The model itself computes what
comes after its last layer, in a pass over a shortest input whose last layer's output is replaced. If the head reads a
single position, the last layer is computed for that row alone, because only the keys and values of the others are
needed.

For every layer that is used, two points are compared with whole passes; if they differ, the whole model is run on every
point.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.dims import Logits
from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.internals.attention import AttentionPath, AttentionSite, AttentionSlopes
from raison.core.targets.target import Target
from raison.models.passes.batching import TokenBudget, shrinking
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.shortcuts import tried
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.attention_steps import AttentionStep
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.hooks import hooked
from raison.models.stack.layers import LayerCall, ReachedError, kept_calls, layer_stack, replaced_output
from raison.models.stack.tap import Tap, attention_modules, tap
from raison.progress import steps_of

Rows = Callable[[Encoding], Float[Tensor, "batch tokens"]]
PredictBatch = Callable[[TokenBatch], Logits]
"""One differentiable pass of the whole model over one batch."""
AttentionPoints = Float[Tensor, "points heads query key"]

_TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-3}
_HALF_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True)
class PlainPass:
    """What the plain pass over a text recorded; calls and records are by layer."""

    batch: TokenBatch
    calls: dict[int, LayerCall]
    records: Tap
    rows: Float[Tensor, " tokens"]
    """The weight of each position in the prediction."""

    @property
    def single(self) -> int | None:
        """The one position that the head reads; None if it pools several."""
        read = self.rows.nonzero()[:, 0]
        return int(read[0]) if len(read) == 1 else None


class Runner(ABC):
    """Logits of a text whose attention in one layer is replaced."""

    layer: int
    tokens: int
    """Number of positions computed per point, which bounds the batch size."""

    @abstractmethod
    def logits(self, attention: AttentionPoints) -> Logits:
        """One row per point, differentiable; the axis `query` holds the rows of the site."""


class Reruns(ReplaceableAttention):
    """The sites of one model, and the layers for which re-running was found to be exact.

    A layer's first use costs four more passes, to compare re-runs with whole ones.
    """

    def __init__(self, passes: ForwardPasses, rows: Rows, right: dict[int, bool]) -> None:
        """`rows` gives prediction rows. `right` keeps the results of the checks for all readouts of a model."""
        self._passes = passes
        self._core = passes.network.core
        self._predict: PredictBatch = passes.predict
        self._budget = passes.budget
        self._rows = rows
        self._right = right

    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        if len(encoding) != 1:
            raise InputError(f"attention can be replaced in one text at a time; got {len(encoding)}.")
        with self._passes.network.quiet():
            return self._sites(encoding, self._rows(encoding), layers)

    def _sites(
        self, encoding: Encoding, rows: Float[Tensor, "1 tokens"], layers: Callable[[int], Sequence[int]]
    ) -> list[AttentionSite]:
        total = len(attention_modules(self._core))
        wanted = list(layers(total))
        # Tensors made in a caller's inference mode could not enter a differentiable pass.
        with torch.inference_mode(False), torch.no_grad():
            base = self._run_plain(encoding, rows[0], wanted)
            return [self._site(encoding, base, layer, total - 1) for layer in wanted]

    def _run_plain(self, encoding: Encoding, rows: Float[Tensor, " tokens"], wanted: Sequence[int]) -> PlainPass:
        length = encoding.lengths[0]
        ids, types = encoding.input_ids[:, :length], encoding.type_ids[:, :length]
        batch = TokenBatch(ids.clone(), types.clone(), torch.tensor([length]))
        with (
            kept_calls(self._stack(), min(wanted)) as calls,
            tap(self._core, ("probabilities", "value"), set(wanted)) as records,
        ):
            self._predict(batch)
        return PlainPass(batch, calls, records, rows[:length])

    def _stack(self) -> list[nn.Module]:
        try:
            return layer_stack(self._core)
        except UnsupportedError:
            return []

    def _site(self, encoding: Encoding, base: PlainPass, layer: int, last: int) -> AttentionSite:
        probabilities = base.records.probabilities[layer][0]
        row = base.single if layer == last else None
        reach = slice(None) if row is None else slice(row, row + 1)
        whole = WholeRunner(self._core, self._predict, base, layer, row)
        stack = self._stack()
        runner: Runner = whole
        if stack and self._right.get(layer, True):
            upper = UpperRunner(self._core, stack, self._predict, base, layer)
            if layer not in self._right:
                self._right[layer] = _agree(upper, whole, probabilities[:, reach])
            runner = upper if self._right[layer] else whole
        scored = encoding.scored[0, : len(base.rows)].to(probabilities)
        return LayerSite(
            self._budget, runner, probabilities[:, reach], base.rows.to(probabilities)[reach], scored[reach]
        )


class LayerSite(AttentionSite):
    """One layer of one text, as a runner re-runs it."""

    def __init__(
        self,
        budget: TokenBudget,
        runner: Runner,
        probabilities: Float[Tensor, "heads query key"],
        rows: Float[Tensor, " query"],
        scored: Float[Tensor, " query"],
    ) -> None:
        self.layer = runner.layer
        self.probabilities = probabilities.to(torch.promote_types(probabilities.dtype, torch.float32))
        self.rows, self.input_rows = rows.to(self.probabilities), scored.to(self.probabilities)
        self._budget = budget
        self.runner = runner

    def slopes(self, path: AttentionPath, count: int, target: Target) -> Iterator[AttentionSlopes]:
        def run(points: list[int]) -> AttentionSlopes:
            return self._slopes(path(points).to(self.probabilities), points, target)

        start = 0
        with steps_of("passes", count) as progress:
            while start < count:
                size = max(1, self._budget.tokens // self.runner.tokens)
                group = list(range(start, min(start + size, count)))
                for done, slopes in shrinking(self._budget, run, group):
                    progress(len(done))
                    yield slopes
                start += len(group)

    def _slopes(self, attention: AttentionPoints, points: list[int], target: Target) -> AttentionSlopes:
        with torch.inference_mode(False), torch.enable_grad():
            read = self.read
            leaf = attention[:, :, read].clone().requires_grad_()
            logits = self.runner.logits(attention.detach().clone().index_copy(2, read, leaf))
            values = target.row(0, len(points)).scalar(logits.to(torch.promote_types(logits.dtype, torch.float32)))
            (gradients,) = torch.autograd.grad(values.sum(), leaf)
        return AttentionSlopes(tuple(points), leaf.detach(), gradients, values.detach())


class WholeRunner(Runner):
    """Runs the whole model on a batch of equal texts, with one layer's attention replaced: all of it, or one row."""

    def __init__(self, core: nn.Module, predict: PredictBatch, base: PlainPass, layer: int, row: int | None) -> None:
        self._core = core
        self._predict = predict
        self._batch = base.batch
        self.layer = layer
        self._row = row
        self.tokens = base.batch.ids.shape[1]

    def logits(self, attention: AttentionPoints) -> Logits:
        count = len(attention)

        def edit(step: AttentionStep, _layer: int, tensor: Tensor) -> Tensor:
            if step != "probabilities":
                return tensor
            if self._row is None:
                return attention.to(tensor)
            return tensor.index_copy(2, torch.tensor([self._row], device=tensor.device), attention.to(tensor))

        ids, types = (table.expand(count, -1) for table in (self._batch.ids, self._batch.type_ids))
        with tap(self._core, (), {self.layer}, edit):
            return self._predict(TokenBatch(ids, types, self._batch.lengths.expand(count)))


class UpperRunner(Runner):
    """Runs a layer and those above it; see the module's docstring."""

    def __init__(
        self, core: nn.Module, stack: list[nn.Module], predict: PredictBatch, base: PlainPass, layer: int
    ) -> None:
        self._core = core
        self._stack = stack
        self._predict = predict
        self._base = base
        self.layer = layer
        self._last = len(stack) - 1
        self._row = base.single
        self._alone = layer == self._last and self._row is not None
        self.tokens = 1 if self._alone else base.batch.ids.shape[1]

    def logits(self, attention: AttentionPoints) -> Logits:
        with evaluating(self._core):
            if not self._alone:
                return self._head(self._climb(attention))
            value = self._base.records.value[self.layer]
            return self._head(self._on_row(self._base.calls[self._last].hidden, attention.to(value) @ value))

    def _climb(self, attention: AttentionPoints) -> Float[Tensor, "points tokens hidden"]:
        """Run this layer and those above; if one row is read, the last layer gives only that row."""
        count = len(attention)
        hidden = self._base.calls[self.layer].expanded(count).hidden

        def put_in(step: AttentionStep, _layer: int, tensor: Tensor) -> Tensor:
            return attention.to(tensor) if step == "probabilities" else tensor

        with tap(self._core, (), {self.layer}, put_in, self.layer):
            for number in range(self.layer, self._last):
                hidden = self._call(number, hidden)
            if self._row is None:
                return self._call(self._last, hidden)
        return self._on_row(hidden, self._attended(hidden))

    def _call(self, number: int, hidden: Tensor) -> Tensor:
        return self._base.calls[number].expanded(len(hidden)).run(self._stack[number], hidden)

    def _attended(self, hidden: Float[Tensor, "points tokens hidden"]) -> Float[Tensor, "points heads 1 features"]:
        """The row's attention output in the last layer, before the output projection."""

        def stop(step: AttentionStep, _layer: int, tensor: Tensor) -> Tensor:
            if step == "output":
                raise ReachedError(tensor)
            return tensor

        try:
            with tap(self._core, (), {self._last}, stop, self._last):
                self._call(self._last, hidden)
        except ReachedError as reached:
            return reached.output[:, :, self._row : self._row + 1]  # type: ignore[operator]
        raise AssertionError("a layer without attention")

    def _on_row(self, hidden: Tensor, output: Float[Tensor, "points heads 1 features"]) -> Tensor:
        """The last layer on the row alone, with its attention output given."""
        row: int = self._row  # type: ignore[assignment]

        def put_in(step: AttentionStep, _layer: int, tensor: Tensor) -> Tensor:
            return output.to(tensor) if step == "output" else tensor

        count = len(output)
        states = hidden[:, row : row + 1].expand(count, -1, -1)
        with tap(self._core, (), {self._last}, put_in, self._last):
            return self._base.calls[self._last].of_row(row).expanded(count).run(self._stack[self._last], states)

    def _head(self, hidden: Float[Tensor, "points tokens hidden"]) -> Logits:
        """The part after the last layer, computed by the model itself."""
        batch, width = self._base.batch, hidden.shape[1]
        first = 0 if width > 1 else self._row or 0
        span = slice(first, first + width)
        shortest = TokenBatch(batch.ids[:, span], batch.type_ids[:, span], torch.tensor([width]))
        with hooked([self._stack[self._last]], after=replaced_output(hidden)):
            return self._predict(shortest)


def _agree(upper: UpperRunner, whole: WholeRunner, probabilities: Float[Tensor, "heads query key"]) -> bool:
    """Whether both give the same logits for the model's own attention and for arbitrary other attention."""
    other = probabilities.roll(1, -1) - 0.5 * probabilities.flip(0)
    points = torch.stack([probabilities, other])
    logits = tried(lambda: upper.logits(points))
    if logits is None:
        return False
    plain = whole.logits(points)
    tolerance = _TOLERANCES.get(probabilities.dtype, _HALF_TOLERANCE)
    return bool(torch.allclose(logits.to(plain), plain, rtol=tolerance, atol=tolerance))
