"""Discretized integrated gradients (DIG)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import BASELINE
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.integration.anchors import ZERO, AnchorWalk, Ends, anchors_of, embedded, table_of
from raison.integration.baselines import Baseline, Steps, baseline_embeddings, baseline_name
from raison.integration.point_gradients import point_contributions
from raison.integration.repeated_texts import own_embeddings
from raison.numerics.gradients.monotone_paths import Strategy, halved, monotone_points

QuadratureRule = Literal["left", "middle"]
NAME = "discretized_integrated_gradients"


@dataclass(frozen=True)
class DiscretizedIntegratedGradients(Method):
    """Sums the gradient along a path through words of the vocabulary, from a text without content to the text.

    score_t = sum_j (p_{j+1} - p_j)_t . d v(p_j) / d e_t (Sanyal and Ren 2021), with v the target, p_0 the word
    embeddings of the baseline and p_{m+1} those of the text. A token's points in between come from m = `steps` anchors,
    found from the text backwards. The next anchor is one of the `neighbours` nearest words of the current one: the word
    closest to its monotone version ("greedy"), or the word with the most features between anchor and baseline
    ("maxcount"). In the monotone version, a feature that is not in between is set to one m-th of the way to the
    baseline. All tokens move at once. Returns (batch, tokens), signed, in units of the target. Special and prompt
    tokens keep their embedding and score zero.

    All steps are halved `factor` times. `rule` says where a step's gradient is taken: at its beginning ("left", as in
    the paper) or in its middle, which is closer to the integral for the same passes. `baseline` is as for
    integrated_gradients; the note `baseline` says which was used.

    2^factor (steps + 1) forward and as many backward passes. Neighbours and anchors are found once per model and word,
    and kept in memory; neighbours take one product of the new words with the embedding table.

    Guarantees no sum: scores approach v(x) - v(b) only as `factor` grows. The few large steps of the paper's path leave
    an error. A token whose embedding has no effect, or equals the baseline's, scores zero.

    Differences from the paper: the baseline is a mask token if there is one, instead of padding; scores are not divided
    by their L2 norm; special tokens come from the encoding, where the public version knows only the names [CLS] and
    [SEP]. The public version adds positions twice (before and inside the model); here paths are in word embedding
    space.

    Reference: sanyal2021discretized.
    """

    steps: Steps = 30
    strategy: Strategy = "greedy"
    neighbours: Annotated[int, Setting(least=1)] = 500
    factor: Annotated[int, Setting(least=0, most=10)] = 0
    rule: QuadratureRule = "left"
    baseline: Baseline = "removal"

    reference: ClassVar[str] = "sanyal2021discretized"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED, Property.DUMMY})
    passes: ClassVar[str] = "2^factor (steps + 1) forward + 2^factor (steps + 1) backward"

    def check(self, model: LanguageModel) -> None:
        """UnsupportedError for a model that exposes no embedding table."""
        table_of(model, NAME)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        name = baseline_name(problem, NAME, self.baseline)
        problem.note(BASELINE, [name] * len(problem.encoding))
        ends = own_embeddings(problem)
        starts, scored = baseline_embeddings(problem, ends, name), problem.encoding.scored
        anchors = self._anchors(problem, name, starts)
        paths: dict[int, Tensor] = {}

        def places(rows: Sequence[tuple[int, int]]) -> tuple[Embeddings, Embeddings]:
            wanted = {text for text, _ in rows}
            for text in paths.keys() - wanted:
                del paths[text]
            for text in wanted - paths.keys():
                tokens = scored[text].to(ends.device)
                points = monotone_points(starts[text, tokens], ends[text, tokens], anchors(text))
                paths[text] = halved(points, self.factor)
            here = ends[[text for text, _ in rows]]
            moves = torch.zeros_like(here)
            for row, (text, number) in enumerate(rows):
                first, second = paths[text][:, number], paths[text][:, number + 1]
                tokens = scored[text].to(ends.device)
                here[row, tokens] = first if self.rule == "left" else (first + second) / 2
                moves[row, tokens] = second - first
            return here, moves

        rows = [(text, number) for text in range(len(ends)) for number in range(self._points)]
        return point_contributions(problem, rows, places, ends.shape[-1])

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self._points, backwards=self._points)

    @property
    def _points(self) -> int:
        return 2**self.factor * (self.steps + 1)

    def _anchors(self, problem: Problem, name: str, starts: Embeddings) -> Callable[[int], Tensor]:
        """Word embeddings of the anchors of a text's scored tokens, (token, step, feature); ids are found here."""
        encoding, table = problem.encoding, table_of(problem.model, NAME)
        bases = torch.full_like(encoding.input_ids, ZERO)
        if name != "zero":
            bases = problem.model.ask(WordEmbeddings).removed(encoding, name).input_ids
        ends = [
            [Ends(*pair) for pair in zip(ids[scored].tolist(), base[scored].tolist(), strict=True)]
            for ids, base, scored in zip(encoding.input_ids, bases, encoding.scored, strict=True)
        ]
        walk = AnchorWalk(self.steps, self.neighbours, self.strategy)
        anchors = anchors_of(table, walk, [pair for of_text in ends for pair in of_text])
        ids = torch.split(anchors, [len(of_text) for of_text in ends])
        return lambda text: embedded(
            table, ids[text], ends[text], starts[text, encoding.scored[text].to(starts.device)]
        )
