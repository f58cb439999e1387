"""Path integration from randomly drawn baselines: the resampling of RPI for other methods."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.note_names import BASELINE
from raison.core.problem import Problem
from raison.core.registry import name_of
from raison.core.settings.fields import Setting
from raison.integration.baselines import baseline_embeddings, baseline_name
from raison.integration.repeated_texts import charge, own_embeddings, portions, repeated
from raison.methods import CATALOGUE
from raison.numerics.gradients.diffusion import (
    Schedule,
    Timestep,
    check_timestep,
    draw_noise,
    draw_times,
    signal_shares,
)

NEEDED = frozenset({Property.PATH, Property.TOKENWISE})


@dataclass(frozen=True)
class Resampled(Method):
    """Another method's maps from many baselines, drawn by a Gaussian diffusion process around its own baseline.

    b_r = sqrt(abar_t) m + sqrt(1 - abar_t) eps, eps ~ N(0, I), t uniform on 1 ... `timesteps` (Barkan et al. 2024,
    section 3.2.1, with m in place of the attention as in section 4.3: RPI-IG and RPI-SIG). m are the word embeddings of
    the method's own baseline (the mask token in place of every unit if the tokenizer has one), and abar_t is the
    product of the `schedule`'s 1 - beta. Map r is the method's map from b_r. Without a metric to choose by, the result
    is the mean over all r. Returns (batch, tokens), in units of the target. Special tokens keep their embedding and
    score zero.

    - `method`: a method with the property "path", as a call: "integrated_gradients(steps=30)", the paper's, or
      "sequential_integrated_gradients(steps=30)".
    - `baselines`: the paper's R, the number of maps to choose from. The first baselines are the same for every R and
      every method.
    - `t` fixes the timestep, which the paper draws for each baseline.
    - `schedule`: "linear" or "cosine" (Ho et al. 2020; Nichol and Dhariwal 2021).

    `baselines` times the method's passes, without those that evaluate its own baseline. All baselines and texts are
    batched together.

    Guarantees no sum. For large t the baseline is noise of variance one, whatever the size of the model's embeddings.
    If these are small, it lies far from all of them.

    Differences from the paper: none known; it leaves open how special tokens are treated.

    Reference: barkan2024rpi; ho2020denoising; nichol2021improved.
    """

    method: Annotated[str, Setting(words="a call, such as 'integrated_gradients(steps=30)'")] = (
        "integrated_gradients(steps=30)"
    )
    baselines: Annotated[int, Setting(least=1)] = 24
    timesteps: Annotated[int, Setting(least=1)] = 500
    t: Timestep = None
    schedule: Schedule = "linear"

    reference: ClassVar[str] = "barkan2024rpi"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.RANDOM, Property.CANDIDATES})
    passes: ClassVar[str] = "at most baselines times those of the method"

    def consistent(self) -> None:
        check_timestep(name_of(self), self.timesteps, self.t)
        _path_method(self.method)

    @property
    def maps(self) -> int:
        return self.baselines

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return self.unselected(self.candidates(problem, rngs))

    def unselected(self, maps: Float[Tensor, "maps batch scored"]) -> Float[Tensor, "batch scored"]:
        return maps.mean(0)

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        encoding, inner = problem.encoding, _path_method(self.method)
        # A method without this setting has one baseline only, and "removal" is everyone's default.
        name = baseline_name(problem, name_of(inner), asdict(inner).get("baseline", "removal"))
        problem.note(BASELINE, [name] * len(encoding))
        centres = baseline_embeddings(problem, own_embeddings(problem), name)
        maps = torch.zeros(self.baselines, *encoding.input_ids.shape, dtype=torch.float64)
        rows = [(text, draw) for text in range(len(encoding)) for draw in range(self.baselines)]
        for some in portions(rows, centres[0].numel()):
            texts, draws = (list(part) for part in zip(*some, strict=True))
            part = repeated(problem, texts)
            width = part.encoding.input_ids.shape[1]
            starts = self._starts([rngs[text] for text in texts], centres[texts, :width], part.encoding.scored)
            maps[draws, texts, :width] = inner.attribute_from(part, starts)
            charge(problem, texts, part)
        return maps

    def cost(self, units: int) -> Cost:
        once = _path_method(self.method).cost(units)
        return Cost(self.baselines * once.forwards, self.baselines * once.backwards)

    def _starts(
        self,
        rngs: Sequence[np.random.Generator],
        centres: Float[Tensor, "rows tokens hidden"],
        scored: Bool[Tensor, "rows tokens"],
    ) -> Float[Tensor, "rows tokens hidden"]:
        """A baseline for each row, drawn in order: first the timestep, then the noise of the tokens that are scored."""
        shares = signal_shares(self.timesteps, self.schedule)
        starts = centres.clone()
        for row, (rng, tokens) in enumerate(zip(rngs, scored, strict=True)):
            share = shares[draw_times(rng, 1, self.timesteps, self.t) - 1]
            centre = centres[row, tokens].cpu().double()
            drawn = share.sqrt() * centre + (1 - share).sqrt() * draw_noise(rng, tuple(centre.shape))
            starts[row, tokens] = drawn.to(starts)
        return starts


def _path_method(spec: str) -> Method:
    """The method whose baseline is resampled. InputError or UnknownNameError, naming those that can be."""
    name = spec.partition("(")[0].strip()
    known = name in CATALOGUE.names
    if known and CATALOGUE.get(name).properties >= NEEDED:
        return CATALOGUE.create(spec)
    able = [name_of(other) for other in CATALOGUE.usable() if other.properties >= NEEDED]
    if not known:
        raise UnknownNameError("method of resampled", name, able)
    raise InputError(
        f"method of resampled cannot be '{name}': it has no baseline in embedding space. Use {' or '.join(able)}."
    )
