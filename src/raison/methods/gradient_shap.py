"""GradientSHAP: expected gradients between random baselines and the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.errors import UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.integration.baselines import Baseline, baseline_embeddings, baseline_name
from raison.integration.embedding_noise import Noise, NoiseScale, gaussian, spreads
from raison.integration.point_gradients import point_contributions
from raison.integration.repeated_texts import own_embeddings


@dataclass(frozen=True)
class GradientShap(Method):
    """Integrated gradients by sampling: the gradient at random points between baselines and the text.

    score_t = 1/N sum_{i=1}^N (x^i - b^i)_t . d v(b^i + a_i (x^i - b^i)) / d e_t (expected gradients, in the form of
    GradientExplainer of Lundberg and Lee's shap), with v the target, N = `samples`, a_i uniform on [0, 1], b^i the word
    embeddings of one of `baselines`, and x^i those of the text plus Gaussian noise. Products are summed over features.
    Returns (batch, tokens), signed, in units of the target. Special and prompt tokens keep their embedding and score
    zero.

    `baselines`: as for integrated_gradients, "removal", "mask", "ellipsis", "unk", "pad" or "zero", one name or several
    (a tuple, or joined by "+"). Each is used equally often, up to one sample. The note `baselines` says which were
    used. `noise` is a share of the word embeddings' deviation or range (`scale`, see smooth_grad); none by default.

    N forward and N backward passes.

    Guarantees no sum for finite N. With more samples and no noise, it approaches v(x) - v(b), the mean over the
    baselines. The Shapley values of the name are approached only for models that are linear in the embeddings. Scores
    depend on the seed.

    Differences from the paper and from captum: one a_i is drawn from each N-th of [0, 1], which keeps the mean and
    lowers the error. The papers' harness gives captum the text itself as every other baseline. Its differences are
    zero, so half of the samples contribute nothing and the scores are halved; here the text is no baseline. captum
    takes 5 samples by default.

    Reference: lundberg2017unified; erion2021improving.
    """

    samples: Annotated[int, Setting(least=1)] = 50
    baselines: Annotated[
        tuple[str, ...] | list[str] | str,
        Setting(fewest=1, words="a baseline's name, such as 'removal', or a list of several"),
    ] = "removal"
    noise: Noise = 0.0
    scale: NoiseScale = "deviation"

    reference: ClassVar[str] = "lundberg2017unified"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.SIGNED, Property.RANDOM})
    passes: ClassVar[str] = "samples forward + samples backward"

    def consistent(self) -> None:
        for name in self._wanted:
            if name not in get_args(Baseline):
                raise UnknownNameError("baseline of gradient_shap", name, get_args(Baseline))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, ends = problem.encoding, own_embeddings(problem)
        names = [baseline_name(problem, "gradient_shap", wanted) for wanted in self._wanted]
        problem.note("baselines", [names] * len(encoding))
        starts = torch.stack([baseline_embeddings(problem, ends, name) for name in names])
        sigmas = [self.noise * size for size in spreads(encoding, ends, self.scale)]
        draws = [self._drawn(rng, len(names)) for rng in rngs]

        def places(rows: Sequence[tuple[int, int]]) -> tuple[Embeddings, Embeddings]:
            points, moves = [], []
            for text, number in rows:
                positions, chosen, seed = draws[text]
                end = ends[text]
                if self.noise:
                    end = end + sigmas[text] * gaussian(seed, number, encoding, text, end.shape[-1]).to(end)
                moves.append(end - starts[chosen[number], text])
                points.append(starts[chosen[number], text] + positions[number] * moves[-1])
            return torch.stack(points), torch.stack(moves)

        rows = [(text, number) for text in range(len(encoding)) for number in range(self.samples)]
        return point_contributions(problem, rows, places, ends.shape[-1]) / self.samples

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self.samples, backwards=self.samples)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return tuple(self.baselines.split("+")) if isinstance(self.baselines, str) else tuple(self.baselines)

    def _drawn(self, rng: np.random.Generator, baselines: int) -> tuple[list[float], list[int], int]:
        """A text's positions on the path, their baselines, and the seed of its noise."""
        positions = (rng.permutation(self.samples) + rng.random(self.samples)) / self.samples
        # Rounds over all baselines in an order of its own each; the last round may be cut short.
        rounds = [rng.permutation(baselines) for _ in range(-(-self.samples // baselines))]
        return positions.tolist(), np.concatenate(rounds)[: self.samples].tolist(), int(rng.integers(2**63))
